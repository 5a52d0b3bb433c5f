"""``skillgit lint --library``: what the rules of listings say of installed skills."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skillgit.app.skill_format.library_lint import lint_library
from skillgit.domain.skill_listing import ListingAgent, ListingState
from skillgit.errors import NotFoundError


def install(folder, **skills):
    for name, description in skills.items():
        path = folder / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n\nDo it.\n")
    return folder


@pytest.fixture
def context(empty):
    return replace(empty, environ={"HOME": str(empty.directory / "home")})


def rules(report):
    return {skill.name: [fault.rule for fault in skill.faults] for skill in report.findings.skills}


def test_each_agent_reads_its_own_folders(context):
    here = context.directory
    install(here / ".claude" / "skills", ours="Project's.", both="Project's.")
    install(here / "home" / ".claude" / "skills", both="User's.")
    install(here / ".agents" / "skills", other="For Codex.")
    report = lint_library(context)
    assert [(shown.agent, [entry.skill.name for entry in shown.entries]) for shown in report.listings] == [
        (ListingAgent.CLAUDE_CODE, ["both", "ours", "both"]),
        (ListingAgent.CODEX, ["other"]),
    ]
    assert rules(report) == {"both": ["listing-absent"], "ours": [], "other": []}


def test_what_is_cut_shortened_alike_or_listed_by_name_is_a_warning(context):
    install(
        context.directory / "lib", one="Reads invoices of hotels.", two="Reads invoices of hotels!", far="x" * 1_100
    )
    report = lint_library(context, ["lib"], window=200_000)
    assert rules(report) == {"one": ["listing-alike"], "two": ["listing-alike"], "far": ["listing-cut"]}
    tight = lint_library(context, ["lib"], window=160_000)
    assert rules(tight)["far"] == ["listing-name", "listing-cut"]


def test_links_are_followed_as_agents_do(context):
    install(context.directory / "shared", linked="Somewhere else.")
    (context.directory / "lib").mkdir()
    (context.directory / "lib" / "linked").symlink_to(context.directory / "shared" / "linked")
    assert lint_library(context, ["lib"]).listings[0].entries[0].state is ListingState.WHOLE


def test_a_folder_without_skills_is_refused(context):
    with pytest.raises(NotFoundError, match="no installed skills in nowhere") as caught:
        lint_library(context, ["nowhere"])
    assert caught.value.hint == "name a folder of folders with a SKILL.md"
    with pytest.raises(NotFoundError, match="no installed skills here") as caught:
        lint_library(context)
    assert "--library DIR" in caught.value.hint


def test_each_reason_has_its_own_way_out(context):
    here = context.directory
    install(here / "home" / ".claude" / "skills", both="User's.")
    install(here / ".claude" / "skills", both="Project's.", bare="", silent="x\ndisable-model-invocation: true")
    install(here / "home" / ".codex" / "skills", bare="", **{f"s{number:02}": "Words." for number in range(60)})

    def faults(window: int) -> dict[str, list[tuple[str, str]]]:
        skills = lint_library(context, window=window).findings.skills
        return {skill.name: [(fault.sentence, fault.hint) for fault in skill.faults] for skill in skills}

    wide, narrow = faults(200_000), faults(20_000)
    write = "write a description that says what the skill does and when to use it"
    assert wide["bare"] == [
        ("Claude Code lists its name alone: it has no description", write),
        ("Codex does not list it: it has no description", write),
    ]
    assert [mend for _, mend in wide["both"]] == ["rename one of the two skills"]
    assert wide["silent"][0][1].startswith("remove disable-model-invocation")
    full = "Codex does not list it: the names alone are over the budget"
    assert (full, "remove skills that are not needed") in narrow["s59"]
    assert narrow["bare"] == wide["bare"]

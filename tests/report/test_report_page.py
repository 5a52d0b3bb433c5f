from __future__ import annotations

import base64
import hashlib
import re
import shlex
import shutil
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from asking import ask
from long_run import write_long_run
from once import copy_folder
from program import git
from read_page import by_id, number, parsed, rows, section, text
from rule_run import DATES, DATES_EXACTLY, METRES, PERSON, UNITS, write_rule_run
from sample_run import RUN, write_run
from trained_runs import small_run, user

import skillgit.report
from skillgit.app.deliver import report as whole_report
from skillgit.app.deliver.report import report
from skillgit.app.history.cost import cost
from skillgit.app.history.items import items
from skillgit.app.history.log import log
from skillgit.app.history.matrix import matrix
from skillgit.app.history.requests import ItemsRequest
from skillgit.app.history.run_list import run_list
from skillgit.domain import text_diff
from skillgit.report.page import page
from skillgit.verbs.command_line import read_words
from skillgit.view.surface import UNICODE

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NOT = UNICODE.rejected
CSS = Path(skillgit.report.__file__).parent / "templates" / "page.css"
HOSTILE = (
    "</style></code><script>alert(1)</script><img src=x onerror=alert(2)> {{{{ 7 * 7 }}}}"
    " & \"'\u202eevil\u200b\ufffe {}."
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A repository with a run of the demo, read only."""
    return small_run(tmp_path_factory)


@pytest.fixture(scope="module")
def told(trained) -> Element:
    return parsed(page(ask(report, user(trained), None)))


def made(repo, run: str | None = None) -> tuple[str, Element]:
    content = page(ask(report, user(repo.workdir), run))
    return content, parsed(content)


def test_the_scores_of_versions_are_those_of_the_log(trained, told) -> None:
    events = [row for row in reversed(ask(log, user(trained)).rows) if row.version is not None]
    shown = list(rows(section(told, "versions")))
    assert len(shown) == len(events) > 2
    for cells, event in zip(shown, events, strict=True):
        assert cells[0].endswith(f"v{event.version}")
        assert number(cells[1]) == pytest.approx(event.score, abs=5e-5)
        assert event.title in cells[3]
        assert int(cells[6]) == event.step
        if event.version:
            assert number(cells[2]) == pytest.approx(event.delta, abs=5e-5)


def test_seed_and_best_are_those_of_the_matrix(trained, told) -> None:
    best = ask(run_list, user(trained)).rows[0].best_version
    for split in ("selection", "test"):
        cells = {row.row.version: row.cells[0] for row in ask(matrix, user(trained), None, split).rows}
        shown = list(rows(section(told, f"split-{split}")))
        assert [row[0] for row in shown] == ["seed v0", f"best v{best}"]
        for row, version in zip(shown, (0, best), strict=True):
            assert number(row[1]) == pytest.approx(cells[version].hard, abs=5e-5)
            assert number(row[3]) == pytest.approx(cells[version].soft, abs=5e-5)
            assert int(row[4]) == cells[version].n
            low, high = map(float, row[2].split(" to "))
            assert low <= number(row[1]) <= high


def test_the_map_has_the_outcome_of_every_item(trained, told) -> None:
    found = ask(items, user(trained), None, ItemsRequest())
    shown = {row[0].removesuffix(" ?"): row[1:] for row in rows(section(told, "items"))}
    assert shown.keys() == {line.item for line in found.rows}
    for line in found.rows:
        signs = ["✓" if cell and cell.hard == 1.0 else "◐" if cell and cell.value else NOT for cell in line.cells]
        assert shown[line.item] == [*signs, f"{line.solved}/{line.measured}"]


def test_the_costs_are_those_of_the_cost_command(trained, told) -> None:
    spent = ask(cost, user(trained), None)
    shown = list(rows(section(told, "cost")))
    assert [(row[0], row[1], row[2]) for row in shown] == [(r.role, r.stage, f"{r.calls:,}") for r in spent.rows]
    foot = next(section(told, "cost").iter("tfoot"))
    assert f"{spent.total.tokens_in:,}" in text(foot)


def test_every_rejected_candidate_and_every_rule_is_there(trained, told) -> None:
    refused = [row for row in ask(log, user(trained)).rows if row.kind == "rejected"]
    shown = text(section(told, "rejected"))
    assert refused
    for row in refused:
        assert row.title in shown
        assert row.commit[:7] in text(by_id(told, f"r{row.step}"))
    skill = git("show", f"best/{ask(run_list, user(trained)).rows[0].name}:skills/searchqa/SKILL.md", cwd=trained).out
    said = text(section(told, "rules"))
    assert all(" ".join(line[2:].split()) in said for line in skill.splitlines() if line.startswith("- "))


def test_a_reader_of_any_kind_finds_the_way(told) -> None:
    levels = [int(element.tag[1]) for element in told.iter() if re.fullmatch(r"h[1-6]", str(element.tag))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert [len(list(told.iter(tag))) for tag in ("main", "nav", "footer")] == [1, 1, 1]
    for table in told.iter("table"):
        assert table.find("caption") is not None
        assert all(head.get("scope") in {"col", "row"} for head in table.iter("th"))
    for drawing in told.iter("svg"):
        named = drawing.get("aria-label") or drawing.get("aria-labelledby") or drawing.get("aria-hidden")
        assert named
    for scrolled in (element for element in told.iter("div") if element.get("class") == "scroll"):
        assert (scrolled.get("tabindex"), scrolled.get("role")) == ("0", "region")


def test_every_link_leads_to_a_place_on_the_page(told) -> None:
    names = [element.get("id") for element in told.iter() if element.get("id")]
    assert len(names) == len(set(names))
    links = [link.get("href") for link in told.iter("a")]
    assert len(links) > 10
    assert all(link.startswith("#") and link[1:] in names for link in links)
    uses = {use.get("href") for use in told.iter("use")}
    assert all(use[1:] in names for use in uses)
    labels = [name for element in told.iter() for name in (element.get("aria-labelledby") or "").split()]
    assert set(labels) <= set(names)


def test_nothing_comes_from_elsewhere_and_no_script_may_run(told) -> None:
    assert list(told.iter("script")) == []
    fetching = {"src", "srcset", "poster", "data", "action", "style", "ping", "background"}
    for element in told.iter():
        assert not fetching & element.attrib.keys(), element.attrib
        assert not any(name.startswith("on") for name in element.attrib)
        assert element.tag not in {"link", "iframe", "object", "embed", "form", "base", "img"}
    style = next(told.iter("style")).text or ""
    assert "url(" not in style
    assert "@import" not in style
    policy = next(meta.get("content") for meta in told.iter("meta") if meta.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def commands_of(page: Element) -> set[str]:
    """Return the names of the commands that a page quotes; each is understood as it is written there."""
    lines = {line for code in page.iter("code") if (line := text(code)).startswith("skillgit ")}
    return {read_words(shlex.split(line)[1:])[0].name for line in lines}


def test_every_command_on_the_page_is_understood(told) -> None:
    assert commands_of(told) == {"checkout", "eval", "fsck", "log", "report"}


def test_the_same_history_gives_the_same_bytes(trained, tmp_path) -> None:
    elsewhere = copy_folder(trained, tmp_path / "elsewhere")
    git("config", "diff.context", "9", cwd=elsewhere)
    shutil.rmtree(elsewhere / ".git" / "skillgit", ignore_errors=True)
    assert page(ask(report, user(trained), None)) == page(ask(report, user(elsewhere), None))


def test_a_rule_tells_what_it_rests_on(repo) -> None:
    write_rule_run(repo)
    _, whole = made(repo)
    found = {
        text(next(rule.iter("p"))): rule for rule in section(whole, "rules").iter("li") if rule.get("class") == "rule"
    }
    units = text(found[UNITS])
    assert "v1 step 1 from rollouts that failed, support 2 +.2000 3 fixed, 1 broken" in units
    assert 'How tall is the tower in feet? 324 m expected "1,063 ft"' in units
    assert "the unit is missing (2 of 3)" in units
    assert f"v1 said: {DATES}" in text(found[DATES_EXACTLY])
    gone = next(element for element in section(whole, "rules").iter("ul") if element.get("class") == "gone")
    assert f"{METRES} removed by v1" in text(gone)
    assert "By Ada" in text(section(whole, "versions"))
    assert PERSON.partition(" ")[0] in text(by_id(whole, "v5"))


def test_words_that_changed_stand_out(repo) -> None:
    write_rule_run(repo)
    _, whole = made(repo)
    inside = by_id(whole, "v2")
    assert [text(mark) for mark in next(inside.iter("ins")).iter("mark")] == ["exactly"]
    assert text(next(inside.iter("del"))) == f"\N{MINUS SIGN} - {DATES}"


def test_slow_updates_skipped_steps_and_reasons_are_told(repo) -> None:
    write_run(repo)
    _, whole = made(repo)
    assert "Prefer the shortest answer that the source supports." in text(section(whole, "slow"))
    assert "Rules about units help." in text(section(whole, "slow"))
    refused = text(section(whole, "rejected"))
    assert "stop reading the question twice lower than .6000 by .1000" in refused
    assert "write commas a tie with .8000, and a tie is not a gain" in refused
    assert "step 3: no usable patch" in refused


def test_text_of_strangers_is_shown_and_never_takes_effect(repo) -> None:
    write_long_run(repo, versions=2, items=4, rule=HOSTILE)
    content, whole = made(repo)
    assert "<script" not in content
    assert "<img" not in content
    assert "49" not in text(section(whole, "rules"))
    said = text(section(whole, "rules"))
    assert "</style></code><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }}" in said
    assert "<U+202E>evil<U+200B>\ufffd" in said
    assert not set("\u202e\u200b\ufffe") & set(content)


def test_a_run_that_only_has_a_seed_has_a_page(repo) -> None:
    write_run(repo, events=1)
    _, whole = made(repo)
    assert "still the seed" in text(next(whole.iter("header")))
    assert "Nothing: the best version is the seed." in text(section(whole, "difference"))
    assert "There is the seed only." in text(section(whole, "versions"))
    assert "None" in text(section(whole, "rejected"))


def test_a_clone_without_evidence_says_what_is_missing(repo, tmp_path) -> None:
    write_rule_run(repo)
    git("clone", "-q", "--no-local", repo.workdir, tmp_path / "clone", cwd=tmp_path)
    whole = parsed(page(ask(report, user(tmp_path / "clone"), RUN)))
    assert "skillgit pull --evidence" in text(next(whole.iter("header")))
    assert "not in this repository" in text(section(whole, "items"))
    assert "not in this repository" in text(section(whole, "settings"))
    assert UNITS in text(section(whole, "rules"))
    assert len(list(rows(section(whole, "versions")))) == 6


def test_what_is_left_out_of_a_long_run_is_said(repo, monkeypatch) -> None:
    write_long_run(repo, versions=8, items=12)
    for module, name, value in (
        (whole_report, "DETAILED", 3), (whole_report, "LISTED", 6), (whole_report, "RULES", 4),
        (whole_report, "ITEMS", 5), (whole_report, "COLUMNS", 4), (text_diff, "_DIFFERENCE", 150),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    _, whole = made(repo)
    versions = text(section(whole, "versions"))
    assert "3 older versions are left out here" in versions
    assert "Of the 6 versions here, the newest 3 are shown in full." in versions
    assert "7 further rules are left out here" in text(section(whole, "rules"))
    shown = section(whole, "items")
    assert "5 of 12 items are shown" in text(shown)
    assert "4 of 9 versions are shown" in text(shown)
    assert [len(row) for row in rows(shown)] == [6] * 5
    assert [text(head) for head in next(shown.iter("thead")).iter("th")] == ["item", "v0", "v6", "v7", "v8", "solved"]
    assert "changed lines are left out here" in text(section(whole, "difference"))
    assert commands_of(whole) >= {"blame", "diff", "items", "log", "show"}


@pytest.mark.soak
def test_a_hundred_versions_of_three_hundred_items_are_a_page_of_a_few_megabytes(repo) -> None:
    write_long_run(repo, versions=99, items=300)
    content, whole = made(repo)
    assert len(content.encode()) < 4_000_000
    assert len(list(rows(section(whole, "items")))) == 300


COLOURS = ("light", "dark")
READ_ON = {
    "--paper": ("--ink", "--faint", "--accent", "--best", "--accepted", "--rejected", "--slow", "--reverted",
                "--edited", "--skipped", "--good", "--bad"),
    "--surface": ("--ink", "--faint", "--accent", "--best", "--rejected", "--slow", "--good", "--bad"),
    "--panel": ("--ink", "--faint", "--good", "--bad", "--best", "--rejected", "--accent"),
    "--add": ("--ink",), "--add-word": ("--ink",), "--cut": ("--ink",), "--cut-word": ("--ink",),
    "--solved": ("--on-solved",), "--partial": ("--on-partial",), "--failed": ("--on-failed",),
}  # fmt: skip


@pytest.mark.parametrize("scheme", COLOURS)
def test_everything_that_is_read_has_contrast_enough(scheme: str) -> None:
    blocks = re.findall(r":root \{(.*?)\n\s*\}", CSS.read_text(encoding="utf-8"), flags=re.DOTALL)
    light, dark = (dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", block)) for block in blocks[:2])
    colours = light if scheme == "light" else light | dark
    for ground, inks in READ_ON.items():
        for ink in inks:
            assert contrast(colours[ground], colours[ink]) >= 4.5, (ground, ink)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, by the formula of WCAG 2."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

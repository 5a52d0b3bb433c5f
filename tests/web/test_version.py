from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from asking import ask
from browser import NEEDS_CHROMIUM, PHONE, window
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup
from once import copy_folder
from program import git, skillgit
from read_page import by_id, parsed, rows, section, text
from serving import serving
from trained_runs import RUN, user

from skillgit.app.history.show import event_detail
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import Role
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import SkillgitError
from skillgit.view import numbers
from skillgit.view.show import all_facts
from skillgit.view.surface import Screen
from skillgit.web.markdown import rendered
from skillgit.web.pages import event_actions
from skillgit.web.pages.version import SECTIONS
from skillgit.web.rendering import Access, Answer, Visit, redirect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from xml.etree.ElementTree import Element

    import httpx2
    from serving import Served

FORBIDDEN, NOT_FOUND = 403, 404


@pytest.fixture(scope="module")
def visitor(served: Served) -> Iterator[httpx2.Client]:
    with served.visit() as client:
        yield client


def asked(repository: Path, *words: str):
    return json.loads(skillgit(*words, "--json", cwd=repository).out)


@pytest.fixture(scope="module")
def changed(repository: Path) -> str:
    """The first version that a gate accepted, whose text differs from its base."""
    events = asked(repository, "log", RUN)["events"]
    return f"v{min(row['version'] for row in events if row['kind'] == 'accepted')}"


def shown(visitor: httpx2.Client, address: str) -> Element:
    return parsed(visitor.get(f"/run/{RUN}/{address}").text)


def test_every_line_has_the_origin_that_blame_tells(repository: Path, visitor: httpx2.Client, changed: str) -> None:
    lines = asked(repository, "blame", f"{RUN}/{changed}")["lines"]
    cells = list(section(shown(visitor, f"{changed}?view=text"), "text").iter("tr"))[1:]
    assert len(cells) == len(lines)
    for row, line in zip(cells, lines, strict=True):
        origin, content = row.findall("td")
        assert "".join(content.itertext()) == line["text"]
        if line["text"].strip():
            name = (line["address"] or "seed").removeprefix(f"{RUN}/")
            assert "".join(origin.itertext()) == f"{name}: why line {line['line']}"


def test_the_margin_of_the_rendered_text_leads_to_the_lines_that_it_stands_at(
    repository: Path, visitor: httpx2.Client, changed: str
) -> None:
    lines = {row["line"]: row["text"] for row in asked(repository, "blame", f"{RUN}/{changed}")["lines"]}
    items = [part for part in section(shown(visitor, changed), "text").iter("li") if part.find("a") is not None]
    marked = [part for part in items if "brought" in (part.find("a").get("class") or "")]
    assert len(marked) == sum(line.startswith("- ") for line in lines.values())
    for part in marked:
        number = int(re.search(r"line=(\d+)", part.find("a").get("href"))[1])
        assert lines[number] == f"- {part.find('a').tail}"


def test_the_gate_and_its_items_are_those_of_show(repository: Path, visitor: httpx2.Client, changed: str) -> None:
    told = asked(repository, "show", f"{RUN}/{changed}")
    event, page = told["event"], shown(visitor, changed)
    gate = section(page, "gate")
    verdict = event["verdict"]
    assert numbers.score(verdict["score"]) in text(gate)
    assert f"against {numbers.score(verdict['current'])}" in text(gate)
    counts = [f"{verdict[kind]} {kind}" for kind in ("fixed", "broken")]
    assert all(count in text(gate) for count in counts)
    links = [text(link) for link in gate.iter("a")]
    assert links == [*(count for count in counts if count[0] != "0"), *event["fixed"], *event["broken"]]
    cost = list(rows(section(page, "record")))
    assert [(row[0], row[1], row[2]) for row in cost if len(row) == 6] == [
        (part["role"], part["stage"], f"{part['cost']['calls']:,}") for part in event["cost"]["parts"]
    ]


def test_a_page_has_every_fact_of_show(repository: Path, visitor: httpx2.Client) -> None:
    context = Context.from_process(repository)
    kinds = set()
    for row in asked(repository, "log", RUN)["events"]:
        report = ask(event_detail, context, row["commit"]).shown
        page = shown(visitor, report.row.label)
        names = {text(term).lower() for term in page.iter("dt")}
        places = {element.get("id") for element in page.iter("h2")}
        change = text(section(page, "change")) if "change" in places else ""
        for label, words in all_facts(report, Screen(), datetime.now(UTC)):
            there = SECTIONS.get(label) in places or all(line in change for line in words.splitlines())
            assert not label or label in names or there, (report.row.label, label)
        kinds.add(row["kind"])
    assert {"run-started", "accepted", "rejected", "run-finished"} <= kinds


def test_a_reason_is_said_once_and_an_edit_that_the_change_shows_is_not_said_again(
    repository: Path, visitor: httpx2.Client, changed: str
) -> None:
    detail = ask(event_detail, Context.from_process(repository), f"{RUN}/{changed}")
    page = text(shown(visitor, changed))
    assert detail.findings
    assert detail.edits
    for words in detail.shown.event.why.split("\n\n"):
        assert page.count(words.partition(" (tr-")[0]) == 2, words  # and once in the commit's message
    for edit in detail.edits:
        assert page.count(f"{edit.op} in {edit.file}") >= 1
        assert page.count(edit.content) == 2, edit.content  # in the change, and in the text


@NEEDS_CHROMIUM
@pytest.mark.parametrize("size", [{"width": 1400, "height": 900}, PHONE], ids=["desk", "phone"])
def test_the_change_of_every_version_begins_in_the_first_window(served: Served, browser, size) -> None:
    versions = [row["version"] for row in asked(served.repository, "log", RUN)["events"] if row["version"]]
    assert versions
    with window(browser, served, viewport=size) as (page, ear):
        for version in dict.fromkeys(versions):
            page.goto(f"{served.origin}/run/{RUN}/v{version}")
            lines = page.locator("#change ~ figure ins, #change ~ figure del")
            assert not lines.count() or lines.first.bounding_box()["y"] < size["height"], version
        assert ear.complaints == []


@pytest.mark.parametrize("layout", ["unified", "split", "word"])
def test_a_difference_says_in_every_form_what_diff_says(
    repository: Path, visitor: httpx2.Client, changed: str, layout: str
) -> None:
    files = asked(repository, "diff", f"{RUN}/{changed}")["files"]
    lines = [line for file in files for hunk in file["hunks"] for line in hunk["lines"]]
    change = section(shown(visitor, f"{changed}?diff={layout}"), "change")
    removed = [line["text"] for line in lines if line["sign"] == "-"]
    added = [line["text"] for line in lines if line["sign"] == "+"]
    assert added
    if layout == "split":
        table = next(change.iter("table"))
        assert ["".join(part.itertext()) for part in table.iter("del")] == removed
        assert ["".join(part.itertext()) for part in table.iter("ins")] == added
    elif layout == "unified":
        assert ["".join(part.itertext()).rstrip("\n") for part in change.iter("del")] == [
            f"\N{MINUS SIGN} {line}" for line in removed
        ]
        assert ["".join(part.itertext()).rstrip("\n") for part in change.iter("ins")] == [f"+ {line}" for line in added]
    else:
        for tag, others in (("ins", removed), ("del", added)):
            page = section(shown(visitor, f"{changed}?diff={layout}"), "change")
            for part in list(page.iter(tag)):
                part.text = ""
            left = ["".join(part.itertext()).strip("\n") for part in page.iter("span") if part.get("class") == "same"]
            assert all(line in left for line in others)


def test_the_seed_shows_its_text(repository: Path, visitor: httpx2.Client) -> None:
    content = skillgit("show", f"{RUN}/v0:SKILL.md", cwd=repository).out
    cells = [row.findall("td")[1] for row in list(section(shown(visitor, "v0?view=text"), "text").iter("tr"))[1:]]
    assert ["".join(cell.itertext()) for cell in cells] == content.rstrip("\n").split("\n")


@pytest.mark.parametrize("ending", ["skill", "zip"])
def test_an_archive_has_the_bytes_that_export_writes(
    repository: Path, visitor: httpx2.Client, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"v1.{ending}"
    skillgit("export", f"{RUN}/v1", file, cwd=repository)
    answer = visitor.get(f"/run/{RUN}/v1/export?as={ending}")
    assert answer.content == file.read_bytes()
    assert f"{RUN}-v1.{ending}" in answer.headers["Content-Disposition"]


def test_every_event_has_a_page_with_its_commit(repository: Path, visitor: httpx2.Client) -> None:
    for row in asked(repository, "log", RUN)["events"]:
        label = skillgit("show", row["commit"], cwd=repository).out.split()[0]
        page = shown(visitor, label)
        message = git("log", "-1", "--format=%B", row["commit"], cwd=repository).out.strip()
        assert " ".join(message.split()) in text(section(page, "record"))
        assert by_id(page, "actions") is not None


def test_best_and_head_lead_to_their_event_and_what_git_alone_knows_to_nothing(
    repository: Path, visitor: httpx2.Client
) -> None:
    best = next(row for row in asked(repository, "runs")["runs"] if row["name"] == RUN)["best_version"]
    assert visitor.get(f"/run/{RUN}/best").url.path == f"/run/{RUN}/v{best}"
    for event in ("v999", "HEAD", "v1~1", "v1^{tree}", "--all", "%2e%2e"):
        assert visitor.get(f"/run/{RUN}/{event}").status_code == NOT_FOUND, event
    assert visitor.get(f"/run/{RUN[:-1]}/v1").status_code == NOT_FOUND


def test_a_viewer_sees_no_action_and_may_run_none(served: Served) -> None:
    with served.visit(served.invite()) as client:
        page = parsed(client.get(f"/run/{RUN}/v1").text)
        links = [link.get("href") for link in section(page, "actions").iter("a")]
        assert links
        assert all("/export" in link for link in links)
        for action in event_actions.ACTIONS:
            assert client.get(f"/run/{RUN}/v1/{action.name}").status_code == FORBIDDEN
            assert client.post(f"/run/{RUN}/v1/{action.name}").status_code == FORBIDDEN


def test_an_action_shows_its_command_and_its_cost_and_a_form_without_its_secret_does_nothing(
    repository: Path, visitor: httpx2.Client
) -> None:
    refusal = next(row for row in asked(repository, "log", RUN)["events"] if row["kind"] == "rejected")
    commands = {
        "v1/eval": ("eval", f"{RUN}/v1", "--split", "test"),
        f"r{refusal['step']}/retry": ("cherry-pick", "--run", RUN, "--rejected", "--keep"),
    }
    for path, words in commands.items():
        page = " ".join(text(parsed(visitor.get(f"/run/{RUN}/{path}").text)).split())
        assert f"skillgit {' '.join(words)}" in page
        plan = asked(repository, *words, "--dry-run")
        assert f"What it would cost {plan['sentence']}." in page
        assert all(note in page for note in plan["notes"])
    assert visitor.post(f"/run/{RUN}/v1/note", data={"message": "hello"}).status_code == FORBIDDEN


ADDRESS = f"{RUN}/v1"


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("promote", {}, ("promote", ADDRESS)),
        ("eval", {}, ("eval", ADDRESS, "--split", "test")),
        ("fork", {"name": "again"}, ("fork", ADDRESS, "again")),
        ("fork", {"name": ""}, ("fork", ADDRESS)),
        ("fork", {"name": "--help"}, None),
        ("note", {"message": "shorter, please"}, ("note", ADDRESS, "--message", "shorter, please")),
        ("note", {"message": "--remove 1"}, ("note", ADDRESS, "--message", "--remove 1")),
        ("note", {"message": "x" * 4_001}, None),
        ("note", {"message": "  "}, None),
        (
            "install",
            {"to": "claude", "scope": "project"},
            ("install", ADDRESS, "--to", "claude", "--scope", "project"),
        ),
        ("install", {"to": "../elsewhere", "scope": "user"}, None),
        ("retry", {}, None),
    ],
)
def test_a_form_runs_the_words_of_its_action_and_no_others(
    repository: Path, monkeypatch: pytest.MonkeyPatch, name: str, fields: dict[str, str], words: tuple[str, ...] | None
) -> None:
    started: list[tuple[str, ...]] = []

    def start(_: Visit, command: tuple[str, ...], *, back: str = "") -> Answer:
        started.append(tuple(command))
        return redirect(back)

    monkeypatch.setattr(Visit, "start", start)
    visit = Visit(
        workspace=Workspace(user(repository), still=True),
        access=Access(name="operator", role=Role.OPERATOR, csrf=""),
        path="",
        parameters={"run": RUN, "event": "v1"},
        form={key: [value] for key, value in fields.items()},
    )
    action = next(action for action in event_actions.ACTIONS if action.name == name)
    try:
        assert event_actions.run_action(action, visit).headers["location"] == f"/run/{RUN}/v1"
    except SkillgitError:
        assert words is None
    assert started == ([words] if words else [])


LINES = Markup('<i data-lines="{}-{}"></i>')
ALLOWED = {"a": {"href", "rel"}, "ol": {"start"}, **{f"h{level}": {"id"} for level in range(3, 7)}}
PARTS = (
    *("# ", "- ", "1. ", "  ", "> ", "`", "```", "~~~js onclick=x\n", "**", "|", "|-|\n", "\n", "\n\n", "---\n", "x"),
    *(
        "[a](javascript:alert(1))",
        "[b](//x.y)",
        "[c](/run/x)",
        "![p](http://x.y/z.png)",
        "<script>",
        "<img src=x>",
        "&lt;",
    ),
    *(
        "<javascript:alert(1)>",
        "[d]: data:text/html,x\n",
        "[d]",
        "\u202e",
        "<!-- skillgit:slow-start -->\n",
        "[e](https://x.y)",
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join))
def test_a_text_brings_no_markup_of_its_own(content: str) -> None:
    body = rendered(content, LINES.format, {})[1]
    page = parsed(f"<!DOCTYPE html><html><head><title>t</title></head><body>{body}</body></html>")
    for part in page.find("body").iter():
        if part.tag == "i":
            first, last = map(int, part.get("data-lines").split("-"))
            assert 1 <= first <= last <= content.count("\n") + 1
            continue
        assert part.tag not in {"script", "img", "iframe", "style", "form"}
        assert part.attrib.keys() <= ALLOWED.get(part.tag, set()) | ({"class"} if part.tag == "span" else set())
        assert part.tag != "a" or part.get("href").startswith(("http://", "https://", "#part-"))


def test_links_of_versions_and_of_evidence_lead_somewhere(visitor: httpx2.Client, changed: str) -> None:
    head = visitor.get(f"/run/{RUN}/{changed}").text
    pages = [head, *(visitor.get(found).text for found in re.findall(r'href="(/run/[^"]*/why[^"]*)"', head)[-1:])]
    links = {html.unescape(link) for page in pages for link in re.findall(r'href="(/run/[^"#]*)', page)}
    assert any("/items/" in link for link in links)
    wrong = {link for link in links if visitor.head(link).status_code != 200 and "/live" not in link}
    assert wrong == set()


def test_a_note_that_was_measured_otherwise_says_in_what(repository: Path, changed: str, tmp_path: Path) -> None:
    copy = copy_folder(repository, tmp_path / "copy")
    line = {"kind": "evaluation", "split": "test", "item_set": "ffff", "environment": "", "n": 3, "scored": 3}
    line |= {"hard": 1.0, "soft": 1.0, "seed": 1, "target": "other/model"}
    who = ("-c", "user.name=U", "-c", "user.email=u@localhost")
    events = asked(copy, "log", RUN)["events"]
    commit = next(row["commit"] for row in events if f"v{row['version']}" == changed)
    words = ("notes", "--ref=skillgit/evals", "append", "-m", json.dumps(line), commit)
    git(*who, *words, cwd=copy)
    with serving(copy) as served, served.visit() as visitor:
        assert "not as the run: other model, items" in text(section(shown(visitor, changed), "since"))

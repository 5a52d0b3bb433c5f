"""What ``gate`` prints and exits with, and that nobody's words are Markdown."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from skillgit.app.measure.library_gate import LibraryVerdict, Shadowing
from skillgit.app.measure.pull_request_verdicts import Compared, GateReport, GateSide, ItemPair, SkillReport
from skillgit.app.measure.requests import GateRequest
from skillgit.app.setup.basis import ResultBasis
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Metric
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.errors import BudgetError, ExitCode, ProviderFailureError
from skillgit.view.gate import MARK, MOST_ITEMS, code, markdown

BASE, HEAD = "a" * 40, "b" * 40
BASIS = ResultBasis(
    run="small",
    reason="the default run",
    target="offline reader",
    data="20 of searchqa: mine.json",
    rehearsal="off",
)
COST = Cost(calls=20, tokens_in=6000, tokens_out=200, usd=0.25)
VERDICT = Verdict(
    decision=Decision.ACCEPT_NEW_BEST, policy="strict", metric=Metric.HARD, score=0.55, current=0.5, best=0.5,
    fixed=2, broken=1, p=0.5,
)  # fmt: skip


def pair(item: str, before: float = 0.0, after: float = 1.0) -> ItemPair:
    return ItemPair(item=item, task_type="", before=before, after=after)


COMPARED = Compared(
    verdict=VERDICT, n=20, delta=0.05, interval=(-0.1, 0.2), fixed=(pair("q1"), pair("q2", 0.25, 0.75)),
    broken=(pair("q3", 1.0, 0.0),), stable_pass=("q4",), stable_fail=("q5", "q6"), missing=(),
)  # fmt: skip
ONE = SkillReport(
    skill="skills/searchqa",
    change="changed",
    word="passes",
    base=GateSide(name="main", commit=BASE, version="", recorded=20, missing=0, scored=20, score=0.5, solved_items=10),
    head=GateSide(
        name="HEAD", commit=HEAD, version="small/v3", recorded=0, missing=20, scored=20, score=0.55, solved_items=11
    ),
    basis=BASIS,
    config="run small",
    environment="searchqa",
    target="offline/reader",
    metric="hard",
    policy="strict",
    text="skills/searchqa/SKILL.md of HEAD (bbbbbbb) against main (aaaaaaa)",
    items=20,
    compared=COMPARED,
    noted=1,
    cost=COST,
)
REPORT = GateReport(
    base="main", base_commit=BASE, head="HEAD", head_commit=HEAD, split="selection", recorded_only=False, skills=(ONE,),
    cost=COST, exit_code=ExitCode.OK,
)  # fmt: skip
NOTHING = replace(REPORT, skills=(), cost=Cost())
TEXT = """\
skills/searchqa  passes

                        hard  scored  recorded  measured now
main             .5000 10/20   20/20        20             0
HEAD (small/v3)  .5500 11/20   20/20         0            20

gained    +.0500, 95 % -.1000 to +.2000, p 0.5000 one-sided
rule      strict
fixed     2: q1 q2
broken    1: q3
stable    1 solved, 2 not
by        the configuration of run small (the default run); 20 of searchqa: mine.json; target offline reader; off
text      skills/searchqa/SKILL.md of HEAD (bbbbbbb) against main (aaaaaaa)
cost      20 calls · 6000 in · 200 out · $0.25
"""
MARKDOWN = f"""\
{MARK}
## skillgit gate: passes

`main` (`aaaaaaa`) → `HEAD` (`bbbbbbb`), selection split

### ✅ `skills/searchqa` passes

|  | base `main` | head `small/v3` |
|---|--:|--:|
| hard score | .5000 10/20 | .5500 11/20 |
| items with a score | 20 of 20 | 20 of 20 |
| recorded | 20 | 0 |
| measured now | 0 | 20 |

| items | | which |
|---|--:|---|
| fixed | 2 | `q1` `q2` .2500 → .7500 |
| broken | 1 | `q3` |
| stable, solved | 1 | |
| stable, not solved | 2 | |

- gained +.0500 (95 % -.1000 to +.2000), p 0.5000 one-sided, rule `strict`
- measured by `the configuration of run small` (`the default run`) under `offline reader`
- data: `20 of searchqa: mine.json`
- text: `skills/searchqa/SKILL.md of HEAD (bbbbbbb) against main (aaaaaaa)`
- `off`
- cost: 20 calls · 6000 in · 200 out · $0.25
"""


def test_the_verdict_comes_first(skillgit, fake):
    fake("measure.pull_request_gate.gate", REPORT)
    ended = skillgit("gate", "--base", "main")
    assert (ended.code, ended.text) == (ExitCode.OK, TEXT)


def test_a_comment_is_printed_or_written_to_a_file(skillgit, fake, tmp_path):
    fake("measure.pull_request_gate.gate", REPORT)
    assert skillgit("gate", "--base", "main", "--output", "-").text == MARKDOWN
    (tmp_path / "gate.md").write_text("what an earlier run wrote")
    ended = skillgit("gate", "--base", "main", "--output", "gate.md")
    assert ended.text == TEXT
    assert (tmp_path / "gate.md").read_text(encoding="utf-8") == MARKDOWN
    assert [path.name for path in tmp_path.iterdir()] == ["gate.md"]


def test_a_link_or_a_pipe_is_written_through_and_not_replaced(skillgit, fake, tmp_path):
    fake("measure.pull_request_gate.gate", REPORT)
    (tmp_path / "link").symlink_to("elsewhere")
    skillgit("gate", "--base", "main", "--output", "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere").read_text(encoding="utf-8") == MARKDOWN
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    skillgit("gate", "--base", "main", "--output", "pipe")
    assert os.read(reader, 65_536).decode() == MARKDOWN
    os.close(reader)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link", "pipe"]


def test_the_document_tells_everything(skillgit, fake, tmp_path):
    fake("measure.pull_request_gate.gate", REPORT)
    document = json.loads(skillgit("gate", "--base", "main", "--json").out)
    assert (document["schema"], document["exit_code"]) == ("skillgit.gate/2", 0)
    (skill,) = document["skills"]
    assert skill["compared"]["fixed"][1] == {"item": "q2", "task_type": "", "before": 0.25, "after": 0.75}
    assert (skill["head"]["recorded"], skill["cost"]["usd"]) == (0, 0.25)
    written = skillgit("gate", "--base", "main", "--json", "--output", "gate.md")
    assert json.loads(written.out) == document
    assert (tmp_path / "gate.md").read_text(encoding="utf-8") == MARKDOWN


def test_a_file_that_cannot_be_written_is_an_error(skillgit, fake):
    calls = fake("measure.pull_request_gate.gate", REPORT)
    ended = skillgit("gate", "--base", "main", "--output", "nowhere/gate.md")
    assert (ended.code, calls) == (ExitCode.CONFLICT, []), "no verdict, and nothing is paid for"
    assert "cannot write" in ended.err
    assert "hint:" in ended.err


def test_a_head_without_a_changed_skill_says_so(skillgit, fake):
    fake("measure.pull_request_gate.gate", NOTHING)
    ended = skillgit("gate", "--base", "main")
    assert (ended.code, ended.text) == (ExitCode.OK, "HEAD changes no skill against main\n")
    assert "No skill is changed." in skillgit("gate", "--base", "main", "--output", "-").text


def test_a_skill_without_numbers_has_its_section(skillgit, fake):
    gone = replace(ONE, word="removed", change="removed", items=0, compared=None)
    fake("measure.pull_request_gate.gate", replace(REPORT, skills=(gone,)))
    assert skillgit("gate", "--base", "main").text == "skills/searchqa  removed\n"
    body = skillgit("gate", "--base", "main", "--output", "-").text.splitlines()
    assert (body[1], body[-1]) == ("## skillgit gate: passes", "### ✅ `skills/searchqa` removed")


@pytest.mark.parametrize(
    ("code_", "headline"),
    [
        (ExitCode.NO, "does not pass"),
        (ExitCode.SERVICE, "cannot tell"),
        (ExitCode.UNDERPOWERED, "cannot tell"),
    ],
)
def test_the_exit_code_and_the_headline_say_the_same(skillgit, fake, code_, headline):
    one = replace(ONE, word="fails", reason="the head scores lower")
    fake("measure.pull_request_gate.gate", replace(REPORT, skills=(one,), exit_code=code_))
    ended = skillgit("gate", "--base", "main", "--output", "-")
    assert ended.code == code_
    assert ended.text.splitlines()[1] == f"## skillgit gate: {headline}"
    assert "\nThe head scores lower.\n" in ended.text


@pytest.mark.parametrize(
    ("error", "code_"),
    [
        (ProviderFailureError("down", hint="later"), ExitCode.SERVICE),
        (BudgetError("cap", hint="more"), ExitCode.BUDGET),
    ],
)
def test_failures_exit_as_they_do_everywhere(skillgit, fake, error, code_):
    fake("measure.pull_request_gate.gate", error)
    assert skillgit("gate", "--base", "main").code == code_


def test_a_comparison_is_asked_for_in_full(skillgit, fake):
    calls = fake("measure.pull_request_gate.gate", NOTHING)
    options = ("--head", "topic", "--config", "a=demo", "--config", "b=demo", "--cfg-options", "train.seed=7")
    caps = ("--max-calls", "4", "--max-tokens", "5", "--max-usd", "1", "--split", "test", "--rule", "not-worse")
    skillgit("gate", "--base", "main", *options, *caps, "--recorded-only", "--no-note", "--dry-run")
    assert calls[0][0] == GateRequest(
        base="main", head="topic", configs=("a=demo", "b=demo"), overrides=("train.seed=7",), split="test",
        rule="not-worse", recorded_only=True, note=False, dry_run=True,
        max_calls=4, max_tokens=5, max_usd=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ("gate",),
        ("gate", "--base", "a", "--rule", "lenient"),
        ("gate", "--base", "a", "--split", "train"),
        ("gate", "--base", "a", "--json", "--output", "-"),
        ("gate", "--base", "a", "-n", "--output", "-"),
    ],
)
def test_a_mistaken_command_line_is_refused(arguments, skillgit, fake):
    fake("measure.pull_request_gate.gate", REPORT)
    assert skillgit(*arguments).code == ExitCode.USAGE


def test_a_long_list_of_items_is_cut():
    many = tuple(pair(f"q{number}") for number in range(500))
    text = "\n".join(markdown(replace(REPORT, skills=(replace(ONE, compared=replace(COMPARED, fixed=many)),))))
    assert f"`q{MOST_ITEMS - 1}` and 460 more |" in text
    assert len(text) < 65_536


def inlines(text: str) -> list[tuple[str, str]]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [(child.type, child.content) for token in tokens for child in token.children or ()]


ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
NASTY = st.sampled_from(
    ["`", "``", "|", "<img src=x>", "@someone", "#1", "[a](b)", "\n", "\\", "-->", "\u202e", "\x1b[31m"]
)


@given(st.lists(ANY_TEXT | NASTY, max_size=8).map("".join))
def test_any_name_is_one_code_span_in_a_paragraph_and_in_a_table(name):
    span = code(name)
    assert {kind for kind, _ in inlines(f"x {span}")} <= {"text", "code_inline"}
    assert [kind for kind, _ in inlines(f"x {span}")].count("code_inline") == 1
    table = inlines(f"| a | b |\n|---|---|\n| {span} | end |")
    assert [found for found in table if found[0] != "text"] == [
        found for found in inlines(f"x {span}") if found[0] != "text"
    ]
    assert ("text", "end") in table


@given(ANY_TEXT.filter(lambda text: text and not BASE.startswith(text)))
def test_words_of_others_change_nothing_but_themselves(name):
    tame = "\n".join(
        markdown(replace(REPORT, skills=(replace(ONE, compared=replace(COMPARED, fixed=(pair("q1"), pair("q2")))),)))
    )
    compared = replace(COMPARED, fixed=(pair(name), pair("q2")), broken=(pair(name, 1.0, 0.0),))
    one = replace(ONE, skill=f"skills/{name}", base=replace(ONE.base, name=name), compared=compared)
    wild = "\n".join(markdown(replace(REPORT, base=name, skills=(one,))))
    kinds = [kind for kind, _ in inlines(tame)]
    assert [kind for kind, _ in inlines(wild)] == kinds


def test_what_a_library_loses_is_said_skill_by_skill(skillgit, fake):
    shadowing = Shadowing(skill="old", by=("new",), sentence="both have the same name")
    verdict = LibraryVerdict(base="main", head="HEAD", skills=2, changes=("new",), shadowings=(shadowing,))
    calls = fake("measure.library_gate.library_gate", verdict)
    ended = skillgit("lint", "--library", "lib", "--base", "main")
    assert (ended.code, calls[0]) == (1, ("main", "HEAD", Path("lib")))
    assert ended.text.splitlines() == [
        "new shadows old: both have the same name",
        "does not pass: new changed in a library of 2 skills",
    ]


@pytest.mark.parametrize(
    "words",
    [("--base", "main"), ("--library", "--base", "main"), ("--library", "lib", "--base", "main", "--window", "9")],
)
def test_a_library_is_judged_in_one_folder(words, skillgit):
    assert skillgit("lint", *words).code == ExitCode.USAGE

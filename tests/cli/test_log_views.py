"""What the log shows besides lines: changes under events, and what became of an item."""

from __future__ import annotations

from dataclasses import replace

import cli_sample as sample
import pytest

from skillgit.app.history.log import Log
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.domain.proposal import Origin
from skillgit.view.event_marks import Entry, decision, glyph, style, title
from skillgit.view.log import log_lines, with_changes
from skillgit.view.surface import UNICODE, Screen

CHANGE = sample.DIFF.encode()


@pytest.fixture
def changed(monkeypatch):
    def changes(context, rows, *, patch, stat):
        del context
        texts = {sample.V7.commit: CHANGE if patch else b" SKILL.md | 2 +-\n"}
        return ((row, texts.get(row.commit, b"") if patch or stat else b"") for row in rows)

    monkeypatch.setattr("skillgit.app.history.log.changes", changes)


@pytest.mark.usefixtures("changed")
def test_a_change_stands_under_its_event_byte_for_byte(skillgit, fake):
    fake("history.log.log", sample.LOG)
    plain, told = skillgit("log").out, skillgit("log", "-p").out
    assert b"\n" + CHANGE in told
    assert told.replace(b"\n" + CHANGE + b"\n", b"") == plain
    assert skillgit("log", "--patch").out == told
    assert b" SKILL.md | 2 +-\n" in skillgit("log", "--stat").out


@pytest.mark.usefixtures("changed")
def test_the_graph_goes_on_beside_a_change(skillgit, fake):
    fake("history.log.log", sample.LOG)
    lines = skillgit("log", "-p", "--graph").text.splitlines()
    at = next(place for place, line in enumerate(lines) if "diff --git" in line)
    assert lines[at].startswith("│   diff --git")
    assert lines[at - 1] == "│"
    assert all(line[0] in "●○◆×│├↩" for line in lines)  # noqa: RUF001 - signs of the screens


@pytest.mark.usefixtures("changed")
def test_the_change_of_the_last_event_keeps_the_margin_of_the_graph(skillgit, fake):
    fake("history.log.log", replace(sample.LOG, rows=(sample.V7,)))
    lines = skillgit("log", "-p", "--graph").text.splitlines()
    assert all(line.startswith("    ") for line in lines[2:])
    assert any("diff --git" in line for line in lines)


@pytest.mark.usefixtures("changed")
def test_a_change_is_coloured_where_lines_are(skillgit, fake):
    fake("history.log.log", sample.LOG)
    assert b"\x1b[32m+" in skillgit("--color=always", "log", "-p").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("log", "--graph", "--reverse"), "--graph cannot be combined with --reverse"),
        (("log", "-p", "--json"), "-p and --stat are for people; use diff --json"),
    ],
)
def test_what_does_not_go_together_is_refused(skillgit, arguments, said):
    ended = skillgit(*arguments)
    assert (ended.code, ended.err) == (2, f"skillgit: {said}\nhint: skillgit log --help\n")


def test_what_became_of_an_item_stands_before_the_title(skillgit, fake):
    rows = (sample.V8, sample.R18)
    flips = {sample.V8.commit: {"q17": "fixed"}, sample.R18.commit: {"q17": "broken"}}
    fake("history.log.log", Log(run=sample.RUN, rows=rows, flips=flips))
    first, second = skillgit("log", "--item", "q17").text.splitlines()
    assert "   fixed   skill: cite" in first
    assert "   broken  skill: one-word" in second


def test_of_several_items_each_is_named(skillgit, fake):
    flips = {sample.V8.commit: {"q17": "fixed", "q22": "broken"}, sample.R18.commit: {"q22": "fixed"}}
    calls = fake("history.log.log", Log(run=sample.RUN, rows=(sample.V8, sample.R18), flips=flips))
    first, second = skillgit("log", "--item", "q17", "--item", "q22").text.splitlines()
    assert calls[0][0].items == ("q17", "q22")
    assert "   fixed q17, broken q22  skill: cite" in first
    assert "   fixed q22              skill: one-word" in second


def test_a_graph_of_many_events_takes_time_in_proportion():
    rows = [sample.GUIDANCE] * 20_000
    assert sum(1 for _ in log_lines(rows, Screen(), sample.NOW, graph={})) == len(rows)


def test_changes_and_lines_go_hand_in_hand():
    shown = list(log_lines((sample.V8, sample.V7), Screen(), sample.NOW))
    assert list(with_changes(shown, [b"", b"x\n"], Screen())) == [shown[0].text, shown[1].text, "", b"x\n"]
    assert list(with_changes(shown, [b"x\n", b""], Screen())) == [shown[0].text, "", b"x\n", "", shown[1].text]


@pytest.mark.parametrize("kind", EventKind)
@pytest.mark.parametrize("origin", Origin)
def test_every_event_has_a_sign_a_style_and_words(kind, origin):
    for verdict in Decision:
        entry = Entry(
            kind=kind,
            label="",
            version=None,
            step=3,
            title="do it",
            score=None,
            delta=None,
            is_measured=False,
            decision=verdict.value,
            origin=origin.value,
        )
        assert len(glyph(entry, UNICODE)) == 1
        assert style(entry)
        assert decision(entry)
        assert title(entry).endswith("do it")

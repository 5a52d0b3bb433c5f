from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import count

import event_strategies as strategies
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sample_run import MODELS, clock_from, seed_skill, started, transitions, write_run
from soaking import examples

from skillgit.domain.cost import Cost
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import EDITS_SHOWN, Change
from skillgit.errors import FormatVersionError, TrailerError
from skillgit.store import history_reader
from skillgit.store.commit_message import SlowText, decode, encode
from skillgit.store.event_writer import RunWriter
from skillgit.store.trailers import BLOCK_LIMIT, VALUE_LIMIT, last_paragraph

EVIDENCE = "3f0b6c1d" * 5


def round_trip(event, evidence=EVIDENCE):
    slow = SlowText(guidance=event.guidance, memory=event.memory) if event.kind is EventKind.SLOW_PROPOSED else None
    return decode(encode(event, evidence), slow and (lambda _: slow))


@pytest.mark.parametrize("sample", transitions(), ids=lambda sample: sample.event.kind)
def test_sample_events_survive(sample) -> None:
    decoded = round_trip(sample.event)

    assert decoded.event == sample.event
    assert decoded.evidence == EVIDENCE


@examples(2)
@given(strategies.events, st.sampled_from(["", EVIDENCE]))
def test_every_event_survives_whatever_its_text_says(event, evidence) -> None:
    decoded = round_trip(event, evidence)

    assert decoded.event == event
    assert decoded.evidence == evidence


@examples(2)
@given(strategies.events)
def test_no_text_of_a_model_stands_where_git_would_see_a_trailer_a_divider_or_a_comment(event) -> None:
    message = encode(event, EVIDENCE)
    above = message.removesuffix("\n").removesuffix(last_paragraph(message))

    for line in above.split("\n"):
        assert not line.casefold().startswith(("skillgit-", "---", "#"))
    assert not any(ord(character) < 32 and character != "\n" for character in message)
    assert "\x1b" not in message


@examples(2)
@given(strategies.events)
def test_blocks_keep_their_limits(event) -> None:
    block = last_paragraph(encode(event, EVIDENCE))

    assert len(block.encode()) == len(block) <= BLOCK_LIMIT
    assert all(len(line.partition(": ")[2]) <= VALUE_LIMIT for line in block.split("\n"))


@given(strategies.events)
@example(transitions()[1].event)
def test_git_reads_the_same_block(event) -> None:
    message = encode(event, EVIDENCE)
    command = ["git", "interpret-trailers", "--parse", "--no-divider"]
    read = subprocess.run(command, input=message.encode(), capture_output=True, check=True).stdout.decode()

    assert read.rstrip("\n") == last_paragraph(message)


def test_git_log_prints_single_trailers(repo) -> None:
    write_run(repo)

    def log(key: str) -> list[str]:
        command = ["git", "log", "--reverse", f"--format=%(trailers:key=Skillgit-{key},valueonly,separator=%x7C)"]
        done = subprocess.run([*command, "run/demo-20261121-abcd"], cwd=repo.workdir, capture_output=True, check=True)
        return done.stdout.decode().splitlines()

    assert log("Event") == [
        "run-started", "accepted", "skipped", "slow-proposed", "slow-merged", "accepted", "run-finished"
    ]  # fmt: skip
    assert log("Version") == ["0", "1", "", "", "2", "3", ""]
    assert log("Gate")[1] == (
        "accept_new_best policy=strict metric=hard score=0.6 current=0.4 best=0.4 fixed=3 broken=1 p=0.3125"
    )
    assert log("Eval")[-1].split("|") == [
        "split=test version=0 set=4be1 n=10 scored=10 hard=0.5 soft=0.625 seed=42",
        "split=test version=3 set=4be1 n=10 scored=10 hard=0.7 soft=0.775 seed=42",
    ]


def test_git_groups_and_greps_by_event(repo) -> None:
    write_run(repo)

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=repo.workdir, capture_output=True, check=True, text=True).stdout

    assert len(git("log", "--all", "--grep=^Skillgit-Event: rejected", "--format=%H").split()) == 2
    groups = git("shortlog", "-s", "--group=trailer:skillgit-event", "--branches")
    assert ["2", "rejected"] in [line.split() for line in groups.splitlines()]


def test_message_of_an_accepted_step_reads_like_this() -> None:
    assert (
        encode(transitions()[1].event, EVIDENCE)
        == """\
skill: answer in the unit the question asks for (v1, +0.2000)

Six of forty rollouts lost points on unit mismatch (q17, q22, q31).

The old rule caused four of them.

  + - Answer in the unit the question asks for, and say it.

fixed: q05, q06, q07
broken: q04

Skillgit-Format: 1
Skillgit-Event: accepted
Skillgit-Run: demo-20261121-abcd
Skillgit-Skill: skills/demo
Skillgit-Epoch: 1
Skillgit-Step: 1
Skillgit-Version: 1
Skillgit-Base: 0
Skillgit-Edit: op=replace file=SKILL.md support=4 source=failure anchor=0da5122a
Skillgit-Patch: merged=3 ranked=1 applied=1 skipped=0 budget=4
Skillgit-Eval: split=selection set=4be1 n=10 scored=10 hard=0.6 soft=0.7 seed=42
Skillgit-Gate: accept_new_best policy=strict metric=hard score=0.6 current=0.4 best=0.4 fixed=3 broken=1 p=0.3125
Skillgit-Models: target=offline/student optimizer=offline/teacher
Skillgit-Cost: calls=11 in=1000 out=100 usd=0.24285714285714285 seconds=12.5
Skillgit-Evidence: 3f0b6c1d3f0b6c1d3f0b6c1d3f0b6c1d3f0b6c1d
"""
    )


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda text: text.replace("Skillgit-Format: 1", "Skillgit-Format: 2"), FormatVersionError),
        (lambda text: text.replace("Skillgit-Format: 1\n", ""), TrailerError),
        (lambda text: text + "\nSkillgit-Event: rejected\n", TrailerError),
        (lambda text: text.replace("Skillgit-Event: accepted", "Skillgit-Event: invented"), TrailerError),
        (lambda text: text.replace("Skillgit-Event: accepted", "some prose in the block"), TrailerError),
        (lambda text: text.replace("score=0.6", "score=high"), TrailerError),
        (lambda text: text.replace("score=0.6 ", ""), TrailerError),
        (lambda text: text.replace("score=0.6", "score=0.6 score=0.9"), TrailerError),
        (lambda text: text.replace("Skillgit-Step: 1", "Skillgit-Step: one"), TrailerError),
        (lambda text: text.replace("Skillgit-Step: 1", "Skillgit-Step: 1\nSkillgit-Step: 2"), TrailerError),
        (lambda text: text.replace("op=replace", "op=explode"), TrailerError),
        (lambda text: text.replace("policy=strict ", ""), TrailerError),
        (lambda text: text.replace("split=selection", "split=exam"), TrailerError),
        (lambda text: text.replace("skill: answer", "answer"), TrailerError),
        (lambda text: text.replace("\n", "\r\n"), TrailerError),
        (lambda _: "", TrailerError),
    ],
)
def test_damaged_messages_are_refused(damage, error) -> None:
    with pytest.raises(error):
        decode(damage(encode(transitions()[1].event, EVIDENCE)))


@examples(2)
@given(strategies.events, st.data())
def test_a_message_that_somebody_changed_is_an_event_or_refused(event, data) -> None:
    """Whatever a message says: it is refused with an error of ours, or what is read of it comes back."""
    text = changed(encode(event, EVIDENCE), data)
    slow = SlowText(guidance="", memory="")
    try:
        decoded = decode(text, lambda _: slow)
        again = encode(decoded.event, decoded.evidence)
    except (TrailerError, FormatVersionError):
        return

    assert decode(again, lambda _: slow) == decoded
    assert encode(decode(again, lambda _: slow).event, decoded.evidence) == again


def changed(text: str, data: st.DataObject) -> str:
    """Return ``text`` with a line lost, doubled, swapped or cut, or with some characters put in place of others."""
    lines = text.split("\n")
    place = data.draw(st.integers(0, len(lines) - 1))
    line = lines[place]
    match data.draw(st.sampled_from(["drop", "twice", "swap", "cut", "put"])):
        case "drop":
            del lines[place]
        case "twice":
            lines.insert(place, line)
        case "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[place], lines[other] = lines[other], line
        case "cut":
            lines[place] = line[: data.draw(st.integers(0, len(line)))]
        case _:
            start = data.draw(st.integers(0, len(line)))
            end = data.draw(st.integers(start, min(start + 3, len(line))))
            drawn = st.text("0123456789-+.eE_=% :\r\t\x1bÄ٣abcxyz\ud800", max_size=3)
            lines[place] = line[:start] + data.draw(drawn) + line[end:]
    return "\n".join(lines)


def test_trailers_of_other_tools_in_the_block_do_no_harm() -> None:
    event = transitions()[1].event

    assert decode(encode(event, EVIDENCE) + "Signed-off-by: someone <someone@localhost>\n").event == event


def test_of_very_many_edits_the_first_ones_have_trailers() -> None:
    event = transitions()[1].event
    many = replace(event, edits=event.edits * 60)

    assert len(many.edits) == EDITS_SHOWN
    assert decode(encode(many, EVIDENCE)).event == many


def test_free_events_cost_no_trailer() -> None:
    event = transitions()[3].event
    assert event.kind is EventKind.SKIPPED
    free = Event(
        kind=EventKind.SKIPPED,
        run=event.run,
        skill=event.skill,
        epoch=2,
        step=3,
        patch=event.patch,
        models=MODELS,
        cost=Cost(),
    )

    assert "Skillgit-Cost" not in encode(free, "")
    assert round_trip(free).event == free


def test_an_empty_changed_line_survives() -> None:
    event = transitions()[2].event
    assert event.kind is EventKind.REJECTED
    changes = (Change(sign="-", text=""), Change(sign="+", text="- x"), Change(sign="+", text=""))

    assert round_trip(replace(event, changes=changes)).event.changes == changes


@examples(0.5)
@given(guidance=strategies.guidances, memory=strategies.texts)
@example(guidance="", memory="")
@example(guidance="a\r\n\r\nb", memory="  indented\n\n\n")
def test_slow_texts_survive_the_tree(tmp_path_factory, guidance, memory) -> None:
    repo = reader_repo(tmp_path_factory)
    writer = RunWriter(repo, "x", clock_from(count()))
    first = started("x")
    writer.append(first.event, seed_skill(), first.evidence)
    event = Event(kind=EventKind.SLOW_PROPOSED,
        run="x", skill="skills/demo", epoch=1, step=0, base=0, guidance=guidance, memory=memory, models=MODELS,
        cost=Cost(),
    )  # fmt: skip

    recorded = writer.append(event, None, {})

    assert recorded.event == event
    assert history_reader.read_run(repo, "x")[-1].event == event


def reader_repo(tmp_path_factory):
    from skillgit.store.repo import Repo  # noqa: PLC0415 - a repository per example

    return Repo.init(tmp_path_factory.mktemp("slow"))

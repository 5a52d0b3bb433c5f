"""What events cost, as trailers tell it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import event_strategies as strategies
import pytest
from hypothesis import given
from sample_run import transitions
from soaking import examples

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import EDITS_SHOWN
from skillgit.domain.protected_regions import AppendixCounts
from skillgit.errors import TrailerError
from skillgit.store.commit_message import SlowText, decode, encode

EVIDENCE = "3f0b6c1d" * 5
ROLLOUT = CostPart(
    role="target",
    stage="rollout",
    cost=Cost(calls=40, tokens_in=9000, tokens_out=800, usd=0.1, seconds=12.5, cached=3000, cache_written=500),
)
REFLECT = CostPart(
    role="optimizer", stage="reflect", cost=Cost(calls=2, tokens_in=700, tokens_out=90, reasoning=60, unpriced=2)
)
WHOLE = replace(REFLECT.cost + ROLLOUT.cost, seconds=14.0, parts=(REFLECT, ROLLOUT))
STAGES = (
    "rollout", "selection", "test", "reflect", "deep reflect", "merge", "rank", "budget", "rewrite", "appendix",
    "consolidate", "meta reflect", "slow update", "memory",
)  # fmt: skip


def accepted(cost):
    return replace(transitions()[1].event, cost=cost)


def trailers(message, key):
    return re.findall(rf"^Skillgit-{key}: (.*)$", message, flags=re.MULTILINE)


def test_a_cost_reads_like_this():
    message = encode(accepted(WHOLE), EVIDENCE)
    assert trailers(message, "Cost") == [
        "calls=42 in=9700 out=890 usd=0.1 seconds=14.0 cached=3000 cache-written=500 reasoning=60 unpriced=2"
    ]
    assert trailers(message, "Spent") == [
        "role=optimizer stage=reflect calls=2 in=700 out=90 usd=0.0 seconds=0.0 reasoning=60 unpriced=2",
        "role=target stage=rollout calls=40 in=9000 out=800 usd=0.1 seconds=12.5 cached=3000 cache-written=500",
    ]
    assert decode(message).event.cost == WHOLE


def test_counts_of_0_have_no_words():
    assert trailers(encode(transitions()[1].event, EVIDENCE), "Cost") == [
        "calls=11 in=1000 out=100 usd=0.24285714285714285 seconds=12.5"
    ]


@examples(1)
@given(strategies.events)
def test_a_commit_of_a_skillgit_that_wrote_no_parts_tells_the_whole(event):
    slow = SlowText(guidance=event.guidance, memory=event.memory) if event.kind is EventKind.SLOW_PROPOSED else None
    message = re.sub(r"^Skillgit-Spent: .*\n", "", encode(event, EVIDENCE), flags=re.MULTILINE)
    found = decode(message, slow and (lambda _: slow)).event
    if event.kind is EventKind.SLOW_MERGED:
        assert found == event
    else:
        assert found == replace(event, cost=event.cost.whole)


def test_git_reads_every_part():
    message = encode(accepted(WHOLE), EVIDENCE)
    command = ["git", "interpret-trailers", "--parse", "--no-divider"]
    read = subprocess.run(command, input=message.encode(), capture_output=True, check=True).stdout.decode()
    assert trailers(read, "Spent") == trailers(message, "Spent")
    assert len(trailers(read, "Spent")) == 2


def test_the_largest_step_with_all_its_stages_fits():
    cost = Cost(
        calls=10**6,
        tokens_in=10**10,
        tokens_out=10**9,
        usd=12345.678901234567,
        seconds=123456.7,
        cached=10**9,
        cache_written=10**9,
        reasoning=10**9,
        unpriced=10**6,
    )
    parts = tuple(CostPart(role="optimizer", stage=stage, cost=cost) for stage in sorted(STAGES))
    small = accepted(replace(cost, parts=parts))
    edit = replace(small.edits[0], file="references/a-rather-long-name.md", support=99, fixed=99, broken=99)
    event = replace(small, edits=(edit,) * EDITS_SHOWN, appendix=AppendixCounts(added=9, total=99, consolidated=99))
    assert decode(encode(event, EVIDENCE)).event == event


@pytest.mark.parametrize("damage", ["calls=x", "calls=2 calls=3", "in=700 tokens"])
def test_a_damaged_part_is_refused(damage):
    message = encode(accepted(WHOLE), EVIDENCE).replace("calls=2 in=700", damage)
    with pytest.raises(TrailerError):
        decode(message)

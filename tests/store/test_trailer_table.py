"""The table of trailers says every attribute of every event, and nothing else."""

from __future__ import annotations

import event_strategies as strategies
import pytest
from hypothesis import given
from soaking import examples

from skillgit.domain.cost import Cost
from skillgit.domain.event import FACTS_OF
from skillgit.domain.event_kinds import EventKind
from skillgit.index.schema import AMOUNTS
from skillgit.store.commit_message import encode
from skillgit.store.trailer_table import COST, KINDS, NEEDED, ORIGIN, TRAILERS, bearers
from skillgit.store.trailers import PREFIX, parse_block

ELSEWHERE = {"title", "why", "changes", "fixed", "broken", "guidance", "memory"}
"""What the text above the trailers says, and the tree."""


def test_every_kind_of_event_has_trailers_but_that_of_a_person():
    assert {*KINDS, EventKind.EDITED} == set(EventKind)
    assert bearers("Event") == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_fact_of_an_event_stands_in_one_place(kind):
    said = [trailer.attribute.partition(".")[0] for trailer in TRAILERS if kind in trailer.kinds and trailer.attribute]
    if any(trailer.form is ORIGIN and kind in trailer.kinds for trailer in TRAILERS):
        said += [field.attribute for field in ORIGIN.fields]
    own = set(FACTS_OF[kind].names)

    elsewhere = ELSEWHERE | ({"version"} if kind is EventKind.RUN_STARTED else set())
    assert own == {*said} | (own & elsewhere)
    assert len(said) == len({*said}) + ("cost" in said)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_each_trailer_once(kind):
    keys = [trailer.key for trailer in TRAILERS if kind in trailer.kinds]

    assert len(keys) == len(set(keys))


@examples(1)
@given(strategies.events)
def test_events_bear_the_trailers_of_their_kind(event):
    block = parse_block(encode(event, ""))
    borne = {trailer.key: trailer for trailer in TRAILERS if event.kind in trailer.kinds}

    assert {*block.trailers} <= {"Format", *borne}
    always = {
        key for key, trailer in borne.items() if trailer.said_by_absence(event.kind) is NEEDED and not trailer.many
    }
    assert always <= {*block.trailers}
    assert all(len(found) == 1 or borne[key].many for key, found in block.trailers.items())


def test_the_seed_is_version_0_on_itself():
    bare = [trailer.key for trailer in TRAILERS if EventKind.RUN_STARTED in trailer.kinds and not trailer.attribute]
    assert bare == ["Event", "Version", "Base"]


def test_columns_of_costs_are_the_fields_of_their_trailer():
    assert list(AMOUNTS) == [field.attribute for field in COST.fields]
    assert {name: type(getattr(Cost(), name)) for name in AMOUNTS} == AMOUNTS


def test_keys_are_those_of_git():
    assert all(f"{PREFIX}{trailer.key}".replace("-", "").isalnum() for trailer in TRAILERS)

"""A fact of events is declared once: its trailer, its column and its field in the stream follow."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pytest
from sample_run import transitions

from skillgit.domain.event import FACTS, FACTS_OF, Event, KindFacts, fact, facts_of
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import InvariantError
from skillgit.index.schema import fact_columns
from skillgit.store.trailer_table import INTEGER, NEEDED, TEXT, TRAILERS, trailers_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Wider(Event):
    mood_after: str = fact("How it went", "", on={EventKind.SKIPPED}, column=True)
    laps: int | None = fact("Laps run", needed={EventKind.RUN_FINISHED})


def test_one_line_declares_a_trailer_a_column_and_a_field_of_the_stream():
    *before, mood, laps = trailers_of(Wider)

    assert [(trailer.key, trailer.kinds) for trailer in before] == [(old.key, old.kinds) for old in TRAILERS]
    assert (mood.key, mood.form, mood.attribute, mood.kinds) == ("Mood-After", TEXT, "mood_after", {EventKind.SKIPPED})
    assert (mood.said_by_absence(EventKind.SKIPPED), mood.meaning) == ("", "How it went")
    assert (laps.key, laps.form, laps.said_by_absence(EventKind.RUN_FINISHED)) == ("Laps", INTEGER, NEEDED)
    assert fact_columns(Wider) == fact_columns(Event) | {"mood_after": str}
    facts = facts_of(Wider)
    assert KindFacts(EventKind.SKIPPED, Wider).names == (*FACTS_OF[EventKind.SKIPPED].names, "mood_after")
    assert {*facts} - {*FACTS} == {"mood_after", "laps"}


@pytest.mark.parametrize("sample", transitions(), ids=lambda sample: sample.event.kind)
def test_a_kind_has_what_it_must_have_and_nothing_that_it_cannot_have(sample):
    event, own = sample.event, FACTS_OF[sample.event.kind]
    for name in own.needed:
        if name != "version" or event.kind is not EventKind.RUN_STARTED:
            with pytest.raises(InvariantError, match=f"{event.kind} has no {name}"):
                replace(event, **{name: None})
    defaults = {entry.name: entry.default for entry in fields(Event)}
    for name in FACTS.keys() - {*own.names}:
        donor = next((t.event for t in transitions() if getattr(t.event, name) != defaults[name]), None)
        if donor is not None:
            with pytest.raises(InvariantError, match=f"{event.kind} cannot have the fact {name}"):
                replace(event, **{name: getattr(donor, name)})


def test_a_run_starts_with_version_0():
    start = transitions()[0].event
    assert start.version == 0
    with pytest.raises(InvariantError, match="a run starts with version 0, not 5"):
        replace(start, version=5)

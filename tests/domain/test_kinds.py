"""Every table over an enumeration has a row for each of its members."""

from __future__ import annotations

from typing import get_args

from skillgit.domain.document_rewrite import ProposalKind, UpdateMode
from skillgit.domain.event import KIND_OF, Event
from skillgit.domain.event_kinds import TRAITS, EventKind
from skillgit.engine.reply_schemas import DIALECTS
from skillgit.view.event_marks import LOOKS


def test_each_kind_has_a_class_an_address_and_a_look():
    assert set(KIND_OF) == set(get_args(Event))
    assert list(KIND_OF.values()) == list(EventKind)
    assert set(TRAITS) == set(LOOKS) == set(EventKind)


def test_each_update_mode_has_a_dialect_and_proposes_something():
    assert set(DIALECTS) == set(UpdateMode)
    assert {mode.proposals for mode in UpdateMode} == set(ProposalKind)

"""Every table over an enumeration has a row for each of its members."""

from __future__ import annotations

from skillgit.domain.document_rewrite import ProposalKind, UpdateMode
from skillgit.domain.event import FACTS_OF
from skillgit.domain.event_kinds import TRAITS, EventKind
from skillgit.engine.replies import DIALECTS
from skillgit.view.event_marks import LOOKS


def test_each_kind_has_facts_an_address_and_a_look():
    assert set(TRAITS) == set(FACTS_OF) == set(LOOKS) == set(EventKind)


def test_each_update_mode_has_a_dialect_and_proposes_something():
    assert set(DIALECTS) == set(UpdateMode)
    assert {mode.proposals for mode in UpdateMode} == set(ProposalKind)

"""What events are called: every one once, and what is printed is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stories import moves, told

from skillgit.domain.address import Address, address_of, parse
from skillgit.domain.event_kinds import AddressKind, EventKind

runs = st.one_of(st.just(""), st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True))
addresses = st.builds(Address, st.sampled_from(AddressKind), st.integers(0, 10**15 - 1), runs).map(
    lambda made: Address(made.kind, 0, made.run) if made.kind is AddressKind.END else made
)


@given(addresses)
def test_what_is_printed_is_read_back(address):
    assert parse(str(address)) == address
    assert parse(address.label) == Address(address.kind, address.number)


@given(st.text(max_size=12))
def test_what_is_read_is_printed_again_without_what_means_nothing(text):
    address = parse(text)
    assert address is None or parse(str(address)) == address


@pytest.mark.parametrize("kind", EventKind)
@pytest.mark.parametrize("origin", ["step", "meta", "prune"])
def test_every_kind_of_event_has_an_address(kind, origin):
    assert parse(str(address_of(kind, run="demo", version=1, step=2, epoch=3, origin=origin, number=4, at=5)))


@given(moves)
def test_no_two_events_of_a_run_share_an_address(made):
    events = told(made).finished().events
    named = [event.address for event in events]
    assert len(set(named)) == len(events)
    assert {address.run for address in named} == {events[0].run}


@pytest.mark.parametrize(
    "text", ["", "v", "v-1", "v1 ", "x1", "V1", "v٣", "a/b/v1", "/v1", "vv1", "end1", "v" + "9" * 16]
)
def test_what_is_no_address(text):
    assert parse(text) is None


def test_the_branch_of_an_intervention_is_one_too():
    assert parse("demo/r17-cherry-pick-3") == Address(AddressKind.INTERVENTION, 3, "demo")


def test_an_address_is_short_beside_its_own_run():
    address = Address(AddressKind.VERSION, 7, "demo")
    assert (address.seen_from("demo"), address.seen_from("other")) == ("v7", "demo/v7")

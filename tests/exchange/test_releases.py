"""Releases leave with ``main`` and arrive with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from program import refs
from sample_run import RUN

if TYPE_CHECKING:
    from hosts import Person

FIRST = "refs/tags/demo/v1.0.0"


def released(host) -> dict[str, str]:
    return {name: oid for name, oid in refs(host.path).items() if name.startswith("refs/tags/demo/")}


def test_a_release_goes_with_main_and_arrives_with_a_pull(host, ann, clone):
    ann.push()
    bob = clone("bob")
    ann("promote", f"{RUN}/v1", "--release", "1.0.0")

    dry = json.loads(ann.push("--dry-run", "--json").out)
    assert [row["state"] for row in dry["refs"] if row["ref"] == FIRST] == ["pushed"]
    assert released(host) == {}
    told = ann.push()
    assert ["releases", "pushed", "1", "tag"] in [row.split() for row in told.out.splitlines()]
    assert released(host) == {FIRST: ann.own()[FIRST]}

    would = bob("pull", "--dry-run")
    assert ["releases", "new", "demo/v1.0.0"] in [row.split() for row in would.out.splitlines()]
    assert FIRST not in bob.own()
    bob("pull")
    assert bob.own()[FIRST] == ann.own()[FIRST]
    assert bob.git("cat-file", "-t", "demo/v1.0.0") == "tag\n", "it stays annotated"
    assert "releases" not in bob("pull").out
    assert clone("carl").own()[FIRST] == ann.own()[FIRST]


def test_one_version_that_both_released_is_left_on_either_side_and_told(host, ann, clone):
    ann.push()
    bob = clone("bob")
    ann("promote", f"{RUN}/v1", "--release", "1.0.0")
    ann.push()
    bob.git("tag", "demo/v1.0.0", "main")
    bob.git("tag", "demo/v1.0.1", "main")
    mine = bob.own()[FIRST]

    bob("pull")
    done = bob.push(code=4)

    assert "demo/v1.0.0 was not pushed: origin has another release of that version\n" in done.err
    assert "hint: release yours under another version" in done.err
    assert bob.own()[FIRST] == mine != released(host)[FIRST]
    assert "refs/tags/demo/v1.0.1" in released(host), "the others go"


def test_tags_of_other_things_are_left_to_git(host, ann: Person):
    ann.git("tag", "library/v1.2.3", "main")
    ann.git("tag", "nightly", "main")
    ann.push()
    assert not {"refs/tags/library/v1.2.3", "refs/tags/nightly"} & refs(host.path).keys()

"""``gate.pinned: type:NAME``: all selection items of a task type are pinned."""

from __future__ import annotations

import pytest

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.run_setup import set_up
from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError


def test_the_items_of_the_type_are_pinned(empty):
    setup = set_up(load_config(empty, "trigger/default", ()))
    near = {item.id for item in setup.task.items[Split.SELECTION] if item.task_type == "near miss"}
    assert setup.pins == near
    assert len(near) == 6
    assert {item for item in near if setup.rule.protects(item)} == near


def test_a_type_that_no_item_has_is_refused_by_the_types_there_are(empty):
    config = load_config(empty, "trigger/default", ("gate.pinned=type:near",))
    with pytest.raises(ConfigError, match="task type 'near'") as caught:
        set_up(config)
    assert caught.value.hint == "the selection items are of the types near miss, should load"
    assert set_up(config, gates=False).pins == frozenset()

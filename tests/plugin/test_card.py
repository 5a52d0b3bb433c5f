"""A card says what a benchmark is, without its code; what is wrong with one is said in a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import skillgit_envs
from skillgit.errors import ConfigError
from skillgit.plugin.card import CARD, read_card, row_fields
from skillgit.plugin.registry import ENVIRONMENTS, card_folder, environment_info, installed, load_environment

CARDS = sorted(Path(skillgit_envs.__path__[0]).glob(f"*/{CARD}"))
SMALL = {"name": "a", "summary": "b", "fields": {"question": "c"}, "scorer": "d", "source": "e"}


def written(folder: Path, **change: object) -> Path:
    (folder / CARD).write_text(yaml.safe_dump({**SMALL, **change}, sort_keys=False))
    read_card.cache_clear()
    return folder


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_a_card_is_what_its_class_says_and_is_found_by_its_name(card):
    name = card.parent.name
    assert card_folder(name) == card.parent
    assert environment_info(name, Path()) is load_environment(name, Path()).info
    assert read_card(card.parent).name == name
    assert set(row_fields(card.parent)) - set(read_card(card.parent).fields) <= {
        "id",
        "task_type",
        "source",
        "subtask",
        "index",
    }


def test_every_environment_of_ours_has_a_card():
    ours = {plugin.name for plugin in installed(ENVIRONMENTS) if plugin.reference.startswith("skillgit_envs.")}
    assert ours == {card.parent.name for card in CARDS}


def test_what_all_environments_say_is_read_without_their_code():
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from skillgit.plugin.registry import ENVIRONMENTS, environment_info, installed\n"
        "for plugin in installed(ENVIRONMENTS):\n    environment_info(plugin.name, Path())\n"
        "print([name for name in sys.modules if name.startswith('skillgit_envs.')])\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"summary": None}, "summary cannot be used"),
        ({"sumary": "x"}, "sumary"),
        ({"fields": ["question"]}, "fields cannot be used"),
        ({"options": {"luck": None}}, "no environment shares an option 'luck'"),
        ({"options": {"luck": {"help": "x"}}}, "the option 'luck' has no default"),
        ({"options": {"luck": {"help": "x", "default": 1, "valus": {}}}}, "valus"),
        ({"options": ["data"]}, "cannot be read"),
        ({"public": {"kind": "web"}}, "public.place cannot be used"),
        ({"public": {"kind": "moon", "place": "a", "layout": "b"}}, "public.kind cannot be used"),
        ({"needs": [{"kind": "extra"}]}, "needs.0.name cannot be used"),
    ],
)
def test_what_is_wrong_with_a_card_is_said(change, words, tmp_path):
    with pytest.raises(ConfigError, match=words) as refused:
        read_card(written(tmp_path, **change))
    assert refused.value.message.startswith(str(tmp_path / CARD))
    assert refused.value.hint == "docs/extending.md shows a card"


@pytest.mark.parametrize("text", ["", "- a", "a: [", "a: 1\n  b: 2"])
def test_a_file_that_is_no_card_is_refused(text, tmp_path):
    (tmp_path / CARD).write_text(text)
    read_card.cache_clear()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_card(tmp_path)


def test_a_shared_option_may_be_said_otherwise_and_a_subset_says_what_differs(tmp_path):
    public = {"kind": "web", "place": "https://a", "layout": "b", "files": ["x"], "subsets": {"half": {"files": ["y"]}}}
    info = read_card(written(tmp_path, options={"pictures": None, "max_turns": {"default": 12}}, public=public))
    assert [(option.name, option.default) for option in info.options][-2:] == [("max_image_mb", 5.0), ("max_turns", 12)]
    assert info.options[-1].help == "Replies until one holds an answer."
    assert info.public.subsets["half"].files == ("y",)
    assert info.public.subsets["half"].place == "https://a"

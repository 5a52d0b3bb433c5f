"""One home of "did you mean": every name that one slip leads away from is an error that names what was meant."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.config.schema import EnvSettings, keys
from skillgit.app.workspace.context import Context
from skillgit.domain.did_you_mean import did_you_mean, near_names, slips
from skillgit.errors import ConfigError, DataError
from skillgit.plugin import registry
from skillgit_envs.tasks.reading import Reader

LETTERS = string.ascii_lowercase + "_"
FIELDS = sorted(
    {"question", "prompt", "answer", "answers", "choices", "context", "split", "group", "check", "checks", "rubric"}
)


@st.composite
def slipped(draw, words):
    """Return a word and the same with one slip in it, which is no other of ``words``."""
    word = draw(st.sampled_from(words))
    start = word.rpartition(".")[2]
    place = draw(st.integers(1, len(start) - 2)) + len(word) - len(start)
    match draw(st.sampled_from(["more", "less", "other", "order"])):
        case "more":
            typo = word[:place] + draw(st.sampled_from(LETTERS)) + word[place:]
        case "less":
            typo = word[:place] + word[place + 1 :]
        case "other":
            typo = word[:place] + draw(st.sampled_from(LETTERS)) + word[place + 1 :]
        case _:
            typo = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return word, typo if typo != word else f"{word}s"


def known_keys():
    names = list(keys(EnvSettings))
    for plugin in registry.installed(registry.BACKENDS):
        listed = registry.load_backend(plugin.name, None).info.settings
        names += [f"model.{plugin.name}_{name}" for name in listed or ()]
    return sorted(name for name in names if len(name.rpartition(".")[2]) >= 4)


KEYS = known_keys()


@pytest.mark.parametrize(
    ("word", "other", "count"),
    [("split", "spilt", 1), ("answer", "anwser", 1), ("ab", "ba", 1), ("train", "trian", 1), ("a", "a", 0)],
)
def test_a_transposition_is_one_slip(word, other, count):
    assert slips(word, other, 3) == slips(other, word, 3) == count


@given(st.text(LETTERS, max_size=12), st.text(LETTERS, max_size=12), st.integers(0, 5))
def test_slips_are_symmetric_and_bounded(first, second, most):
    count = slips(first, second, most)
    assert count == slips(second, first, most) <= most + 1
    assert (count == 0) is (first == second)


@given(slipped(KEYS))
def test_the_name_meant_is_among_those_named(pair):
    word, typo = pair
    assert word in near_names(typo, KEYS, most=len(KEYS))


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory):
    return Context.from_process(tmp_path_factory.mktemp("near"))


@examples(2)
@given(pair=slipped(KEYS))
def test_a_key_with_one_slip_is_an_error_that_names_a_key_one_slip_away(somewhere, pair):
    _, typo = pair
    if typo in KEYS:
        return
    with pytest.raises(ConfigError, match=f"no key '{re.escape(typo)}'") as refused:
        load_config(somewhere, "demo", [f"{typo}=1"])
    assert refused.value.hint.startswith("did you mean")
    assert slips(refused.value.hint.split("'")[1], typo, 1) <= 1


@pytest.mark.parametrize("field", FIELDS)
@given(data=st.data())
def test_a_field_of_a_task_with_one_slip_is_an_error_that_names_one(field, data, tmp_path_factory):
    _, typo = data.draw(slipped([field]))
    row = {"question": "What?", "answer": "that", typo: "train"}
    if typo in FIELDS or len(typo) < 4:
        return
    with pytest.raises(DataError, match=f"has the field '{typo}'") as refused:
        Reader().item("row 1", row, tmp_path_factory.getbasetemp() / "tasks.jsonl")
    assert slips(refused.value.hint.split("'")[1], typo, 1) == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("trian", "demo"), "train"),
        (("satus",), "status"),
        (("tasks", "reveiw"), "review"),
        (("runs", "--jsno"), "--json"),
        (("--color", "allways", "runs"), "always"),
        (("plugins", "opneai_chat"), "openai_chat"),
        (("plugins", "saerchqa"), "searchqa"),
        (("plugins", "skilopt"), "skillopt"),
        (("config", "searchqa/defualt"), "searchqa/default"),
        (("config", "demo", "-o", "model.target_backend=opneai_chat"), "openai_chat"),
        (("config", "demo", "-o", "model.target_backend=ollama"), "openai_compatible"),
        (("config", "demo", "-o", "model.target_backend=LM-Studio"), "openai_compatible"),
        (("config", "demo", "-o", "model.base_url=http://x"), "model.openai_compatible_base_url"),
        (("config", "demo", "-o", "model.openai_compatible_api=chta"), "chat"),
        (("config", "demo", "-o", "gate.policy=piared"), "paired"),
        (("config", "demo", "-o", "tran.num_epochs=2"), "train.num_epochs"),
    ],
)
def test_every_kind_of_name_has_the_same_answer(typed, meant, skillgit):
    ended = skillgit(*typed)
    assert ended.code in (2, 3)
    assert "did you mean" in ended.err
    assert f"'{meant}'" in ended.err


@pytest.mark.parametrize("key", ["model.openai_compatible_nonsense", "model.target_nonsense", "model.nonsense"])
def test_config_refuses_what_train_refuses(skillgit, key):
    for command in ("config", "train"):
        ended = skillgit(command, "demo", "-o", f"{key}=5")
        assert ended.code == 2
        assert f"no key '{key}'" in ended.err


def test_nothing_near_is_answered_with_what_there_is():
    assert did_you_mean("zzz", ["alpha"], otherwise="there is alpha") == "there is alpha"
    assert did_you_mean("", ["a", "b"], otherwise="x") == "x"
    assert did_you_mean("q1", ["q10", "q01"], most=2) == "did you mean 'q10' or 'q01'?"

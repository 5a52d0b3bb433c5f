"""Laws of every verb: what it may be asked survives the way through a command line, and its answer has every form."""

from __future__ import annotations

from dataclasses import MISSING
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillgit.app.workspace.request import Arg, parameters
from skillgit.errors import UsageError
from skillgit.verbs.command_line import read_words, verb_of
from skillgit.verbs.verb import EFFECTS, Effect, Form
from skillgit.view.catalogue import ENTRIES

VERBS = {name: verb_of(name) for name, entry in ENTRIES.items() if entry.module}

# what a shell hands over: no empty word and none that begins an option
WORDS = st.text("abcz09/.=:é ", min_size=1, max_size=8).filter(lambda word: word.strip() == word)


def values_of(parameter):
    kind, description = parameter.plain_type, parameter.description
    if kind is bool:
        return st.booleans()
    if issubclass(kind, Enum):
        one = st.sampled_from(kind)
    elif getattr(description, "choices", ()):
        one = st.sampled_from(list(description.choices))
    elif kind is int:
        one = st.integers(getattr(description, "least", None) or 0, 10**6)
    elif kind is float:
        one = st.floats(0.5, 1e6)
    else:
        one = WORDS.map(lambda word: Path(f"x{word}")) if issubclass(kind, Path) else WORDS
    return st.lists(one, min_size=int(parameter.required), max_size=3).map(tuple) if parameter.many else one


@st.composite
def requests(draw, verb):
    """Draw a request; arguments are filled from the left, as on a command line."""
    chosen, is_open = {}, True
    for parameter in parameters(verb.request):
        is_argument = isinstance(parameter.description, Arg) and not parameter.description.after_dashes
        is_needed = parameter.field.default is MISSING and parameter.field.default_factory is MISSING
        wanted = draw(st.booleans()) and (is_open or not is_argument)
        if is_needed or wanted:
            value = draw(values_of(parameter))
            chosen[parameter.name] = value
            wanted = bool(value)
        if is_argument:
            is_open = is_open and (is_needed or wanted)
    return verb.request(**chosen)


@pytest.mark.parametrize("name", VERBS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_request_survives_its_command_line(name, data):
    verb = VERBS[name]
    request = data.draw(requests(verb))
    assert read_words(verb.words(request)) == (verb, request)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_called_as_the_catalogue_says_and_describes_every_field(name):
    verb = VERBS[name]
    assert verb.name == name
    assert {parameter.name for parameter in parameters(verb.request)} == {*verb.request.__dataclass_fields__}


@pytest.mark.parametrize("name", VERBS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_what_reads_asks_nothing_and_everything_else_does(name, data):
    verb = VERBS[name]
    request = data.draw(requests(verb))
    assert (verb.question(request) == "") is (verb.effect_of(request) is Effect.READS)
    assert set(EFFECTS) == set(Effect)


@pytest.mark.parametrize("name", VERBS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_what_asks_models_has_a_dry_run_with_a_plan_and_caps(name, data):
    verb = VERBS[name]
    request, names = data.draw(requests(verb)), {parameter.name for parameter in parameters(verb.request)}
    if verb.effect_of(request) is Effect.PAYS:
        assert {"dry_run", "max_calls", "max_tokens", "max_usd"} <= names
        assert Form.JSON in verb.forms


@pytest.mark.parametrize(("words", "hint"), [(["fetch"], "skillgit help --all"), (["cost", "--wrong"], "--help")])
def test_words_that_ask_for_nothing_are_refused(words, hint):
    with pytest.raises(UsageError) as error:
        read_words(words)
    assert error.value.hint.endswith(hint)


@pytest.mark.parametrize("name", [name for name in VERBS if any(p.required for p in parameters(VERBS[name].request))])
def test_what_must_be_given_is_missed(name):
    with pytest.raises(UsageError, match=r"(?i)missing"):
        read_words(name.split())

"""Laws of every verb: what it may be asked survives the way through a command line, and its answer has every form;
an option that commands share is declared once, stands anywhere on the line, and means one thing or is refused.
"""

from __future__ import annotations

import shlex
from dataclasses import MISSING, fields, replace
from enum import Enum
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples

from skillgit.app.workspace.request import Arg, Shared, SharedOptions, command_words, parameters
from skillgit.cli.main import cli
from skillgit.errors import ExitCode, UsageError
from skillgit.verbs.command_line import SHARED, read_words, verb_command, verb_of
from skillgit.verbs.verb import EFFECTS, Effect, Form
from skillgit.view.catalogue import ENTRIES

VERBS = {name: verb_of(name) for name, entry in ENTRIES.items() if entry.module}
COMMANDS = {name: verb_command(name) for name in VERBS}
VALUES = {"overrides": "a.b=1", "max_calls": "3", "max_tokens": "3", "max_usd": "2.5"}
OWN = {("init", "--skill"), ("verify", "--skill"), ("gate", "--config"), ("log", "-n")}
"""Where a command has an option of its own by the name of a shared one."""

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
@examples(0.5)
@given(data=st.data())
def test_a_request_survives_its_command_line(name, data):
    verb = VERBS[name]
    request = data.draw(requests(verb))
    assert read_words(verb.words(request)) == (verb, request)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_called_as_the_catalogue_says_and_describes_every_field(name):
    verb = VERBS[name]
    assert verb.name == name
    assert {parameter.name for parameter in parameters(verb.request)} == {field.name for field in fields(verb.request)}


@pytest.mark.parametrize("name", VERBS)
@examples(0.3)
@given(data=st.data())
def test_what_reads_asks_nothing_and_everything_else_does(name, data):
    verb = VERBS[name]
    request = data.draw(requests(verb))
    assert (verb.question(request) == "") is (verb.effect_of(request) is Effect.READS)
    assert set(EFFECTS) == set(Effect)


@pytest.mark.parametrize("name", VERBS)
@examples(0.3)
@given(data=st.data())
def test_what_asks_models_has_a_dry_run_with_a_plan_and_caps(name, data):
    verb = VERBS[name]
    request, names = data.draw(requests(verb)), {parameter.name for parameter in parameters(verb.request)}
    if verb.effect_of(request) is Effect.PAYS:
        assert {"dry_run", "max_calls", "max_tokens", "max_usd"} <= names
        assert Form.JSON in verb.forms


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["fetch"], "skillgit --help"),
        ([], "skillgit --help"),
        (["tasks"], "skillgit tasks --help"),
        (["cost", "--wrong"], "--help"),
    ],
)
def test_words_that_ask_for_nothing_are_refused(words, hint):
    with pytest.raises(UsageError) as error:
        read_words(words)
    assert error.value.hint.endswith(hint)


@pytest.mark.parametrize("name", [name for name in VERBS if any(p.required for p in parameters(VERBS[name].request))])
def test_what_must_be_given_is_missed(name):
    with pytest.raises(UsageError, match=r"(?i)missing"):
        read_words(name.split())


def shared_words(option):
    return [option.long] if option.is_flag else [option.long, VALUES.get(option.key, "x")]


def smallest(name):
    """Return a command line of ``name`` that can be understood."""
    required = [part for part in parameters(VERBS[name].request) if part.required]
    values = [("bash" if name == "completion" else "x", *part.options) for part in required]
    return [*name.split(), *(word for value, *names in values for word in (*names[:1], value))]


@pytest.mark.parametrize("name", VERBS)
@examples(0.4)
@given(data=st.data())
def test_a_request_is_the_same_with_shared_options_before_the_command_or_behind_it(name, data):
    verb = VERBS[name]
    request = data.draw(requests(verb))
    names = {part.name for part in parameters(verb.request) if isinstance(part.description, Shared)}
    words = command_words(SharedOptions(**{name: getattr(request, name) for name in names}))
    defaults = {field.name: field.default for field in fields(verb.request) if field.name in names}
    own = verb.words(replace(request, **defaults))
    assert read_words([*words, *own]) == (verb, request)


@pytest.mark.parametrize("name", VERBS)
def test_a_shared_option_is_understood_at_every_place_or_refused_in_one_sentence(name):
    own = smallest(name)
    for option in SHARED:
        if not option.lack or (name, option.long) in OWN:
            continue
        given_words = shared_words(option)
        places = [[*given_words, *own], [*own, *given_words], [own[0], *given_words, *own[1:]]]
        if option.key in COMMANDS[name].keys:
            assert len({repr(read_words(words)) for words in places}) == 1
            continue
        refusals = set()
        for words in places:
            with pytest.raises(UsageError, match=f"{name} does not take {option.long}: ") as refusal:
                read_words(words)
            refusals.add((refusal.value.message, refusal.value.hint, refusal.value.exit_code))
        assert len(refusals) == 1
        assert next(iter(refusals))[1:] == (f"skillgit {name} --help", ExitCode.USAGE)


@pytest.mark.parametrize("name", VERBS)
def test_help_and_completion_say_which_shared_options_a_command_has(name):
    command = COMMANDS[name]
    context = click.Context(command, info_name=f"skillgit {name}")
    text = " ".join(command.get_help(context).split())
    offered = {item.value for item in command.shell_complete(context, "-")}
    assert text.endswith("options of every command (skillgit help options)")
    assert "Also: and" not in text
    for option in command.shared():
        if (name, option.long) not in OWN:
            is_understood = not option.lack or option.key in command.keys
            assert (option.long in offered) is is_understood
            assert (f"{option.long} " in f"{command.also.replace(',', ' ')} ") is (option.key in command.keys)


def test_completion_offers_them_before_the_command_too():
    offered = {item.value for item in cli.shell_complete(click.Context(cli, **cli.context_settings), "-")}
    assert {name for option in SHARED for name in option.opts} <= offered


def test_they_are_listed_once_and_each_command_lists_its_own_only():
    shared = {name for option in SHARED for name in option.opts}
    own = [
        (name, option, param)
        for name, command in COMMANDS.items()
        for param in command.params
        if isinstance(param, click.Option)
        for option in param.opts
    ]
    assert {(name, option) for name, option, _ in own if option in shared} == OWN
    assert len({id(param) for _, _, param in own}) + len(SHARED) <= 290


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("--skill town init", "init --skill town"),
        ("--skill folder verify CLAIM", "verify CLAIM --skill folder"),
        ("--config a.yaml gate --base main", "gate --base main --config a.yaml"),
        ("-o a.b=1 train demo -o c.d=2", "train demo -o a.b=1 -o c.d=2"),
        ("--max-calls 3 train demo --max-calls 4", "train demo --max-calls 4"),
        ("tasks --skill town draft", "tasks draft --skill town"),
        ("-C elsewhere log --no-pager", "log"),
    ],
)
def test_before_the_command_they_mean_what_they_mean_behind_it(words, same):
    assert read_words(shlex.split(words)) == read_words(shlex.split(same))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("train --config demo", "train does not take --config: write CONFIG without it"),
        ("-n log", "log does not take --dry-run: it has no dry run"),
        ("log --max-usd 2", "log does not take --max-usd: it asks no model"),
        ("eval v1 --as-of v0", "eval does not take --as-of: it does not show the past"),
        ("status --plain", "status does not take --plain: its answer is not a list"),
        ("--skill '' log", "--skill is empty"),
        ("log --skill=", "--skill is empty"),
    ],
)
def test_the_sentence_says_why(words, sentence):
    with pytest.raises(UsageError) as refusal:
        read_words(shlex.split(words))
    assert refusal.value.message == sentence

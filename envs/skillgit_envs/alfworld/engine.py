"""TextWorld's engine for PDDL games, made safe and quick; importing this module takes a second and 70 MB.

Three things are replaced in it, in this process only. Expressions of a grammar are not given to ``eval``. What is
parsed again and again is parsed once: grammar symbols and queries in this process, whole games in all forks of the
server, by way of a folder that is private to them. Symbols are copied as far as they are changed and no further.
Transcripts stay the same byte by byte; a test compares them. Two games are played first, so that all forks know the
grammar.
"""

# mypy: disable-error-code="import-untyped"
# ruff: noqa: ANN401 - TextWorld has no types

from __future__ import annotations

import ast
import copy
import hashlib
import os
import pickle
import re
import string
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import fast_downward
import gymnasium
import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from gymnasium import spaces
from textworld.envs.pddl import logic, textgen
from textworld.envs.pddl.pddl import PddlEnv
from textworld.logic import Rule

from skillgit_envs.alfworld.games import Recipe
from skillgit_envs.alfworld.generator import build

_parse_symbols = textgen._parse_and_convert  # noqa: SLF001 - there is no other place to remember what it parses
_parse_logic = logic._parse_and_convert  # noqa: SLF001
_pddl2sas = fast_downward.pddl2sas


def open_game(data: Mapping[str, Any], *, planner: bool = False) -> Any:
    """Return TextWorld's environment of a game file's content; ``planner``, for tests, adds how it would win."""
    infos = textworld.EnvInfos(admissible_commands=True, won=True, feedback=True, policy_commands=planner)
    game = AlfredDemangler(PddlEnv(infos))
    game.load(dict(data))
    return game


def install(folder: Path, *, planner: bool = False) -> None:
    """Replace the slow and the unsafe parts of TextWorld in this process; the private ``folder`` keeps parsed games."""
    textgen._parse_and_convert = _symbols  # noqa: SLF001
    textgen.copy_context = _copied_context
    textgen.Symbol.copy = _copied
    textgen.EvalSymbol.derive = _derived
    textgen.deepcopy = _copied_symbols
    Rule.parse_conjunctive_query = staticmethod(lru_cache(maxsize=1024)(Rule.parse_conjunctive_query))

    def logic_of(text: str, rule_name: str) -> Any:
        return _kept(folder, lambda: _parse_logic(text, rule_name=rule_name), "logic", rule_name, text)

    def problem_of(domain: str, problem: str, verbose: object = None, optimize: bool = False) -> Any:  # noqa: FBT001, FBT002 - as TextWorld calls it
        del verbose
        thorough = optimize and planner
        produce = lambda: _pddl2sas(domain, problem, optimize=thorough)  # noqa: E731 - it is called at most once
        return _kept(folder, produce, "problem", str(thorough), domain, problem)

    logic._parse_and_convert = logic_of  # noqa: SLF001
    fast_downward.pddl2sas = problem_of


def _kept(folder: Path, produce: Callable[[], Any], *key: str) -> Any:
    """Return what ``produce`` makes, read from ``folder`` if it was made before."""
    name = hashlib.sha256("\0".join(key).encode()).hexdigest()
    path = folder / name
    if path.is_file():
        return pickle.loads(path.read_bytes())  # noqa: S301 - only this class of processes writes there
    product = produce()
    draft = folder / f"{name}.{os.getpid()}"
    draft.write_bytes(pickle.dumps(product, protocol=pickle.HIGHEST_PROTOCOL))
    draft.replace(path)
    return product


@lru_cache(maxsize=4096)
def _remembered_symbols(text: str, rule_name: str) -> list[Any]:
    symbols: list[Any] = _parse_symbols(text, rule_name=rule_name)
    return symbols


def _symbols(text: str, rule_name: str = "symbols", **_: object) -> list[Any]:
    return [_copied(symbol, None) for symbol in _remembered_symbols(text, rule_name)]


def _copied_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """Copy what a derivation changes: which variables there are, not what they stand for."""
    return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}


def _copied(symbol: Any, context: Mapping[str, Any] | None) -> Any:
    clone = copy.copy(symbol)
    clone.context = {} if context is None else _copied_context(context)
    if isinstance(clone, textgen.ListSymbol):
        clone.symbol = _copied(clone.symbol, None)
    return clone


def _copied_symbols(value: Any) -> Any:
    """Replace ``deepcopy``, which the grammar applies to lists of symbols."""
    return [_copied(symbol, None) for symbol in value] if isinstance(value, list) else copy.copy(value)


def _derived(symbol: Any, context: Mapping[str, Any] | None = None) -> list[Any]:
    variables = (context or symbol.context)["variables"]
    return [textgen.TerminalSymbol(compiled(symbol.expression)(variables))]


ATTRIBUTES = frozenset({"name", "id", "type", "definite", "indefinite", "adj", "noun", "desc"})
"""What an expression may ask of an entity."""


class ExpressionError(Exception):
    """An expression that is not understood, and therefore not evaluated."""


@lru_cache(maxsize=1024)
def compiled(expression: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return what evaluates ``expression``: names, attributes, texts, ``+`` and ``or``, and nothing else."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ExpressionError(f"'{expression}' is not an expression") from error
    return _compiled(tree.body, expression)


def _compiled(node: ast.expr, expression: str) -> Callable[[Mapping[str, Any]], Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        value = node.value
        return lambda _: value
    if isinstance(node, ast.Name):
        name = node.id
        return lambda variables: variables[name]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in ATTRIBUTES:
        owner, attribute = node.value.id, node.attr
        return lambda variables: getattr(variables[owner], attribute)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        first, second = _compiled(node.left, expression), _compiled(node.right, expression)
        return lambda variables: first(variables) + second(variables)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        options = [_compiled(value, expression) for value in node.values]
        return lambda variables: next((result for option in options if (result := option(variables))), "")
    raise ExpressionError(f"'{expression}' is more than a game's grammar may say")


OBSERVATION_CHARACTERS = 4000
COMMANDS = 400
_LETTERS = string.ascii_letters + string.digits + string.punctuation + " \n"
_GREETING = re.compile(r"\A-= Welcome to TextWorld, ALFRED! =-\s*")
_FOREIGN = re.compile(f"[^{re.escape(_LETTERS)}]")


class GameEnv(gymnasium.Env[str, str]):
    """A household game of ALFWorld, from the content of its ``game.tw-pddl`` file.

    An action is one of the admissible commands; any other text changes nothing and takes a step all the same. The
    reward is 1 in the step that wins the game and 0 otherwise. ``info`` holds ``commands``, the admissible commands in
    alphabetical order without ``help``, and ``won``; with ``planner``, for tests, also ``plan``: how it would win.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - declared so by gymnasium

    def __init__(self, game: Mapping[str, Any], max_steps: int = 50, *, planner: bool = False) -> None:
        self.observation_space = spaces.Text(OBSERVATION_CHARACTERS, charset=_LETTERS)
        self.action_space = spaces.Text(200, charset=_LETTERS)
        self._game = open_game(game, planner=planner)
        self._max_steps = max_steps
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start over; a game has no chance in it, so that ``seed`` changes nothing."""
        super().reset(seed=seed, options=options)
        self._steps = 0
        state = self._game.reset()
        return observed(_GREETING.sub("", state.feedback)), _info(state)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        state, _, _ = self._game.step(str(action))
        won = bool(state["won"])
        return observed(state.feedback), float(won), won, not won and self._steps >= self._max_steps, _info(state)


def observed(text: str) -> str:
    """Return ``text`` in the letters that the observation space has, shortened if it is very long."""
    clean = _FOREIGN.sub("?", text.strip())
    if len(clean) <= OBSERVATION_CHARACTERS:
        return clean
    tail = f"\n[... {len(clean) - OBSERVATION_CHARACTERS} characters or more left out ...]"
    return clean[: OBSERVATION_CHARACTERS - len(tail)] + tail


def _info(state: Any) -> dict[str, Any]:
    commands = [command.strip() for command in state["admissible_commands"] if command.strip() != "help"]
    info = {"commands": commands[:COMMANDS], "won": bool(state["won"])}
    plan = state.get("policy_commands")
    return info | ({"plan": list(plan)} if plan is not None else {})


_STEPS = 24
_REHEARSED = (
    Recipe(task="pick_heat_then_place_in_recep", room="kitchen", thing="Potato", target="DiningTable", seed=1),
    Recipe(task="look_at_obj_in_light", room="bedroom", thing="Book", target="DeskLamp", seed=1),
)


def opened(opening: Mapping[str, Any]) -> GameEnv:
    game = opening["game"] if "game" in opening else build(Recipe.parse(opening["recipe"], "the item"))
    return GameEnv(game, opening["max_steps"])


def warm_up() -> None:
    """Play two games, preferring kinds of commands that were not given yet."""
    for recipe in _REHEARSED:
        game = GameEnv(build(recipe), _STEPS)
        _, info = game.reset()
        counts: dict[str, int] = {}
        for _ in range(_STEPS):
            command = min(info["commands"], key=lambda text: (counts.get(_kind(text), 0), counts.get(text, 0), text))
            for name in (_kind(command), command):
                counts[name] = counts.get(name, 0) + 1
            _, _, is_terminal, is_truncated, info = game.step(command)
            if is_terminal or is_truncated:
                break


def _kind(command: str) -> str:
    return command.partition(" ")[0]

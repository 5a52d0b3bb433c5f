"""ALFWorld: household tasks in a text game, played by the real TextWorld engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath
from typing import Any

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.ids import short_digest
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit.plugin.backend import Message, assistant, system, user
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row, raise_all, read_each, text_field
from skillgit.plugin.environment import Judge, PublishedRow, Target
from skillgit.plugin.splits import SUFFIXES, Splits, check, divide
from skillgit_envs.alfworld import games
from skillgit_envs.alfworld.games import GENERATOR, TASK_TYPES, Recipe
from skillgit_envs.alfworld.simulator import Game, Simulator
from skillgit_envs.shipped_environment import PackagedEnvironment, PromptWording, prompt_file, sections, with_skill

REPLY_CHARACTERS = 2000  # so much of an earlier reply is shown again


def seen(observation: str, commands: Sequence[str] = ()) -> str:
    """Return what the target sees, followed by the commands that are possible, if they are to be shown."""
    text = f"<observation>\n{observation}\n</observation>"
    return f"{text}\n\n<commands>\n{chr(10).join(commands)}\n</commands>" if commands else text


def shortened(reply: str) -> str:
    """Return a reply as the conversation keeps it: whole, or without the middle of a long thought."""
    if len(reply) <= REPLY_CHARACTERS:
        return reply
    part = REPLY_CHARACTERS // 2
    return f"{reply[:part]}\n[... {len(reply) - 2 * part} characters left out ...]\n{reply[-part:]}"


def conversation(
    instructions: str, observations: Sequence[str], replies: Sequence[str], commands: Sequence[str], history: int
) -> list[Message]:
    """Return the messages that ask for the next command, with the last ``history`` replies; 0 shows all."""
    # ``observations`` begin with the task and are one more than ``replies``; only the last message lists ``commands``.
    first = max(len(replies) - history, 0) if history else 0
    opening = seen(observations[0], commands if not replies else ())
    if first:
        gap = f"[... {first} {'command' if first == 1 else 'commands'} left out ...]"
        last = first == len(replies)
        opening = f"{opening}\n\n{gap}\n\n{seen(observations[first], commands if last else ())}"
    messages = [system(instructions), user(opening)]
    for index in range(first, len(replies)):
        options = commands if index == len(replies) - 1 else ()
        messages += [assistant(replies[index]), user(seen(observations[index + 1], options))]
    return messages


REFERENCE_HISTORY = 2
_TASK = "Your task is to:"


def reference_messages(
    skill: Skill, observations: Sequence[str], actions: Sequence[str], commands: Sequence[str], history: int
) -> list[Message]:
    """Return the messages as the reference asks: every step is a question of its own, with ``history`` steps or 2."""
    scene = {"observation": observations[-1]}
    if actions:
        first = max(len(actions) - (history or REFERENCE_HISTORY), 0)
        steps = zip(observations[first:], actions[first:], strict=False)
        recent = "\n\n".join(f"{observation}\n> {command or 'none'}" for observation, command in steps)
        task = observations[0].rpartition(_TASK)[2].strip()
        scene = {"task": task, "steps_so_far": str(len(actions)), "last_steps": recent, **scene}
    possible = "\n".join(f"'{command}'" for command in commands if command != "help")
    parts = (
        with_skill("{skill}", skill, PromptWording.REFERENCE),
        sections(**scene, possible_actions=possible),
        prompt_file(__package__, "request", PromptWording.REFERENCE),
    )
    role = prompt_file(__package__, "role", PromptWording.REFERENCE)
    return [system(role), user("\n\n".join(filter(None, parts)))]


_HINT = "a row has an id and either a gamefile or a recipe; `skillgit plugins alfworld` lists the fields"


def _holds_games(folder: Path) -> bool:
    """Say whether there are games in or below ``folder``, and no manifest in it that says which of them count."""
    has_manifest = folder.is_dir() and any(path.suffix in SUFFIXES for path in folder.iterdir())
    return not has_manifest and next(folder.rglob(games.GAME), None) is not None


def _split_folders(folder: Path) -> Iterator[tuple[Split, Path]]:
    """Yield the folders that are named like splits; ALFWorld's valid_train and the like are passed over."""
    for child in sorted(path for path in folder.glob("*") if path.is_dir()):
        try:
            yield Split.parse(child.name), child
        except DataError:
            continue


def _of_folder(folder: Path, base: Path) -> tuple[Item, ...]:
    """Return the games in ``folder`` as items named by their paths below ``base``."""
    return tuple(_game_item(path.parent.relative_to(base).as_posix(), path, base) for path in games.in_folder(folder))


def _game_item(identity: str, path: Path, root: Path, kind: str = "") -> Item:
    name = games.name_below(root, path)
    content = {"gamefile": name, "sha256": games.fingerprint(path)}
    return Item(id=identity, content=content, task_type=kind or games.task_type(name))


def _item(entry: Row, root: Path, missing: list[str]) -> Item:
    """Return the item of a row; a game that is not there is added to ``missing`` to report all together."""
    row, identity = entry.fields, text_field(entry.where, entry.fields, "id")
    if not identity:
        raise DataError(f"{entry.where} has no id", hint=_HINT)
    if isinstance(fields := row.get("recipe"), dict):
        recipe = Recipe.parse(fields, entry.where)
        return Item(id=identity, content={"recipe": recipe.content()}, task_type=recipe.task)
    gamefile = row.get("gamefile")
    if not isinstance(gamefile, str) or not gamefile.strip():
        raise DataError("neither a gamefile nor a recipe is named", hint=_HINT)
    path = games.located(gamefile, root)
    if not path.exists():
        missing.append(gamefile)
        return Item(id=identity, content={"gamefile": gamefile})
    if games.parsed(path).get("solvable") is False:
        raise DataError(f"the game {gamefile} cannot be won", hint="leave it out, as ALFWorld does")
    task_type = str(row.get("task_type", ""))
    return _game_item(identity, path, root, task_type if task_type in TASK_TYPES else "")


def opening(item: Item, root: Path) -> dict[str, Any]:
    """Return what a game process needs to start the game of ``item``."""
    if "recipe" in item.content:
        return {"recipe": item.content["recipe"]}
    gamefile = str(item.content["gamefile"])
    path = games.located(gamefile, root)
    if games.fingerprint(path) != item.content["sha256"]:
        raise DataError(f"the game {gamefile} has changed since the run began", hint="start a new run")
    return {"game": games.parsed(path)}


RESULT = "result.json"  # the product that says to the scorer how the game ended
NO_COMMAND = "Nothing happens: there was no command between <action> and </action>."


_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_ACTION = re.compile(r"<action>(?P<command>.*?)(?:</action>|\n|\Z)", re.DOTALL | re.IGNORECASE)
_WRAPPING = " \t\r\n`'\"*.>-"


def command_in(reply: str) -> str:
    """Return the first command outside of closed thoughts, in lower case, if any; an open tag ends with its line."""
    for match in _ACTION.finditer(_THOUGHT.sub("", reply)):
        command = " ".join(match.group("command").lower().split()).strip(_WRAPPING)
        if command:
            return command
    return ""


SCORER = 1  # raised whenever the same game may get another score


def _feedback(result: dict[str, Any]) -> str:
    commands, observations = result["commands"], result["observations"]
    task = observations[0].rpartition(_TASK)[2].strip().rstrip(".")
    if result["won"]:
        return f"done in {len(commands)} steps: {task}"
    parts = [f"not done after {len(commands)} steps, of which {result['max_steps']} are allowed: {task}"]
    idle = sum(observation == "Nothing happens." for observation in observations[1:])
    silent = observations[1:].count(NO_COMMAND)
    repeats = len(commands) - len(set(commands))
    parts += [f"{idle} commands changed nothing"] if idle else []
    parts += [f"{silent} replies had no command"] if silent else []
    parts += [f"{repeats} commands repeat an earlier one"] if repeats else []
    return "; ".join(parts)


def published(table: Iterable[PublishedRow]) -> Iterator[dict[str, object]]:
    """Yield a row for each game that ALFWorld would play; the folder of a game is its id."""
    for row in table:
        if games.plays(row.file) and row.fields.get("solvable"):
            yield {"id": PurePosixPath(row.file).parent.as_posix(), "gamefile": row.file}


class ALFWorld(PackagedEnvironment):
    """Household games, each in a process of its own, scored by whether the goal is reached."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._simulator = Simulator()
        self._missing: list[str] = []  # games that the rows name, and that are not there
        for name, least in (("max_steps", 1), ("history_length", 0)):
            if int(self._options[name]) < least:
                raise ConfigError(f"env.{name} is {self._options[name]}; it must be at least {least}", hint="raise it")

    @property
    def digest(self) -> str:
        shaping = [self._options[name] for name in ("max_steps", "history_length", "admissible_commands")]
        words = [self.target_prompt(), seen("observation", ["command"]), NO_COMMAND]
        words += [] if self._wording is PromptWording.OWN else [str(REFERENCE_HISTORY)]
        engine = [next((part.version for part in distributions(name=name)), "") for name in ("textworld", "alfworld")]
        numbers = [SCORER, GENERATOR, REPLY_CHARACTERS]
        return short_digest(["alfworld", *numbers, *shaping, *words, *engine])

    def target_prompt(self) -> str:
        """Return system prompt and user's turn; in the words of the reference, with what is fixed of each message."""
        if self._wording is PromptWording.OWN:
            return super().target_prompt().replace("{max_steps}", str(self._most_replies))
        role, request = (self._prompt_file(name, self._wording) for name in ("role", "request"))
        return f"{role}\n\n{{skill}}{request}"

    def _read(self, files: Sequence[Path]) -> list[Item]:
        return read_each(files, lambda row, _: [_item(row, self._games, self._missing)])

    def _load(self) -> Splits:
        """Return the items that the options name; a folder of game files needs no manifest."""
        games.check_installed()
        folder = self._folder_of_games
        if folder is None:
            return self._of_rows()
        if self._options["split_mode"] == "ratio":
            ratio, seed = self._text("split_ratio"), int(self._options["split_seed"])
            splits = check(divide(_of_folder(folder, folder), ratio, seed))
        else:
            splits = check({split: _of_folder(part, folder) for split, part in _split_folders(folder)})
        limit = int(self._options["limit"]) or None
        return {split: items[:limit] for split, items in splits.items()}

    def _of_rows(self) -> Splits:
        """Return the items of data files; one DataError names all games that are missing."""
        faults, splits = [], Splits()
        try:
            splits = super()._load()
        except DataError as fault:
            faults.append(fault)
        if self._missing:
            faults.insert(0, games.missing_games(tuple(dict.fromkeys(self._missing)), self._games))
        raise_all(faults)
        return splits

    @cached_property
    def _folder_of_games(self) -> Path | None:
        """The folder that the options name in place of data files, if it holds games."""
        is_divided = self._options["split_mode"] == "split_dir"
        name = str(self._options["split_dir" if is_divided else "data_path"])
        folder = self._root / name
        parts = [part for _, part in _split_folders(folder)] if is_divided else [folder]
        return folder if name and any(map(_holds_games, parts)) else None

    @property
    def _games(self) -> Path:
        """The folder that the names of games begin at."""
        return self._folder_of_games or games.data_root(self._text("data_root"), self._root)

    @property
    def _most_replies(self) -> int:
        return int(self._options["max_steps"])

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        try:
            start = opening(item, self._games)
        except DataError as error:
            raise EnvironmentFaultError(error.message, hint=error.hint) from error
        async with self._simulator.game() as game:
            return await self._play(item, skill, target, game, start)

    async def _play(self, item: Item, skill: Skill, target: Target, game: Game, start: Mapping[str, Any]) -> Trajectory:
        """Play one game; a reply without a command uses up a step, changes nothing, and the target sees that."""
        max_steps, history = self._most_replies, int(self._options["history_length"])
        instructions = self._system(skill)
        state = await game.start(start, max_steps)
        observations, replies, commands = [state.observation], list[str](), list[str]()
        while not state.over:
            possible = state.commands if self._options["admissible_commands"] else ()
            if self._wording is PromptWording.OWN:
                *before, last = conversation(instructions, observations, replies, possible, history)
                messages = [*before, user(self._turn(last.text))]
            else:
                messages = reference_messages(skill, observations, commands, possible, history)
            reply = await target.chat(messages)
            replies.append(shortened(reply.text))
            commands.append(command_in(reply.text))
            state = await game.step(commands[-1])
            observations.append(state.observation if commands[-1] else NO_COMMAND)
        turns = [Turn(role="user", content=seen(observations[0]))]
        for text, observation in zip(replies, observations[1:], strict=True):
            turns += [Turn(role="assistant", content=text), Turn(role="user", content=seen(observation))]
        result = {"won": state.won, "max_steps": max_steps, "commands": commands, "observations": observations}
        answer = f"{'won' if state.won else 'not won'} in {len(commands)} steps"
        products = {RESULT: json.dumps(result).encode()}
        return Trajectory(item_id=item.id, turns=tuple(turns), answer=answer, products=products)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Return 1 for a game that was won and 0 for any other, as hard and soft score, and how it ended."""
        del item, judge
        if RESULT not in trajectory.products:
            raise EnvironmentFaultError("the game reported no result", hint="roll it out again")
        result: dict[str, Any] = json.loads(trajectory.products[RESULT])
        won = float(result["won"])
        return Scored(hard=won, soft=won), _feedback(result)

"""Harbor: an agent works on tasks in containers, as Harbor runs and verifies them, with the skill as one of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError, SandboxError
from skillgit.plugin.backend import ModelAccess
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import raise_all
from skillgit.plugin.environment import Judge, Target
from skillgit.plugin.seed_folder import write_files
from skillgit.plugin.splits import Splits, load_splits
from skillgit.sandbox import Mode, Sandbox
from skillgit.sandbox.mechanisms import bubblewrap_program
from skillgit_envs.harbor.trial_process import INSTALL, TrialProcess, TrialProcessError
from skillgit_envs.shipped_environment import ShippedEnvironment

RULES = 1  # raised whenever the same trial may get another score
RESULT = "result.json"  # the product that says to the scorer how the trial ended
BUBBLEWRAP = "bubblewrap"
_PLACE = "http://127.0.0.1:"
_ATTEMPTS = 3  # at a trial whose process died
_FEEDBACK = 4000  # characters of what the verifier wrote, its end
_TELLING = 12  # characters from which on a line that is one of tests or solution is a quotation
_CONFIGURATION = "task.toml"
_TASK_HINT = "a task has task.toml, instruction.md and tests/test.sh; `harbor task init` makes one"
_LONGEST = 256 << 10  # bytes of a file that is looked at for what is secret
_PASSED_OVER = frozenset({".git", "__pycache__"})
_PASSED_ON = (
    "CONTAINERS_CONF CONTAINERS_STORAGE_CONF DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST HOME HTTPS_PROXY HTTP_PROXY LANG "
    "NO_PROXY PATH SSL_CERT_FILE TMPDIR XDG_CACHE_HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR http_proxy https_proxy no_proxy"
)
"""Variables that containers, networks and caches need; the keys of models stay here."""


class Harbor(ShippedEnvironment):
    """Tasks of Harbor's, each a trial in a container; its verifier scores."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._arguments = {name: self._json(name) for name in ("agent_args", "environment_args")}
        self._folders: dict[str, Path] = {}
        if not 0 < float(self._options["full_reward"]) < math.inf or not math.isfinite(float(self._options["pass_at"])):
            raise ConfigError("env.full_reward must be above 0, and env.pass_at a number", hint="both are 1 usually")
        if self._text("environment") == BUBBLEWRAP:
            try:
                Sandbox(Mode.BUBBLEWRAP)
            except SandboxError as error:
                message = f"env.environment is '{BUBBLEWRAP}', and {error.message}"
                raise ConfigError(message, hint=error.hint) from error
        if "/" in (kinds := self._text("variables")) or "=" in kinds:
            raise ConfigError("env.variables has names only", hint="such as env.variables='MODAL_TOKEN_ID'")

    def _json(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads(self._text(name))
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ConfigError(f"env.{name} is not a JSON object", hint="write it like '{\"max_turns\": 20}'")
        return value

    def _path(self, name: str) -> str:
        return str(self._root / self._text(name)) if self._options[name] else ""

    @property
    def digest(self) -> str:
        names = ("agent", "agent_model", "environment", "reward", "pass_at", "full_reward")
        modules = folder_digest(Path(self._path("modules"))) if self._options["modules"] else ""
        chosen = [self._options[name] for name in names]
        return short_digest(
            ["harbor", RULES, *chosen, *self._arguments.values(), modules, bool(self._options["root_filesystem"])]
        )

    def _load(self) -> Splits:
        if not (self._options["data_path"] or self._options["split_dir"]):
            hint = "set env.data_path to a folder of tasks; `harbor dataset download` brings those of the registry"
            raise ConfigError("harbor brings no tasks of its own", hint=hint)
        return load_splits(self._options, self._root, self._root, self._read, task_folders)

    def _read(self, folders: Sequence[Path]) -> list[Item]:
        self._folders |= {folder.name: folder.resolve() for folder in folders}
        return read_tasks(folders)

    def _folder_of(self, item: Item) -> Path:
        _ = self._splits
        folder = self._folders[item.id]
        if folder_digest(folder) != item.content["sha256"]:
            raise EnvironmentFaultError(f"the task {folder} has changed", hint="start a new run")
        return folder

    def secrets(self, item: Item) -> Secrets:
        return task_secrets(self._folder_of(item), str(item.content["instruction"]))

    async def open(self) -> None:
        if not self._options["agent"]:
            hint = "env.agent=claude-code, codex, opencode or another of Harbor's, or module:Class with env.modules"
            raise ConfigError("env.agent names no agent", hint=hint)
        await self._trials.open()

    async def close(self) -> None:
        await self._trials.close()

    @cached_property
    def _trials(self) -> TrialProcess:
        program = shutil.which("harbor")
        python = Path(self._path("python") or (Path(program).resolve().with_name("python") if program else ""))
        python = python / "bin" / "python" if python.is_dir() else python  # a configuration follows links to the file
        if not (program or self._options["python"]):
            raise ConfigError("there is no program harbor on the PATH", hint=INSTALL)
        names = (*_PASSED_ON.split(), *self._text("variables").split())
        variables = {name: os.environ[name] for name in names if name in os.environ}
        modules = [self._path("modules")] if self._options["modules"] else []
        return TrialProcess(str(python), modules, variables, self._text("environment"))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        folder = await asyncio.to_thread(self._folder_of, item)
        for attempt in range(_ATTEMPTS):
            try:
                return await self._trial(item, folder, skill, target)
            except TrialProcessError:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    async def _trial(self, item: Item, folder: Path, skill: Skill, target: Target) -> Trajectory:
        async with target.serve() as model:
            skill_folder = await asyncio.to_thread(_written, skill, await self._trials.open())
            ending = await self._trials.run(self._order(folder, skill_folder, model.access))
            document = json.loads(json.dumps(ending).replace(model.access.token, "[redacted]"))
            turns = tuple(turn for turn in model.turns() if turn.role != "system")
            self._rewards(document)
        answer = turns[-1].content if turns else ""
        products = {RESULT: json.dumps(document).encode()}
        return Trajectory(item_id=item.id, turns=turns, answer=answer, products=products)

    def _order(self, folder: Path, skill: Path, access: ModelAccess) -> dict[str, Any]:
        agent, environment = self._text("agent"), self._text("environment")
        family = "anthropic" if agent == "claude-code" else "openai"
        arguments, overlays = self._arguments["environment_args"], list[str]()
        if environment == BUBBLEWRAP:
            environment = "bubblewrap_environment:BubblewrapEnvironment"
            arguments = {"root_filesystem": self._path("root_filesystem"), **arguments, "program": bubblewrap_program()}
        elif environment in ("docker", "podman") and self._options["host_network"]:
            overlays.append(str(Path(__file__).with_name("runner") / "host_network.yaml"))
        return {
            "task": str(folder),
            "agent": {
                "import_path" if ":" in agent else "name": agent,
                "model_name": self._text("agent_model") or f"{family}/skillgit",
                "skills": [str(skill)],
                "env": _variables(access, self._text("model_url")),
                "kwargs": self._arguments["agent_args"],
            },
            "environment": {
                "import_path" if ":" in environment else "type": environment,
                "kwargs": arguments,
                "extra_docker_compose": overlays,
            },
        }

    def _rewards(self, ending: Mapping[str, Any]) -> tuple[float, float]:
        """Return hard and soft score; an EnvironmentFaultError where the verifier gave no reward that counts."""
        rewards, name = ending.get("rewards") or {}, self._text("reward")
        reason = ending.get("fault") or ending.get("error") or "its verifier gave no reward"
        if not rewards or not ending.get("valid"):
            raise EnvironmentFaultError(
                f"the trial failed: {reason}", hint="see docs/benchmarks.md#tasks-of-harbor for what counts"
            )
        value = rewards.get(name)
        if not isinstance(value, int | float) or not math.isfinite(value):
            hint = f"set env.reward to one of: {', '.join(map(str, rewards))}"
            raise EnvironmentFaultError(f"the verifier gave no number as {name}", hint=hint)
        soft = value / float(self._options["full_reward"])
        if not 0 <= soft <= 1:
            hint = "set env.full_reward to the largest reward that there is"
            raise EnvironmentFaultError(f"a reward of {value:g} is not a share of env.full_reward", hint=hint)
        return float(value >= float(self._options["pass_at"])), soft

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        if RESULT not in trajectory.products:
            raise EnvironmentFaultError("the trial reported no result", hint="roll it out again")
        ending: dict[str, Any] = json.loads(trajectory.products[RESULT])
        hard, soft = self._rewards(ending)
        rewards = ending["rewards"]
        parts = tuple((name, float(value)) for name, value in sorted(rewards.items())) if len(rewards) > 1 else ()
        secrets = await asyncio.to_thread(self.secrets, item)
        return Scored(hard=hard, soft=soft, parts=parts), _feedback(ending, rewards, secrets.checks)


def _variables(access: ModelAccess, address: str) -> dict[str, str]:
    """Return the address of its model for an agent of either provider's dialect; these are secrets."""
    url = address.replace("{port}", access.url.removeprefix(_PLACE)).rstrip("/") if address else access.url
    bases = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1", "LLM_BASE_URL": f"{url}/v1"}
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "LLM_API_KEY")
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
    return {**bases, "ANTHROPIC_BASE_URL": url, **dict.fromkeys(keys, access.token), **quiet}


def _written(skill: Skill, folder: Path) -> Path:
    """Return the folder with the files of ``skill``, which is written once for each version of it."""
    target = folder / "skills" / skill.digest / skill.name
    if not target.exists():
        target.parent.parent.mkdir(exist_ok=True)
        draft = Path(f"{target.parent}.{os.urandom(4).hex()}")
        draft.mkdir()
        write_files(draft / skill.name, skill.files, skill.executable)
        try:
            draft.rename(target.parent)
        except OSError:  # another rollout was faster
            shutil.rmtree(draft)
    return target


def _feedback(ending: Mapping[str, Any], rewards: Mapping[str, float], sources: Sequence[str]) -> str:
    """Return rewards, how the agent failed, and what the verifier wrote but for lines of tests and solution."""
    secrets = {line.strip() for source in sources for line in source.splitlines()}
    lines = [", ".join(f"{name} {value:g}" for name, value in sorted(rewards.items()))]
    lines += [f"the agent failed: {ending['error']}"] if ending.get("error") else []
    for line in str(ending.get("output", ""))[-_FEEDBACK:].splitlines():
        words = line.lstrip("> \t").rstrip()  # pytest marks the line that failed
        if words and not (len(words) >= _TELLING and words in secrets):
            lines.append(line)
    return "\n".join(lines)


def task_folders(folder: Path) -> tuple[Path, ...]:
    """Return the task folders at or below ``folder`` by path; a DataError if there are none."""
    paths = sorted(folder.rglob(_CONFIGURATION)) if folder.is_dir() else []
    folders = {path.parent for path in paths if not _PASSED_OVER & {*path.relative_to(folder).parts}}
    outer = tuple(sorted(path for path in folders if folders.isdisjoint(path.parents)))
    if not outer:
        raise DataError(f"there are no tasks at {folder}: no folder in it has a {_CONFIGURATION}", hint=_TASK_HINT)
    return outer


def read_tasks(folders: Sequence[Path]) -> list[Item]:
    """Return an item for each task folder, by its name; one DataError names all faults."""
    items, faults = [], []
    for folder in folders:
        try:
            items.append(_item(folder))
        except DataError as fault:
            faults.append(fault)
    raise_all(faults)
    return items


def _item(folder: Path) -> Item:
    instructions = [*folder.glob("instruction.md"), *sorted(folder.glob("steps/*/instruction.md"))]
    scripts = [*folder.glob("tests/test.*"), *folder.glob("steps/*/tests/test.*")]
    if not instructions or not scripts:
        name = "tests/test.sh" if instructions else "instruction.md"
        raise DataError(f"the task {folder} has no {name}", hint=_TASK_HINT)
    try:
        metadata = tomllib.loads((folder / _CONFIGURATION).read_text(encoding="utf-8")).get("metadata", {})
        text = "\n\n".join(path.read_text(encoding="utf-8").strip() for path in instructions)
    except (ValueError, OSError) as error:  # of TOML and of UTF-8 too
        raise DataError(f"the task {folder} cannot be read: {error}", hint=_TASK_HINT) from error
    content = {"instruction": text, "sha256": folder_digest(folder)}
    return Item(id=folder.name, content=content, task_type=str(metadata.get("category") or "default"))


def folder_digest(folder: Path) -> str:
    """Return the first 16 digits of the SHA-256 of names, modes and bytes of all files in ``folder``."""
    total = hashlib.sha256()
    for path in _files(folder):
        if path.is_symlink():
            part = os.fsencode(path.readlink())
        else:
            with path.open("rb") as stream:
                part = hashlib.file_digest(stream, "sha256").digest()
        mode = b"x" if os.access(path, os.X_OK) else b"-"
        name = os.fsencode(path.relative_to(folder))
        total.update(b"%d %b %b %d %b" % (len(name), name, mode, len(part), part))
    return total.hexdigest()[:16]


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if not _PASSED_OVER & {*path.relative_to(folder).parts} and (path.is_symlink() or path.is_file()):
            yield path


def task_secrets(folder: Path, instruction: str) -> Secrets:
    """Return what no skill may quote: the sources of tests and of the solution, and what is asked."""
    parts = [part for name in ("tests", "solution") for part in (folder / name, *folder.glob(f"steps/*/{name}"))]
    files = [path for part in parts if part.is_dir() for path in _files(part)]
    return Secrets(inputs=(instruction,), checks=tuple(filter(None, map(_text, files))))


def _text(path: Path) -> str:
    """Return the text of a file; empty if it is none, too large, or a link."""
    if path.is_symlink() or path.stat().st_size > _LONGEST:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""

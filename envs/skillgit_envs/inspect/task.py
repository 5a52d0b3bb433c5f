"""A task of Inspect: where it comes from, its samples as items, and what its scores mean."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import check_item_id, short_digest
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError, SkillgitError
from skillgit.plugin.plugin_identity import install_command, read_files

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Score, Scorer

_NAME_HINT = "name it as Inspect does: inspect_evals/NAME, or path/to/file.py@NAME"
_ROUNDING = 1e-9
_SCORE_HINT = "name the value that counts: env.score_key"


def task_arguments(text: str) -> dict[str, object]:
    """Return what ``text`` says, a JSON object or ``key=value,…``; a ConfigError if it is neither."""
    if not text.strip():
        return {}
    hint = 'write a=1,b=words, or a JSON object: {"a": 1}'
    if text.lstrip().startswith("{"):
        try:
            values = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"env.task_args is not JSON: {error}", hint=hint) from error
        return dict(values)
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(separator and name.strip() for name, separator, _ in pairs):
        raise ConfigError(f"env.task_args is '{text}'", hint=hint)
    return {name.strip(): _value(value.strip()) for name, _, value in pairs}


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueScale:
    """The numbers that mean 0 and 1."""

    least: float = 0.0
    most: float = 1.0

    @classmethod
    def parse(cls, text: str) -> ValueScale:
        try:
            least, most = map(float, text.split(":")) if text else (0.0, 1.0)
        except ValueError:
            least = most = math.nan
        if not (math.isfinite(least) and math.isfinite(most)) or least == most:
            message = f"env.scale is '{text}'; it must be the numbers of the worst and the best score"
            raise ConfigError(message, hint="write it like 1:10, or 10:0 where less is better")
        return cls(least=least, most=most)

    def share(self, value: float) -> float:
        share = (value - self.least) / (self.most - self.least)
        if not -_ROUNDING <= share <= 1 + _ROUNDING:
            message = f"the scorer gave {value:g}, which is not between {self.least:g} and {self.most:g}"
            raise ConfigError(message, hint="say what its numbers mean: env.scale: 0:10")
        return min(1.0, max(0.0, share))


@dataclass(kw_only=True)
class InspectTask:
    """A task that was made, and what of it does not change; ``item_type`` is a key of its samples' metadata."""

    name: str
    arguments: Mapping[str, object]
    task: Task
    code: Sequence[object]  # what identifies it besides its name
    item_type: str = ""

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The samples, in their order."""
        if self.task.sample_source is not None:
            raise DataError(f"{self.name} makes its samples while it runs", hint="choose a task with a data set")
        return tuple(_item(sample, self.item_type) for sample in self.task.dataset)

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """The samples by item; a DataError if they cannot be distinguished."""
        pairs = list(zip(self.items, self.task.dataset, strict=True))
        samples = {item.id: sample for item, sample in pairs}
        if len(samples) < len(pairs):
            raise DataError(f"two samples of {self.name} have the same id", hint="give each one of its own")
        return samples

    def sample(self, item: Item) -> Sample:
        """Return a copy of the sample that ``item`` is, with the texts of the item."""
        original = self.samples.get(item.id)
        if original is None:
            raise EnvironmentFaultError(f"{self.name} has no sample {item.id}", hint="start a new run")
        names = [name for name in ("input", "target", "choices") if not isinstance(item.content.get(name), dict)]
        texts = {name: item.content[name] for name in names if name in item.content}
        if not isinstance(texts.get("input", ""), str):
            del texts["input"]
        return original.model_copy(deep=True, update={**texts, "id": item.id if original.id is None else original.id})

    @property
    def identity(self) -> list[object]:
        return [self.name, dict(self.arguments), str(self.task.version), *self.code, _version("inspect_ai")]

    def scorer(self, name: str) -> Scorer:
        """Return the scorer called ``name``, or the only one."""
        scorers = {_registered(scorer).rpartition("/")[2]: scorer for scorer in self.task.scorer or ()}
        if name in scorers:
            return scorers[name]
        if name or len(scorers) != 1:
            problem = f"has no scorer {name}" if name else f"has {len(scorers)} scorers"
            hint = f"set env.scorer to one of {', '.join(scorers)}" if scorers else "choose a task that scores samples"
            raise ConfigError(f"{self.name} {problem}", hint=hint)
        return next(iter(scorers.values()))

    def sandboxes(self) -> set[str]:
        """Return the kinds of sandboxes that samples work in, one of them empty if some have none."""
        specs = {spec and spec.type for spec in (sample.sandbox or self.task.sandbox for sample in self.task.dataset)}
        return {kind or "" for kind in specs}

    def combines_tries(self) -> bool:
        """Say whether the task's score of a sample is made of several tries, other than as their mean."""
        reducers = [_registered(reducer) for reducer in self.task.epochs_reducer or ()]
        return (self.task.epochs or 1) > 1 and reducers not in ([], ["mean"])

    def generations(self) -> int | None:
        """Return how often the solver asks the model, if it is made of Inspect's plain steps only."""
        solver = self.task.solver
        steps = list(solver) if hasattr(solver, "__len__") else [solver]
        names = [_registered(step).removeprefix("inspect_ai/") for step in steps]
        if self.task.setup or not all(name in _STEPS for name in names):
            return None
        return sum(map(_STEPS.__getitem__, names))


_STEPS = {
    **dict.fromkeys(("generate", "multiple_choice"), 1),
    **dict.fromkeys(("system_message", "user_message", "assistant_message", "prompt_template", "chain_of_thought"), 0),
    "self_critique": 2,
}
"""The solvers whose calls can be counted."""


def _registered(thing: object) -> str:
    from inspect_ai.util import registry_info  # noqa: PLC0415 - of the extra

    try:
        return str(registry_info(thing).name)
    except ValueError:
        return type(thing).__name__


def has_dictionary(scorer: Scorer) -> bool:
    """Say whether ``scorer`` declares metrics by key, as those do whose score is a dictionary."""
    from inspect_ai.util import registry_info  # noqa: PLC0415 - of the extra

    metrics = registry_info(scorer).metadata.get("metrics", ())
    return isinstance(metrics, dict) or any(isinstance(metric, dict) for metric in metrics)


def _item(sample: Sample, item_type: str) -> Item:
    content: dict[str, object] = {"input": sample.input, "target": sample.target}
    if not isinstance(sample.input, str):
        content["input"] = [message.model_dump(exclude={"id"}, exclude_none=True) for message in sample.input]
    files = {name: _file_digest(text) for name, text in (sample.files or {}).items()}
    sandbox = sample.sandbox and [sample.sandbox.type, _file_digest(str(sample.sandbox.config or ""))]
    rest = {"choices": sample.choices, "files": files, "setup": sample.setup, "sandbox": sandbox}
    content |= {name: value for name, value in {**rest, "metadata": sample.metadata}.items() if value}
    content = json.loads(json.dumps(content, default=_plain))
    name = f"s-{short_digest(content)}" if sample.id is None else str(sample.id)
    try:
        name = check_item_id(name)
    except DataError:
        name = f"s-{short_digest(name)}"
    kind = str((sample.metadata or {}).get(item_type, "")) if item_type else ""
    return Item(id=name, content=content, task_type=kind or "default")


def _plain(value: object) -> object:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else type(value).__name__


def _file_digest(text: str) -> str:
    try:
        data = Path(text).read_bytes() if text and len(text) < 4096 and "\n" not in text else text.encode()  # noqa: PLR2004
    except (OSError, ValueError):
        data = text.encode()
    return sha256(data).hexdigest()[:16]


def make_task(name: str, arguments: Mapping[str, object], root: Path, item_type: str) -> InspectTask:
    """Return the task ``name``, made with ``arguments``; a ConfigError if there is none, or it cannot be made."""
    _require(name)
    file, _, function = name.partition("@")
    try:
        with _at(root / file):
            if file.endswith(".py"):
                task, code = _of_file(root / file, function, arguments)
                label = f"{Path(file).name}@{function}"
            else:
                task, code, label = _of_package(name, arguments), [_version(name.partition("/")[0])], name
    except SkillgitError:
        raise
    except Exception as error:  # a task may raise anything
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        hint = "it may want data, packages or arguments: env.task_args: key=value"
        raise ConfigError(f"the task {name} cannot be made: {text}", hint=hint) from error
    return InspectTask(name=label, arguments=arguments, task=task, code=code, item_type=item_type)


def _require(name: str) -> None:
    if not name:
        raise ConfigError("env.task names no task of Inspect", hint=_NAME_HINT)
    try:
        import inspect_ai  # noqa: F401, PLC0415 - of the extra
    except ImportError as error:
        raise ConfigError("inspect_ai is not installed", hint=install_command("inspect")) from error


def _of_package(name: str, arguments: Mapping[str, object]) -> Task:
    from inspect_ai.util import registry_create  # noqa: PLC0415 - of the extra

    for point in entry_points(group="inspect_ai", name=name.partition("/")[0]):
        point.load()  # Inspect would not say why a package cannot be loaded
    try:
        return registry_create("task", name, **arguments)
    except LookupError as error:
        raise ConfigError(f"there is no task {name}", hint=_NAME_HINT) from error


def _of_file(path: Path, function: str, arguments: Mapping[str, object]) -> tuple[Task, list[object]]:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}", hint=_NAME_HINT)
    files = read_files(path.resolve(), path.resolve().parent)
    code = {str(file.relative_to(path.resolve().parent)): sha256(data).hexdigest() for file, data in files.items()}
    identity = short_digest(code)
    spec = spec_from_file_location(f"skillgit_inspect_{identity}", path.resolve())
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file", hint=_NAME_HINT)
    module = sys.modules.get(spec.name)
    if module is None:
        module = sys.modules[spec.name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[spec.name]
            raise
    tasks = {name: value for name, value in vars(module).items() if callable(value) and _is_task(value)}
    if function not in tasks and (function or len(tasks) != 1):
        hint = f"name one of its tasks: {path.name}@{' or @'.join(tasks)}" if tasks else _NAME_HINT
        raise ConfigError(f"{path.name} has {f'no task {function}' if function else 'several tasks'}", hint=hint)
    task = tasks[function] if function else next(iter(tasks.values()))
    return task(**arguments), [identity]


def _is_task(value: object) -> bool:
    from inspect_ai.util import registry_info  # noqa: PLC0415 - of the extra

    try:
        return bool(registry_info(value).type == "task")
    except ValueError:
        return False


@contextmanager
def _at(file: Path) -> Iterator[None]:
    """Be in the folder of a file, as Inspect is while it makes the task: data are named from there."""
    if file.suffix != ".py" or not file.is_file():
        yield
        return
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        with chdir(folder):
            yield
    finally:
        sys.path.remove(folder)


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def scored(score: Score, key: str, scale: ValueScale) -> Scored:
    """Return a score of Inspect as ours; a ConfigError where a setting has to say what it means."""
    from inspect_ai.scorer import value_to_float  # noqa: PLC0415 - of the extra

    value: Any = score.value
    parts: tuple[tuple[str, float], ...] = ()
    if isinstance(value, dict):
        numbers = {name: _number(entry, value_to_float()) for name, entry in value.items()}
        parts = tuple((name, number) for name, number in numbers.items() if math.isfinite(number))
        if key not in value:
            raise ConfigError(f"the scorer gives {', '.join(value)}, and env.score_key is '{key}'", hint=_SCORE_HINT)
        value = value[key]
    elif key:
        raise ConfigError(f"the scorer gives one value, and env.score_key is '{key}'", hint="leave it empty")
    number = _number(value, value_to_float())
    if math.isnan(number):
        raise EnvironmentFaultError(f"the scorer gave {_words(value)}, which is not a score", hint=_SCORE_HINT)
    share = scale.share(number)
    return Scored(hard=float(share >= 1.0), soft=share, parts=parts)


def _number(value: object, to_float: Any) -> float:  # noqa: ANN401 - a function of the extra
    words = {"C", "I", "P", "N", "yes", "no", "true", "false"}
    if isinstance(value, str) and value not in words and value.lower() not in words:
        try:
            return float(value)
        except ValueError:
            return math.nan
    return math.nan if isinstance(value, list | tuple | dict | None) else float(to_float(value))


def _words(value: object) -> str:
    return f"'{value}'"[:80]

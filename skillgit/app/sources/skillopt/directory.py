"""A SkillOpt output directory as it lies on disk: its files, read once within bounds, and its settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from skillgit.app.setup.config.aliases import FLAT, RENAMED
from skillgit.app.sources.skillopt.outcomes import ImportedScore, Outcomes, RecordedScore, measured, number
from skillgit.app.sources.skillopt.run_events import ImportStory, Step
from skillgit.domain.credentials.detector import MASK
from skillgit.domain.credentials.named_values import is_name_of_credential
from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.evaluation import Gauge, Metric
from skillgit.domain.event import Models
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.ids import short_digest
from skillgit.domain.untrusted.json_limits import loads
from skillgit.domain.untrusted.model_text import SkillText, clean, storable
from skillgit.errors import DataError
from skillgit.files import read_plain
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from skillgit.app.sources.skillopt.skill_texts import Texts


_SHORTEST_SECRET = 4
_LARGEST = 64 * 1024 * 1024  # no file of a directory is larger in earnest, in bytes
_LEFT_OUT = ", and is left out"

Row = dict[str, object]


@dataclass(slots=True)
class Directory:
    path: Path
    remarks: list[str] = field(default_factory=list)  # what could not be read, one sentence each
    secrets: frozenset[str] = frozenset()  # values of keys of credentials; they are taken out of everything

    @classmethod
    def open(cls, path: Path) -> Directory:
        if not path.is_dir():
            message = f"{path} is no folder" if path.exists() else f"there is no folder {path}"
            raise DataError(message, hint="name the output directory of a SkillOpt run")
        directory = cls(path)
        config = directory._object("config.json")
        if config is None:
            problem = f"{path} is not the output directory of a SkillOpt run: {directory.fault('config.json')}"
            raise DataError(problem, hint="name the folder that holds config.json, history.json and skills/")
        directory.secrets = frozenset(_secrets(config))
        return directory

    def mapping(self, name: str) -> Row | None:
        """Return the JSON object in the file ``name``; None if it is missing or is none."""
        value = self._object(name)
        return None if value is None else self._clean(value)  # type: ignore[return-value]

    def listing(self, name: str) -> list[Row] | None:
        """Return the JSON objects in the array in the file ``name``; None if it is missing or holds none."""
        value = self._json(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            self._remark(f"{name} holds no list of JSON objects{_LEFT_OUT}")
            return None
        return self._clean(value)  # type: ignore[return-value]

    def lines(self, name: str) -> list[Row] | None:
        """Return the JSON objects in the file ``name``, one a line, torn lines left out; None if it is missing."""
        content = self._bytes(name)
        if content is None:
            return None
        rows, torn = list[Row](), 0
        for line in content.decode("utf-8-sig", errors="replace").split("\n"):
            if not line.strip():
                continue
            try:
                row = loads(line)
            except (ValueError, RecursionError):
                row = None
            if isinstance(row, dict):
                rows.append(self._clean(row))  # type: ignore[arg-type]
            else:
                torn += 1
        if torn:
            self._remark(f"{name} has {torn} line{'s' if torn > 1 else ''} that cannot be read, and is used without")
        return rows

    def text(self, name: str) -> SkillText | None:
        """Return the text of a skill in the file ``name``, clean and without secrets; None if it is missing."""
        content = self._bytes(name)
        if content is None:
            return None
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._remark(f"{name} is not UTF-8{_LEFT_OUT}")
            return None
        result = clean(self.without_secrets(text))
        if result.removed:
            self._remark(f"{name} is imported without {result.removed} control or invisible characters")
        return result

    def without_secrets(self, text: str) -> str:
        """Return ``text`` with every credential replaced by a mask."""
        for value in self.secrets:
            text = text.replace(value, MASK)
        return redact(storable(text))

    def time(self, *names: str) -> datetime | None:
        """Return when the first of ``names`` that is here was written; None if none of them is."""
        for name in names:
            path = self.path / name
            if path.is_file():
                return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
        return None

    def numbered(self, folder: str, prefix: str) -> list[int]:
        parent = self.path / folder
        if not parent.is_dir():
            return []
        names = (path.name for path in parent.iterdir() if path.is_dir())
        return sorted(int(match[1]) for name in names if (match := re.fullmatch(rf"{prefix}(\d+)", name)))

    def files(self, folder: str, suffix: str) -> Iterable[str]:
        parent = self.path / folder
        if not parent.is_dir():
            return []
        return sorted(f"{folder}/{path.name}" for path in parent.iterdir() if path.is_file() and path.suffix == suffix)

    def fault(self, name: str) -> str:
        """Return why the file ``name`` could not be used, as a clause."""
        remark_text = next((remark for remark in self.remarks if remark.startswith(f"{name} ")), "")
        return remark_text.removesuffix(_LEFT_OUT) or f"it has no {name}"

    def _remark(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)

    def _object(self, name: str) -> Row | None:
        value = self._json(name)
        if value is not None and not isinstance(value, dict):
            self._remark(f"{name} holds no JSON object{_LEFT_OUT}")
        return value if isinstance(value, dict) else None

    def _json(self, name: str) -> object:
        content = self._bytes(name)
        if content is None:
            return None
        try:
            value = loads(content)
        except (ValueError, RecursionError):
            self._remark(f"{name} is torn or no JSON{_LEFT_OUT}")
            return None
        if value is None:
            self._remark(f"{name} holds null{_LEFT_OUT}")
        return value

    def _bytes(self, name: str) -> bytes | None:
        path = self.path / name
        try:
            if not path.resolve().is_relative_to(self.path.resolve()):
                self._remark(f"{name} leads out of the directory{_LEFT_OUT}")
                return None
            return read_plain(path, most=_LARGEST, follow=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._remark(f"{name} cannot be read ({error.strerror}){_LEFT_OUT}")
            return None

    def _clean(self, value: object) -> object:
        if isinstance(value, str):
            return self.without_secrets(value)
        if isinstance(value, dict):
            return {
                self.without_secrets(str(key)): MASK if _is_secret(str(key), part) else self._clean(part)
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [self._clean(part) for part in value]
        return value


def _is_secret(key: str, value: object) -> bool:
    return isinstance(value, str) and bool(value) and is_name_of_credential(key, certainly=True)


def _secrets(value: object) -> Iterable[str]:
    """Yield the values of keys of credentials; the masks that the reference put in their place are none."""
    if isinstance(value, dict):
        for key, part in value.items():
            if _is_secret(str(key), part) and len(part) >= _SHORTEST_SECRET and not re.fullmatch(r"[*\[<].*", part):
                yield part
            else:
                yield from _secrets(part)
    elif isinstance(value, list):
        for part in value:
            yield from _secrets(part)


class Common(TypedDict):
    run: str
    skill: str
    epoch: int


@dataclass(slots=True, kw_only=True)
class Import:
    """A directory that is being told."""

    directory: Directory
    settings: ReferenceSettings
    texts: Texts
    run: str
    steps: list[Step]
    summary: Row  # what it says of its end; empty if the run was interrupted
    items: tuple[str, ...]  # the items of the selection split, as far as they are known
    story: ImportStory
    by_hash: dict[str, Outcomes]  # the outcomes of texts that were measured, by the hash that the reference has of them

    @property
    def path(self) -> str:
        return f"skills/{self.texts.name}"

    def measured(self, claim: RecordedScore, outcomes: Outcomes | None) -> ImportedScore | None:
        return measured(claim, outcomes, self.items, self.settings.seed)

    def common(self, epoch: int) -> Common:
        return Common(run=self.run, skill=self.path, epoch=epoch)

    def time(self, *names: str) -> datetime:
        """Return when the first of the files ``names`` that is here was written, or the event before."""
        earlier = self.story.chapters[-1].time if self.story.chapters else datetime.fromtimestamp(0, UTC)
        return self.directory.time(*names) or earlier


SECTIONED = {
    "train": ("num_epochs", "train_size", "batch_size", "accumulation", "seed"),
    "gradient": ("minibatch_size", "merge_batch_size", "analyst_workers", "failure_only"),
    "optimizer": (
        *("learning_rate", "min_learning_rate", "lr_scheduler", "lr_control_mode", "skill_update_mode"),
        *("use_slow_update", "slow_update_samples", "slow_update_gate_with_selection", "longitudinal_pair_policy"),
        *("use_meta_skill", "use_skill_aware_reflection", "skill_aware_appendix_source"),
        "skill_aware_consolidate_threshold",
    ),
    "evaluation": ("use_gate", "gate_metric", "gate_mixed_weight", "sel_env_num", "test_env_num", "eval_test"),
    "model": ("optimizer", "target", "optimizer_backend", "target_backend", "reasoning_effort"),
    "env": ("name", "split_mode", "split_ratio", "split_seed", "split_dir", "data_path", "exec_timeout"),
}
"""The keys that both have, by section."""
_MODES: dict[str, UpdateMode] = {
    **dict.fromkeys(("rewrite", "suggestions", "rewrite_suggestions"), UpdateMode.SUGGESTIONS),
    **dict.fromkeys(("full_rewrite", "minibatch_full_rewrite", "skill_rewrite_minibatch"), UpdateMode.FULL),
    **{mode.value: mode for mode in UpdateMode},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSettings:
    sections: Mapping[str, Mapping[str, object]]  # the keys that both have, under the names of skillgit
    digest: str
    environment: str  # the name of the environment; empty if not recorded
    models: Models
    seed: int  # 0 if not recorded
    rule: GateRule
    mode: UpdateMode
    density: bool  # whether the gate's scores hold a bonus for emphatic words

    @property
    def gauge(self) -> Gauge:
        return Gauge(metric=self.rule.metric, soft_weight=self.rule.soft_weight)

    @classmethod
    def of(cls, config: Row) -> ReferenceSettings:
        """Read the content of ``config.json``, flat or in sections."""
        flat = _flat(config)
        settings_read = {
            section: {name: flat[f"{section}.{name}"] for name in names if f"{section}.{name}" in flat}
            for section, names in SECTIONED.items()
        }
        metric, weight = flat.get("evaluation.gate_metric"), number(flat.get("evaluation.gate_mixed_weight"))
        seed = flat.get("train.seed")
        return cls(
            sections={section: values for section, values in settings_read.items() if values},
            digest=short_digest(config),
            environment=str(flat.get("env.name") or ""),
            models=Models(target=_model(flat, "target"), optimizer=_model(flat, "optimizer")),
            seed=seed if isinstance(seed, int) and not isinstance(seed, bool) else 0,
            rule=GateRule(
                metric=Metric(str(metric)) if metric in set(Metric) else Metric.HARD,
                soft_weight=0.5 if weight is None or not 0.0 <= weight <= 1.0 else weight,
                enabled=flat.get("evaluation.use_gate") is not False,
            ),
            mode=_MODES.get(str(flat.get("optimizer.skill_update_mode") or ""), UpdateMode.PATCH),
            density=flat.get("use_semantic_density", flat.get("evaluation.use_semantic_density")) is True,
        )


def _flat(config: Row) -> dict[str, object]:
    """Return dotted keys under the names of skillgit; a key that is not among them keeps its own."""
    # A flat ``optimizer`` or ``target`` is no model.
    sections = {**SECTIONED, "model": SECTIONED["model"][2:]}
    dotted_names = {name: f"{section}.{name}" for section, names in sections.items() for name in names}
    flat: dict[str, object] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= {RENAMED.get(f"{key}.{name}", f"{key}.{name}"): part for name, part in value.items()}
        else:
            flat[FLAT.get(key) or dotted_names.get(key, key)] = value
    return flat


def _model(flat: Mapping[str, object], role: str) -> str:
    backend, name = str(flat.get(f"model.{role}_backend") or ""), str(flat.get(f"model.{role}") or "")
    return f"{backend}/{name}" if backend and name else name or backend

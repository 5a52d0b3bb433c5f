"""A SkillOpt output directory on disk: files within bounds and without secrets, settings, steps and outcomes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from skillgit.app.setup.config.aliases import FLAT, RENAMED
from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.credentials.detector import MASK
from skillgit.domain.credentials.named_values import is_name_of_credential
from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.evaluation import (
    Evaluation,
    EvaluationSummary,
    FailedToEvaluate,
    Gauge,
    Metric,
    Outcome,
    Scored,
    Split,
    item_set_digest,
)
from skillgit.domain.event import Models
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.ids import short_digest, text_digest
from skillgit.domain.untrusted.json_limits import loads
from skillgit.domain.untrusted.model_text import SkillText, clean, storable
from skillgit.engine.evidence_files import json_file
from skillgit.errors import DataError
from skillgit.files import read_plain
from skillgit.plugin.redaction import redact

ORIGIN = "skillopt"  # what the configuration and the environment of an imported run are marked with
ROUNDING = 1e-9  # means that differ by less differ by the order in which they were added up
ACCEPTED = frozenset({"accept_new_best", "accept", "force_accept"})
SKIPPED = frozenset({"skip_no_patches", "skip_no_rewrite"})
_SHORTEST_SECRET = 4
_LARGEST = 64 * 1024 * 1024  # no file of a directory is larger in earnest, in bytes
_LEFT_OUT = ", and is left out"
_ANSWERS = ("predicted_answer", "prediction", "answer", "response")
_ROLES = {"system", "user", "assistant", "tool"}

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
        config = directory._json("config.json")
        if not isinstance(config, dict):
            problem = f"{path} is not the output directory of a SkillOpt run: {directory.fault('config.json')}"
            raise DataError(problem, hint="name the folder that holds config.json, history.json and skills/")
        directory.secrets = frozenset(_secrets(config))
        return directory

    def mapping(self, name: str) -> Row | None:
        """Return the JSON object in the file ``name``; None if it is missing or is none."""
        value = self._json(name)
        return self._clean(value) if isinstance(value, dict) else None  # type: ignore[return-value]

    def listing(self, name: str) -> list[Row] | None:
        """Return the JSON objects in the array in the file ``name``; None if it is missing or holds none."""
        value = self._json(name, is_list=True)
        return self._clean(value) if isinstance(value, list) else None  # type: ignore[return-value]

    def lines(self, name: str) -> list[Row] | None:
        """Return the JSON objects in the file ``name``, one a line, torn lines left out; None if it is missing."""
        content = self._bytes(name)
        if content is None:
            return None
        rows, torn = list[Row](), 0
        for line in filter(str.strip, content.decode("utf-8-sig", errors="replace").split("\n")):
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
            text = clean(self._without_secrets(content.decode("utf-8-sig")))
        except UnicodeDecodeError:
            self._remark(f"{name} is not UTF-8{_LEFT_OUT}")
            return None
        if text.removed:
            self._remark(f"{name} is imported without {text.removed} control or invisible characters")
        return text

    def time(self, *names: str) -> datetime | None:
        """Return when the first of ``names`` that is here was written; None if none of them is."""
        path = next(filter(Path.is_file, (self.path / name for name in names)), None)
        return None if path is None else datetime.fromtimestamp(int(path.stat().st_mtime), UTC)

    def numbered(self, folder: str, prefix: str) -> list[int]:
        """Return the numbers of the folders in ``folder`` whose names begin with ``prefix``."""
        parent = self.path / folder
        names = (path.name for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else ()
        return sorted(int(match[1]) for name in names if (match := re.fullmatch(rf"{prefix}(\d+)", name)))

    def files(self, folder: str, suffix: str) -> list[str]:
        parent = self.path / folder
        paths = parent.iterdir() if parent.is_dir() else ()
        return sorted(f"{folder}/{path.name}" for path in paths if path.is_file() and path.suffix == suffix)

    def fault(self, name: str) -> str:
        """Return why the file ``name`` could not be used, as a clause."""
        sentence = next((remark for remark in self.remarks if remark.startswith(f"{name} ")), "")
        return sentence.removesuffix(_LEFT_OUT) or f"it has no {name}"

    def _remark(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)

    def _json(self, name: str, *, is_list: bool = False) -> object:
        """Return the JSON object, or list of them, in a file; None, with a remark, for what is neither."""
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
        elif not is_list and not isinstance(value, dict):
            self._remark(f"{name} holds no JSON object{_LEFT_OUT}")
        elif is_list and not (isinstance(value, list) and all(isinstance(row, dict) for row in value)):
            self._remark(f"{name} holds no list of JSON objects{_LEFT_OUT}")
            return None
        return value

    def _bytes(self, name: str) -> bytes | None:
        path = self.path / name
        try:
            if path.resolve().is_relative_to(self.path.resolve()):
                return read_plain(path, most=_LARGEST, follow=True)
            self._remark(f"{name} leads out of the directory{_LEFT_OUT}")
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            self._remark(f"{name} cannot be read ({error.strerror}){_LEFT_OUT}")
        return None

    def _without_secrets(self, text: str) -> str:
        for value in self.secrets:
            text = text.replace(value, MASK)
        return redact(storable(text))

    def _clean(self, value: object) -> object:
        if isinstance(value, str):
            return self._without_secrets(value)
        if isinstance(value, dict):
            return {
                self._without_secrets(str(key)): MASK if _is_secret(str(key), part) else self._clean(part)
                for key, part in value.items()
            }
        return list(map(self._clean, value)) if isinstance(value, list) else value


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


class ReferenceSettings:
    """What ``config.json`` says, flat or in sections, as far as an imported run depends on it."""

    def __init__(self, config: Row) -> None:
        flat = _flat(config)
        pairs = {
            section: {name: flat[f"{section}.{name}"] for name in names if f"{section}.{name}" in flat}
            for section, names in SECTIONED.items()
        }
        self.sections = {section: values for section, values in pairs.items() if values}  # the keys that both have
        self.digest = short_digest(config)
        self.environment = str(flat.get("env.name") or "")
        self.models = Models(target=_model(flat, "target"), optimizer=_model(flat, "optimizer"))
        seed = flat.get("train.seed")
        self.seed = seed if isinstance(seed, int) and not isinstance(seed, bool) else 0  # 0 if not recorded
        metric, weight = flat.get("evaluation.gate_metric"), number(flat.get("evaluation.gate_mixed_weight"))
        self.rule = GateRule(
            metric=Metric(str(metric)) if metric in set(Metric) else Metric.HARD,
            soft_weight=0.5 if weight is None or not 0.0 <= weight <= 1.0 else weight,
            enabled=flat.get("evaluation.use_gate") is not False,
        )
        self.gauge = Gauge(metric=self.rule.metric, soft_weight=self.rule.soft_weight)
        self.mode = _MODES.get(str(flat.get("optimizer.skill_update_mode") or ""), UpdateMode.PATCH)
        # whether the gate's scores hold a bonus for emphatic words
        self.density = flat.get("use_semantic_density", flat.get("evaluation.use_semantic_density")) is True


def _flat(config: Row) -> dict[str, object]:
    """Return dotted keys under the names of skillgit; a key that is not among them keeps its own."""
    # A flat ``optimizer`` or ``target`` does not name a model.
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
    return "/".join(filter(None, (str(flat.get(f"model.{role}{part}") or "") for part in ("_backend", ""))))


def number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < float("inf") else None


def count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def own(record: Row) -> Row:
    """Return what skillgit said besides, where it wrote the directory."""
    fields = record.get("skillgit")
    return fields if isinstance(fields, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    number: int  # 1-based over the whole run
    epoch: int
    record: Row  # what history says of it; empty for a step that history passes over
    action: str  # what happened to it; empty for a step that history passes over

    @property
    def folder(self) -> str:
        return f"steps/step_{self.number:04d}"

    @property
    def accepted(self) -> bool:
        return self.action in ACCEPTED

    @property
    def own(self) -> Row:
        return own(self.record)

    def score(self, key: str) -> float | None:
        value = number(self.record.get(key))
        if value is not None and not 0.0 <= value <= 1.0:
            problem = f"step {self.number} of history.json has {key} {value:g}"
            raise DataError(problem, hint="correct it: scores are between 0 and 1")
        return value

    @property
    def cost(self) -> Cost:
        """What the step cost, its tokens by stage; its prices are not known."""
        tokens = self.record.get("tokens")
        stages = {
            str(name): Cost(
                calls=count(row.get("calls")) or 0,
                tokens_in=count(row.get("prompt_tokens")) or 0,
                tokens_out=count(row.get("completion_tokens")) or 0,
            )
            for name, row in (tokens.items() if isinstance(tokens, dict) else ())
            if isinstance(row, dict)
        }
        total = stages.pop("_total", Cost())
        whole = sum(stages.values(), Cost()) if stages else total
        roles = {name: "target" if name in {"rollout", "selection", "test"} else "optimizer" for name in stages}
        parts = [
            CostPart(role=roles[name], stage=name, cost=replace(cost, unpriced=cost.calls))
            for name, cost in stages.items()
        ]
        return replace(
            whole,
            unpriced=whole.calls,
            seconds=number(self.record.get("wall_time_s")) or 0.0,
            parts=tuple(sorted(parts, key=lambda part: (part.role, part.stage))),
        )


def read_steps(directory: Directory) -> tuple[list[Step], list[str]]:
    """Return the steps of a directory, numbered without gaps, and what is odd about them."""
    remarks: list[str] = []
    files = {
        step: record
        for step in directory.numbered("steps", "step_")
        if (record := directory.mapping(f"steps/step_{step:04d}/step_record.json"))
    }
    rows = directory.listing("history.json")
    records: dict[int, Row] = {}
    if rows is None and files:
        remarks.append(f"{directory.fault('history.json')}; the steps are those of the step_record.json files")
        records = files
    elif rows is None and (directory.path / "history.json").exists():
        problem = f"the steps of {directory.path} are not known: {directory.fault('history.json')}"
        raise DataError(problem, hint="copy the directory again, or resume the run where it was made")
    elif rows is not None:
        numbers = [count(row.get("step")) for row in rows]
        remarks += [
            "history.json has a record without a step number, which is left out" for step in numbers if not step
        ]
        records = {step: row for step, row in zip(numbers, rows, strict=True) if step}
        if twice := sorted({step for step in numbers if step and numbers.count(step) > 1}):
            remarks.append(
                f"history.json tells step {', '.join(map(str, twice))} more than once, as a resumed run does;"
                " the last record is taken"
            )
        for step in sorted(files.keys() - records.keys()):
            remarks.append(f"history.json lacks step {step}; its step_record.json is taken")
            records[step] = files[step]
    steps, epoch = list[Step](), 1
    for step in range(1, max(records, default=0) + 1):
        record = records.get(step, {})
        action = str(record.get("action") or "")
        epoch = max(epoch, count(record.get("epoch")) or epoch)
        if action not in ACCEPTED | SKIPPED | {"reject"}:
            reason = f"the unknown action '{action}'" if action else "no action" if record else "no record"
            remarks.append(f"step {step} has {reason}; it is imported as a step of which nothing is known")
            action = ""
        steps.append(Step(number=step, epoch=epoch, record=record, action=action))
    return steps, remarks


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The results of items in a folder; ``outcomes`` is empty if the rows contradict themselves."""

    rows: Sequence[Row]  # a row for each result, as evidence has it; trajectories named in it are in ``files``
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # conversations, path to content, ``<name>/`` in front

    def evidence(self, path: str, *, is_consistent: bool = True) -> dict[str, bytes]:
        """Return the rows as the file ``path``, which is set apart if they do not add up, and the conversations."""
        return {path if is_consistent else f"{ORIGIN}/{path}": json_file(list(self.rows)), **self.files}


def read_outcomes(directory: Directory, folders: Sequence[str], name: str) -> Outcomes | None:
    """Return the outcomes in ``folders``, a batch each, if any; conversations are filed under ``name``."""
    rows, files, outcomes = list[Row](), dict[str, bytes](), dict[str, Outcome]()
    is_sound = True  # until a row has no id of its own, or no score
    for folder in folders:
        lines = directory.lines(f"{folder}/results.jsonl")
        for line in lines or ():
            item = str(line.get("id", ""))
            hard, soft = number(line.get("hard")), number(line.get("soft"))
            soft = hard if soft is None else soft
            row: Row = {"id": item, "task_type": str(line.get("task_type") or line.get("type") or "default")}
            row |= {key: value for key, value in (("hard", hard), ("soft", soft)) if value is not None}
            for field_name, keys in (("answer", _ANSWERS), ("feedback", ("fail_reason", "feedback"))):
                row[field_name] = str(next((line[key] for key in keys if line.get(key)), ""))
            is_path = item and ".." not in item.replace("\\", "/").split("/") and not item.startswith("/")
            entries = directory.listing(f"{folder}/predictions/{item}/conversation.json") if is_path else None
            if turns := list(_turns(entries or ())):
                path = f"{name}/trajectories/{text_digest(item)}.json"
                row["trajectory"], files[path] = path, json_file({"id": item, "turns": turns})
            rows.append(row)
            is_sound = is_sound and bool(item) and item not in outcomes and hard is not None and soft is not None
            if is_sound and hard is not None and soft is not None:
                try:
                    outcomes[item] = Scored(hard, soft)
                except DataError:
                    is_sound = False
        for line in () if lines is None else directory.lines(f"{folder}/failed.jsonl") or ():
            item, reason = str(line.get("id", "")), str(line.get("reason") or "failed")
            rows.append({"id": item, "failed": reason})
            outcomes[item] = FailedToEvaluate(reason)
    return Outcomes(rows=rows, outcomes=outcomes if is_sound else {}, files=files) if rows else None


def _turns(entries: Sequence[Row]) -> Iterator[dict[str, str]]:
    """Yield the entries of a conversation as turns; calls of tools and steps of games become one of each side."""
    for entry in entries:
        if "cmd" in entry or "action" in entry:
            reasoning, action = str(entry.get("reasoning") or ""), str(entry.get("cmd") or entry.get("action") or "")
            yield {"role": "assistant", "content": f"{reasoning}\n\n{action}" if reasoning else action}
            if answer := entry.get("obs") or entry.get("env_feedback"):
                yield {"role": "tool", "content": str(answer)}
        elif "content" in entry:
            role = str(entry.get("role") or "user")
            yield {"role": role if role in _ROLES else "user", "content": str(entry["content"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedScore:
    summary: EvaluationSummary
    evaluation: Evaluation | None = None  # the outcomes; absent if they are not here, or do not add up to the score
    remark: str = ""  # what does not add up


def imported_score(
    outcomes: Outcomes | None,
    items: Sequence[str],
    seed: int,
    *,
    where: str,
    hard: float | None,
    soft: float | None,
    split: Split = Split.SELECTION,
    is_partial: bool = False,
    spare: int = 0,
) -> ImportedScore | None:
    """Return what ``outcomes`` and the score that is recorded ``where`` say together; None if neither has one.

    The recorded one wins where the outcomes contradict it. Means that differ by rounding are those of the outcomes.
    ``items`` are those of the split, as far as they are known. A decision that did not need all outcomes is
    ``is_partial``, and ``spare`` of those that it did not need were rolled out all the same.
    """
    evaluation = None
    if outcomes is not None and outcomes.outcomes:
        rest = tuple(item for item in items if item not in outcomes.outcomes) if is_partial else ()
        evaluation = Evaluation(
            split=split,
            item_set=_set_digest((*outcomes.outcomes, *rest)),
            outcomes=outcomes.outcomes,
            seed=seed,
            unneeded=rest,
            spare=min(spare, len(rest)),
        )
        summary = evaluation.summary()
        pairs = ((summary.hard, hard), (summary.soft, soft))
        if all(figure is None or abs(score - figure) <= ROUNDING for score, figure in pairs):
            return ImportedScore(summary=summary, evaluation=evaluation)
    if hard is None:
        return None
    n = len(outcomes.rows) if outcomes is not None else len(items)
    item_set = _set_digest(items) if items and n == len(items) else ""
    soft = hard if soft is None else soft
    summary = EvaluationSummary(split=split, item_set=item_set, n=n, scored=n, hard=hard, soft=soft, seed=seed)
    if outcomes is None:
        return ImportedScore(summary=summary)
    score_text = f"{evaluation.summary().hard:.6g}" if evaluation is not None else "nothing that can be used"
    remark = f"{where} says {hard:.6g}, and its results.jsonl says {score_text}; the first is kept"
    return ImportedScore(summary=summary, remark=remark)


def _set_digest(items: Sequence[str]) -> str:
    """Return the digest of a set of items of which the contents are not known."""
    return item_set_digest(dict.fromkeys(items, ""))

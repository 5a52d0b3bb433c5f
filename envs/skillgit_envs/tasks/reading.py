"""The rows of a task file: JSON lines, JSON, CSV, or the ``evals/evals.json`` of an Agent Skill, read into items."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from skillgit.domain.did_you_mean import slips
from skillgit.domain.evaluation import Split
from skillgit.domain.ids import short_digest
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.data_rows import Row, check_storable, read_each, text_field
from skillgit_envs.tasks.attachments import Attachments, check_pictures
from skillgit_envs.tasks.checks.catalogue import EXTRACTORS, read_checks, reading_of
from skillgit_envs.tasks.checks.comparisons import CheckSource, Fields

PROMPTS = ("prompt", "question", "input", "task")
ANSWERS = ("answers", "answer", "expected")
DRAFT, DROPPED = "draft", "dropped"
_HINT = "the README of the environment tasks lists the fields of a task"
_LISTS = ("check", "checks", "answers", "choices", "files", "images", "criteria")
PROGRAMS = ("python", "command")
_CRITERIA = ("criteria", "expectations", "assertions")
_CRITERION = ("description", "text", "criterion", "assertion", "expectation", "statement")
"""Keys under which an object holds the words of a criterion."""
_LABELS = frozenset(("name", "id", "title"))
_OWN = ("id", "check", "checks", "status", "split", "group")
_HARVESTED = ("origin", "reviewed")  # where a row with a group comes from, which is not part of the task
_TEXTS = ("task_type", "context", "expectations", "assertions", "rubric", "expected_output", "extract")
_FIELDS = frozenset((*PROMPTS, *ANSWERS, *_LISTS, *_OWN, *_TEXTS))
_SHORTEST_TYPO = 4


@dataclass(slots=True, kw_only=True)
class Reader:
    prompt_field: str = ""  # the field with the task; empty takes the first of PROMPTS
    scorer: str = "normalized"  # the kind of check of rows that have an answer and no check
    extract: str = ""  # how a result is taken out of a reply; empty lets the row or its checks say
    attachments: Attachments = field(default_factory=Attachments)
    drafts: bool = False  # whether unreviewed rows are read, too
    splits: dict[str, Split] = field(default_factory=dict)  # item id to the split that its row names
    questions: dict[str, str] = field(default_factory=dict)  # item id to what is asked, without its context and choices

    def read(self, files: Sequence[Path]) -> list[Item]:
        return read_each(files, lambda row, path: [self.item(*task, path) for task in _tasks(row, path)])

    def item(self, where: str, row: Mapping[str, Any], path: Path) -> Item:
        if row.get("status") == DRAFT and not self.drafts:
            hint = f"skillgit tasks review {path.name} shows it"
            raise DataError(f"{where} is a draft that is not reviewed", hint=hint)
        if row.get("status") == DROPPED and not self.drafts:
            raise DataError(f"{where} is a draft that was dropped", hint="delete the line")
        _refuse_typos(where, row, {*_FIELDS, *filter(None, [self.prompt_field])})
        content = self._content(where, row, path)
        identity = text_field(where, row, "id") or f"t-{short_digest(content)}"
        task_type, split = text_field(where, row, "task_type") or "default", text_field(where, row, "split")
        try:
            item = Item(id=identity, content=content, task_type=task_type, group=text_field(where, row, "group"))
            self.questions[item.id] = self._question(where, row)
            if split:
                self.splits[item.id] = Split.parse(split)
        except DataError as error:
            raise DataError(f"{where}: {error.message}", hint=error.hint) from error
        return item

    def _content(self, where: str, row: Mapping[str, Any], path: Path) -> dict[str, object]:
        choices = _choices(where, row)
        # The files of evals/evals.json are named from the folder of the skill.
        folders = [path.parent, *([path.parent.parent] if path.parent.name == "evals" else [])]
        source = CheckSource(
            where=where,
            folder=path.parent,
            find=lambda names: self.attachments.find(where, names, folders),
            answers=_answers(where, row),
            choices=choices,
            expectation=text_field(where, row, "expected_output"),
        )
        checks = read_checks(source, self._given(where, row, source))
        images = self.attachments.find(where, _names(where, row, "images"), folders)
        check_pictures(where, images)
        content: dict[str, object] = {
            "prompt": self._prompt(where, row, choices),
            "files": self.attachments.find(where, _files(where, row), folders),
            "images": images,
            "checks": checks,
            "extract": self._reading(where, row, checks),
        }
        if any(check["type"] in PROGRAMS for check in checks):
            own = (*_OWN, *_HARVESTED) if row.get("group") else _OWN
            content["row"] = {name: value for name, value in row.items() if name not in own}
        return content

    def _prompt(self, where: str, row: Mapping[str, Any], choices: Mapping[str, str]) -> str:
        listing = "\n".join(f"{label}. {choice}" for label, choice in choices.items())
        return "\n\n".join(filter(None, (text_field(where, row, "context"), self._question(where, row), listing)))

    def _question(self, where: str, row: Mapping[str, Any]) -> str:
        names = (self.prompt_field,) if self.prompt_field else PROMPTS
        text = text_field(where, row, *names)
        if not text:
            fields = ", ".join(row) or "nothing"
            raise DataError(f"{where} has no {' or '.join(names)} with text; it has {fields}", hint=_HINT)
        return text

    def _given(self, where: str, row: Mapping[str, Any], source: CheckSource) -> Sequence[object]:
        """Return the checks of a row as it says them, or what follows from its other fields."""
        if row.get("checks") and row.get("check"):
            raise DataError(f"{where} has both 'check' and 'checks'", hint="keep one of them")
        if row.get("checks"):
            if not isinstance(row["checks"], list):
                raise DataError(f"{where} has 'checks' that are not a list", hint="write one check as 'check'")
            return row["checks"]
        criteria = next((_criteria(where, row, name) for name in _CRITERIA if row.get(name)), None)
        if row.get("check"):
            return [row["check"]]
        if criteria or row.get("rubric"):
            fields = {"criteria": criteria, "rubric": row.get("rubric")}
            return [{"type": "judge"} | {name: value for name, value in fields.items() if value}]
        if source.answers:
            return [self.scorer]
        if source.expectation:
            return ["judge"]
        hint = "give it an 'answer', a 'check', or a 'rubric' for a judge"
        raise DataError(f"{where} does not say what a right result is", hint=hint)

    def _reading(self, where: str, row: Mapping[str, Any], checks: Sequence[Fields]) -> str:
        reading = text_field(where, row, "extract") or self.extract or reading_of(checks)
        if reading not in EXTRACTORS:
            raise DataError(f"{where} has the 'extract' '{reading}'", hint=f"known are {', '.join(EXTRACTORS)}")
        return reading


def _refuse_typos(where: str, row: Mapping[str, Any], names: Collection[str]) -> None:
    """Refuse a field one slip from one that means something; others, such as a source, are the row's own business."""
    for name in row.keys() - names:
        likely = next((field for field in sorted(names) if slips(name.lower(), field, 1) <= 1), None)
        if likely is not None and len(name) >= _SHORTEST_TYPO:
            raise DataError(f"{where} has the field '{name}', which means nothing", hint=f"did you mean '{likely}'?")


def _tasks(row: Row, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tasks of a row with their places: itself, or each of the evals of a skill."""
    value = row.fields
    evals = value.get("evals")
    if not isinstance(evals, list):
        identity = {"id": row.name} if row.name and row.where != str(path) else {}
        yield row.where, identity | {name: _cell(row.where, name, cell) for name, cell in value.items()}
        return
    for number, task in enumerate(evals, start=1):
        where = f"{row.where}, eval {number}"
        if not isinstance(task, dict):
            raise DataError(f"{where} is not an object", hint="it has a prompt and expectations")
        yield where, task


def _cell(where: str, name: str, value: object) -> object:
    """Return a value; lists and objects may be written as JSON in a text, as a cell of CSV has to."""
    if name not in _LISTS or not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        data = json.loads(value)
    except ValueError as error:
        raise DataError(f"{where} has a '{name}' that is not JSON: {error}", hint=_HINT) from error
    check_storable(where, data)
    return data


def _answers(where: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    value = next((row[name] for name in ANSWERS if row.get(name) not in (None, "", [])), None)
    values = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(answer, str | int | float) and not isinstance(answer, bool) for answer in values):
        raise DataError(f"{where} has an answer that is neither text nor number", hint=_HINT)
    return tuple(answer if isinstance(answer, str) else json.dumps(answer) for answer in values)


def _choices(where: str, row: Mapping[str, Any]) -> dict[str, str]:
    entries = row.get("choices") or []
    if isinstance(entries, dict):
        entries = list(entries.values()) if list(entries) == list(ascii_uppercase[: len(entries)]) else None
    if not isinstance(entries, list) or not all(isinstance(choice, str) and choice.strip() for choice in entries):
        raise DataError(f"{where} has 'choices' that are not a list of texts", hint='write ["one", "another"]')
    if len(entries) > len(ascii_uppercase) or len({choice.strip() for choice in entries}) < len(entries):
        raise DataError(f"{where} has too many choices, or one twice", hint="there are 26 labels")
    return dict(zip(ascii_uppercase, (choice.strip() for choice in entries), strict=False))


def _criteria(where: str, row: Mapping[str, Any], name: str) -> list[str]:
    """Return the criteria in the field ``name``, each a text or an object that holds one, such as a description."""
    entries = row[name] if isinstance(row[name], list) else [row[name]]
    texts = []
    for number, entry in enumerate(entries, start=1):
        fields = {"text": entry} if isinstance(entry, str) else entry
        keys = [key for key in _CRITERION if isinstance(fields, dict) and key in fields]
        if not isinstance(fields, dict) or len(keys) != 1 or fields.keys() - _LABELS - set(keys):
            shape = f"an object with {', '.join(map(str, fields))}" if isinstance(fields, dict) else "neither"
            raise DataError(
                f"{where}: entry {number} of '{name}' must be a text, or an object with one, and is {shape}",
                hint='write "There is a chart", or {"name": "chart", "description": "There is a chart"}',
            )
        text = fields[keys[0]]
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{where}: entry {number} of '{name}' has no text in '{keys[0]}'", hint="say what to check")
        texts.append(text)
    return texts


_NAMES_OF_FILES = ("path", "name", "filename")


def _files(where: str, row: Mapping[str, Any]) -> list[str | tuple[str, str]]:
    """Return the files of a row: paths next to the data, or paths with the text that the row holds."""
    value = row.get("files") or []
    files: list[str | tuple[str, str]] = []
    for number, entry in enumerate(value if isinstance(value, list) else [value], start=1):
        if isinstance(entry, str):
            files.append(entry)
            continue
        names = [key for key in _NAMES_OF_FILES if isinstance(entry, dict) and isinstance(entry.get(key), str)]
        if len(names) != 1 or entry.keys() - {names[0], "content"} or not isinstance(entry.get("content", ""), str):
            shape = f"an object with {', '.join(map(str, entry))}" if isinstance(entry, dict) else "neither"
            raise DataError(
                f"{where}: entry {number} of 'files' must be a path, or an object with 'path' and 'content',"
                f" and is {shape}",
                hint='write "files/notes.txt", or {"path": "notes.txt", "content": "the text"}',
            )
        files.append((entry[names[0]], entry["content"]) if "content" in entry else entry[names[0]])
    return files


def _names(where: str, row: Mapping[str, Any], name: str) -> list[str]:
    value = row.get(name) or []
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(entry, str) for entry in names):
        raise DataError(
            f"{where} has '{name}' that are not a list of paths", hint="paths start at the folder of the data"
        )
    return names

"""The files of eval cases, as ``claude plugin eval`` of Claude Code 2.1 takes them: read and written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from skillgit.domain.untrusted.model_text import unstorable_place, visible
from skillgit.errors import DataError, NotFoundError, UsageError
from skillgit.files import read_plain

Fields = dict[str, Any]
EVALS: Final = "evals"
SCHEMA: Final = "1.1"
_CASE_FILE, _PROMPT_FILE, _GRADERS = "case.yaml", "prompt.md", "graders"
_MOST_CASES, _DEEPEST = 2_000, 6
_LONGEST = 1 << 20  # bytes of a file of a case, as the program reads it
_LONGEST_HEAD = 64_000  # characters of its YAML
_MOST_BRACKETS = 500  # in it, for a parser takes the square of their number where they are nested
_NOT_CASES = frozenset({"results", "mocks", _GRADERS, "node_modules"})
_HEAD = re.compile(r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)(?P<body>.*)", re.DOTALL | re.MULTILINE)
CASE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TURNS: Final = {"max_turns": 10}  # what the program takes where a case says nothing; a case has to say something
_BODY = {"regex": "pattern", "llm": "criteria", "baseline": "criteria"}
"""Type of a grader to the field that follows its frontmatter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalCase:
    """A case as its files have it."""

    name: str
    prompt: str
    graders: tuple[Fields, ...]
    settings: Fields = field(default_factory=dict)  # everything else that it says, by the names of the format
    hint: str = ""  # what is expected, in words


def read_cases(folder: Path) -> tuple[list[EvalCase], tuple[str, ...]]:
    """Return the cases below ``folder``, and the names of the skills of its plug-in."""
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}", hint="name a plug-in or its folder of evals")
    root = folder / EVALS if (folder / EVALS).is_dir() and not (folder / EVALS).is_symlink() else folder
    plugin = folder if root != folder else folder.parent
    skills = tuple(sorted(path.parent.name for path in plugin.glob("skills/*/SKILL.md")))
    cases = []
    for location in _locations(root):
        cases.append(_case(location, "-".join(location.relative_to(root).parts) or root.name))
        if len(cases) > _MOST_CASES:
            raise UsageError(f"{root} has more than {_MOST_CASES:,} cases", hint="name a folder below it")
    names = [case.name for case in cases]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise DataError(f"two cases in {root} are called {twice}", hint="rename one of them")
    if not cases:
        raise NotFoundError(
            f"there is no case in {root}", hint=f"a case is a folder with {_PROMPT_FILE} or {_CASE_FILE}"
        )
    return cases, skills


def _locations(root: Path) -> Iterator[Path]:
    """Yield the folders of cases in order; no link is followed."""
    for name, folders, files in os.walk(root):
        location = Path(name)
        folders[:] = sorted(entry for entry in folders if entry not in _NOT_CASES and not entry.startswith("."))
        if len(location.relative_to(root).parts) > _DEEPEST:
            folders.clear()
        if {_CASE_FILE, _PROMPT_FILE} & set(files):
            yield location


def _case(location: Path, name: str) -> EvalCase:
    whole: Fields = {}
    if (location / _CASE_FILE).exists():
        whole = _mapping(location / _CASE_FILE, _text(location / _CASE_FILE))
        if str(whole.get("schema_version", "")).partition(".")[0] != SCHEMA.partition(".")[0]:
            raise DataError(f"{location / _CASE_FILE} has no schema_version like {SCHEMA}", hint="check the file")
    execution, graders = fields_in(whole.get("execution")), [*map(fields_in, list_in(whole.get("graders")))]
    if (location / _PROMPT_FILE).exists():
        head, body = _split(location / _PROMPT_FILE)
        execution |= head
        execution |= {"prompt": body.strip()} if body.strip() else {}
    if not (location / _GRADERS).is_symlink():
        graders += filter(None, map(_grader, sorted((location / _GRADERS).glob("*.md"))))
    prompt = execution.pop("prompt", "")
    if not isinstance(prompt, str) or not prompt.strip() or not graders:
        raise DataError(f"{location} is not a case: it has no {'graders' if prompt else 'prompt'}", hint="complete it")
    top = {key: value for key, value in whole.items() if key not in {"schema_version", "execution", "graders", "name"}}
    settings = {**top, **execution}
    settings = {key: value for key, value in settings.items() if (key, value) not in _TURNS.items()}
    hint = str(settings.pop("expected_outcome", ""))
    title = str(whole.get("name") or settings.pop("name", "") or name)
    settings.pop("schema_version", None)
    return EvalCase(
        name=title if CASE_NAME.fullmatch(title) else name,
        prompt=prompt.strip(),
        graders=tuple(graders),
        settings=settings,
        hint=hint,
    )


def _grader(path: Path) -> Fields:
    """Return what a file says of a grader; nothing for one without a frontmatter, which the program passes over."""
    head, body = _split(path)
    if not head:
        return {}
    fields = {"name": path.stem, **head}
    key = _BODY.get(str(fields.get("type")), "")
    if key and key not in fields and body.strip():
        fields[key] = body.strip()
    return fields


def _split(path: Path) -> tuple[Fields, str]:
    text = _text(path)
    match = _HEAD.fullmatch(text)
    return (_mapping(path, match["head"]), match["body"]) if match else ({}, text)


def _text(path: Path) -> str:
    try:
        text = read_plain(path, most=_LONGEST).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8", hint="save it as UTF-8") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", hint="check the file") from error
    return text


def _mapping(path: Path, text: str) -> Fields:
    """Return YAML as JSON values; a DataError for what is none, and for what makes little text into much."""
    try:
        return _values(text)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(visible(str(error)).split())[:200]
        raise DataError(f"the YAML of {path} cannot be used: {reason}", hint="check the file") from error


def _values(text: str) -> Fields:
    if len(text) > _LONGEST_HEAD or text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise ValueError("it is too long or too deep")
    if any(isinstance(token, yaml.AliasToken | yaml.TagToken) for token in yaml.scan(text, Loader=yaml.SafeLoader)):
        raise ValueError("it has an alias or a tag")
    fields = json.loads(json.dumps(yaml.safe_load(text) or {}, allow_nan=False))
    if not isinstance(fields, dict) or unstorable_place(fields) is not None:
        raise ValueError("it is not a mapping of names to values")
    return fields


def fields_in(value: object) -> Fields:
    return dict(value) if isinstance(value, dict) else {}


def list_in(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def files_of(case: EvalCase) -> dict[str, str]:
    """Return the files of a case by their paths in its folder."""
    files = {_PROMPT_FILE: _written({**_TURNS, **case.settings}, case.prompt)}
    for number, grader in enumerate(case.graders, start=1):
        fields = {key: value for key, value in grader.items() if key != "name"}
        stem, key = f"{number}-{fields['type']}", _BODY.get(str(fields["type"]), "")
        if grader["name"] != stem:
            fields["name"] = grader["name"]
        body = str(fields[key]) if key else ""
        if key and body == body.strip():
            del fields[key]  # else blanks around it would get lost
        files[f"{_GRADERS}/{stem}.md"] = _written(fields, body if key not in fields else "")
    return files


def _written(head: Fields, body: str) -> str:
    # JSON is YAML, and leaves no doubt about what is a text
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    return "\n".join(["---", *lines, "---", "", *([body, ""] if body else [])])

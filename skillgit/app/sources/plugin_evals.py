"""Eval cases of plug-ins, as ``claude plugin eval`` of Claude Code 2.1 takes them: read into tasks, and written.

A row is written only if reading what was written gives the same task again.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import regex
import yaml

from skillgit.app.sources.tasks import DRAFT, SETUP, STAND_IN, ReadsTasks, Row, TaskFile, reader_of_tasks
from skillgit.app.workspace.context import Context
from skillgit.domain.untrusted.file_names import TreePath
from skillgit.domain.untrusted.model_text import unstorable_place, visible
from skillgit.errors import DataError, NotFoundError, UnsafeNameError, UsageError
from skillgit.files import read_plain
from skillgit.plugin.data_rows import read_rows

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
_OUR_GRADER = re.compile(r"\d+-(?:regex|llm|tool_used)")  # the name of a file whose check has no name of its own
_SKILL = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_LOADS = re.compile(rf'(?:"\(\?:\[a-z0-9-\]\+:\)\?|"|\^|(?:{_SKILL}):)?(?P<skill>{_SKILL})(?:"|\$)?')
"""The patterns of a skill's name that mean this skill: what is written here, the name alone, ``plugin:name``."""
_ABSENT = re.compile(r"\^\(\?!\[\\s\\S\]\*\(\?:(?P<pattern>.*)\)\)", re.DOTALL)
"""A pattern that is found where another one is not."""
_ONE_PROGRAM_ONLY = re.compile(
    r"(?<!\\)(?:\\\\)*(?:\\[AZzGKRXNLpPc0hH]|\{,|\(\?(?:[aiLmsuxbefrpV]+[:)-]|P|>|\||&|#|\()|\[\^?\]|[*+?}]\+|\[\[:)"
)
"""What regular expressions of JavaScript and of Python do not both know, or read differently."""
_TAGGED = ("split", "task_type", "group")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutTask:
    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedEvals:
    path: Path  # the file of tasks
    triggers_path: Path  # the file of requests that should load a skill, or none
    tasks: tuple[str, ...]  # ids of the tasks that were added, drafts included
    drafts: tuple[str, ...]  # those of cases with a grader that no check equals
    triggers: tuple[str, ...]
    present: tuple[str, ...]  # ids of cases that were there already
    unmatched: Mapping[str, int]  # kinds of graders that no check equals, with how often there was one


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCases:
    files: Mapping[str, bytes]  # path below the folder of evals to content
    count: int
    left_out: tuple[LeftOutTask, ...]


def triggers_of(path: Path) -> Path:
    """Return the file next to a file of tasks that holds requests with the skill that they should load."""
    return path.with_name(f"{path.stem}-triggers{path.suffix}")


def import_evals(context: Context, folder: Path, path: Path) -> ImportedEvals:
    """Add the cases of a plug-in, or of its folder of evals, to a file of tasks and to that of triggers next to it."""
    file, reader = TaskFile(path=context.directory / path), reader_of_tasks(context)
    triggers = TaskFile(path=triggers_of(file.path))
    cases, skills = read_cases(context.directory / folder)
    present = {entry.item.id for entry in file.read(reader)} | set(_trigger_rows(triggers.path))
    unmatched: Counter[str] = Counter()
    tasks: list[Row] = []
    requests: list[Row] = []
    for case in cases:
        task, request, strange = rows_of(case, skills)
        if case.name in present:
            continue
        unmatched.update(strange)
        if task is not None:
            reader.task(f"case {case.name}", task, file.path)
            tasks.append(task)
        if request is not None:
            requests.append(request)
    for target, rows in ((file, tasks), (triggers, requests)):
        if rows:
            target.append(rows)
    return ImportedEvals(
        path=file.path,
        triggers_path=triggers.path,
        tasks=tuple(str(row["id"]) for row in tasks),
        drafts=tuple(str(row["id"]) for row in tasks if row.get("status") == DRAFT),
        triggers=tuple(str(row["id"]) for row in requests),
        present=tuple(case.name for case in cases if case.name in present),
        unmatched=dict(sorted(unmatched.items())),
    )


def _trigger_rows(path: Path) -> dict[str, Row]:
    rows = [dict(row.fields) for row in read_rows(path)] if path.is_file() else []
    return {str(row.get("id", "")): row for row in rows}


def rows_of(case: EvalCase, skills: Sequence[str] = ()) -> tuple[Row | None, Row | None, list[str]]:
    """Return the row of a task, the row of a trigger, each if the case is one, and the graders that no check equals."""
    checks: list[Fields] = []
    unmatched: list[Fields] = []
    triggers: list[str] = []
    for grader in case.graders:
        skill = _trigger(grader, skills)
        check = _check(grader) if skill is None else None
        if skill is not None:
            triggers.append(skill)
        elif check is not None:
            checks.append(check)
        else:
            unmatched.append(grader)
    if len(set(triggers)) > 1:
        unmatched += [grader for grader in case.graders if _trigger(grader, skills) is not None]
        triggers = []
    head: Row = {"id": case.name}
    request = {**head, "prompt": case.prompt, "skill": triggers[0]} if triggers else None
    if not checks and not unmatched:
        return None, request, []
    if unmatched or {*SETUP} & set(fields_in(case.settings.get("context"))):
        head["status"] = DRAFT
    task: Row = {**head, "prompt": case.prompt, **_tags(case.settings), **_graded(checks)}
    if not checks:
        task["rubric"] = case.hint or f"{STAND_IN}{', '.join(map(_described, unmatched))}."
    strange_tags = [tag for tag in list_in(case.settings.get("tags")) if str(tag).partition(":")[0] not in _TAGGED]
    rest = {**case.settings, "tags": strange_tags}
    rest = {key: value for key, value in rest.items() if key != "tags" or value}
    task |= ({"unmatched": unmatched} if unmatched else {}) | ({"eval": rest} if rest else {})
    return task, request, [str(grader.get("type", "?")) for grader in unmatched]


def _trigger(grader: Fields, skills: Sequence[str]) -> str | None:
    """Return the skill that a grader wants loaded, empty if none; None for another grader, or an unclear one."""
    if grader.get("type") != "tool_used" or grader.get("tool") != "Skill" or grader.get("weight", 1) != 1:
        return None
    pattern = grader.get("input_match")
    match = _LOADS.fullmatch(pattern) if isinstance(pattern, str) else None
    skill = match["skill"] if match else skills[0] if pattern is None and len(skills) == 1 else ""
    if grader.get("max") == 0 and grader.get("min", 1) == 0:
        return "" if pattern is None or list(skills) == [skill] else None
    return skill if skill and grader.get("max") is None and grader.get("min", 1) == 1 else None


def _check(grader: Fields) -> Fields | None:
    """Return the check that equals a grader, if there is one."""
    name, weight = str(grader.get("name", "")), grader.get("weight", 1)
    target = grader.get("target", grader.get("focus", "last_message"))
    if target != "last_message" or not isinstance(weight, int | float) or weight <= 0:
        return None
    more = ({} if _OUR_GRADER.fullmatch(name) or not name else {"name": name}) | (
        {"weight": weight} if weight != 1 else {}
    )
    match grader.get("type"), grader.get("pattern"), grader.get("criteria"):
        case "regex", str() as pattern, _:
            flags, mode = str(grader.get("flags", "")), grader.get("match", "contains")
            if flags not in {"", "i"} or mode not in {"contains", "not_contains"} or not _portable(pattern):
                return None
            pattern = rf"^(?![\s\S]*(?:{pattern}))" if mode == "not_contains" else pattern
            return {"type": "regex", "pattern": pattern, **({"ignore_case": True} if flags else {}), **more}
        case "llm", _, str() as criteria if criteria.strip():
            return {"type": "judge", "rubric": criteria, **more}
    return None


def _portable(pattern: str) -> bool:
    try:
        regex.compile(pattern)
    except regex.error:
        return False
    return not _ONE_PROGRAM_ONLY.search(pattern)


def _graded(checks: Sequence[Fields]) -> Row:
    """Return how a row says its checks, in the fewest words."""
    rubrics = [check["rubric"] for check in checks if list(check) == ["type", "rubric"]]
    if checks and len(rubrics) == len(checks):
        return {"rubric": rubrics[0]} if len(rubrics) == 1 else {"criteria": rubrics}
    # the last message is graded as it is
    return {"check": checks[0], "extract": "whole"} if len(checks) == 1 else {"checks": [*checks], "extract": "whole"}


def _tags(settings: Fields) -> Row:
    """Return the fields of a row that are in the tags of a case."""
    pairs = [str(tag).partition(":") for tag in list_in(settings.get("tags"))]
    return {name: value for name, colon, value in pairs if colon and name in _TAGGED and value}


def _described(grader: Fields) -> str:
    settings = {key: value for key, value in grader.items() if key not in {"type", "name"}}
    return f"{grader.get('type', 'something')} {json.dumps(settings, ensure_ascii=False)}"


def cases_of(context: Context, path: str) -> WrittenCases:
    """Return the files of the cases that the tasks and the triggers in and next to ``path`` make."""
    file, reader = TaskFile(path=context.directory / path), reader_of_tasks(context)
    if not file.path.is_file() and not triggers_of(file.path).is_file():
        raise NotFoundError(f"there is no file {path}", hint="--evals tasks/NAME.jsonl")
    tasks = {entry.item.id: {"id": entry.item.id, **entry.row} for entry in file.read(reader)}
    triggers = _trigger_rows(triggers_of(file.path))
    files: dict[str, bytes] = {}
    left_out: list[LeftOutTask] = []
    for name in dict.fromkeys([*tasks, *triggers]):
        case, reason = case_of(tasks.get(name), triggers.get(name), reader, file.path)
        if case is None:
            left_out.append(LeftOutTask(id=name, reason=reason))
        else:
            files |= {f"{case.name}/{part}": content.encode() for part, content in files_of(case).items()}
    return WrittenCases(files=files, count=len({*tasks, *triggers}) - len(left_out), left_out=tuple(left_out))


def case_of(task: Row | None, trigger: Row | None, reader: ReadsTasks, path: Path) -> tuple[EvalCase | None, str]:
    """Return the case that gives these rows when it is read, or why there is none."""
    row = task or trigger or {}
    name = str(row.get("id", ""))
    if row.get("status") == DRAFT:
        return None, "it is a draft that has not been reviewed"
    try:
        TreePath(name)
    except UnsafeNameError:
        return None, "its id cannot name a folder"
    if not CASE_NAME.fullmatch(name):
        return None, "its id cannot name a folder"
    item = reader.task(f"task {name}", task, path) if task else None
    content = item.content if item else {}
    prompt = str(content.get("prompt") or row.get("prompt", ""))
    graders = [_grader_of(number, check) for number, check in enumerate(_expanded(content.get("checks")), start=1)]
    graders += [_trigger_grader(len(graders) + 1, str(trigger.get("skill", "")))] if trigger else []
    settings = fields_in(task.get("eval")) if task else {}
    tags = [*(f"{key}:{task[key]}" for key in _TAGGED if task and task.get(key)), *list_in(settings.get("tags"))]
    settings |= {"tags": tags} if tags else {}
    case = EvalCase(name=name, prompt=prompt, graders=tuple(filter(None, graders)), settings=settings)
    if not prompt or None in graders:
        return None, "it has a check that no grader equals"
    again, request, strange = rows_of(case)
    same_request = {key: (trigger or {}).get(key) for key in ("id", "prompt", "skill")} if trigger else None
    if strange or (again is None) != (task is None) or request != same_request:
        return None, "its regular expression does not mean the same in JavaScript" if strange == [
            "regex"
        ] else _NO_WORDS
    if task is not None and again is not None and _meaning(again, reader, path) != _meaning(task, reader, path):
        return None, _unsaid(content, reader.task("a task", again, path).content)
    return case, ""


_NO_WORDS = "the format of evals has no words for all of it"


def _unsaid(content: Mapping[str, object], again: Mapping[str, object]) -> str:
    """Return what of a task is lost when it is written and read again, and how to keep it where that is possible."""
    names = {name for name in {*content, *again} - {"checks"} if content.get(name) != again.get(name)}
    pairs = zip(list_in(content.get("checks")), list_in(again.get("checks")), strict=False)
    for before, after in ((fields_in(before), fields_in(after)) for before, after in pairs):
        names |= {name for name in {*before, *after} if before.get(name) != after.get(name)}
    if names == {"extract"}:
        return 'graders read the whole last message: set "extract": "whole"'
    return f"the format of evals has no words for {', '.join(sorted(names))}" if names else _NO_WORDS


def _meaning(row: Row, reader: ReadsTasks, path: Path) -> object:
    item = reader.task("a task", row, path)
    return item.id, item.content, [row.get(key) for key in _TAGGED]


def _expanded(checks: object) -> list[Fields]:
    """Return checks with those of a judge as one for each criterion; of several next to other checks as they are."""
    rows: list[Fields] = []
    for check in map(fields_in, list_in(checks)):
        criteria = list_in(check.get("criteria"))
        if len(criteria) == 1 or (criteria and len(list_in(checks)) == 1):
            rest = {key: value for key, value in check.items() if key != "criteria"}
            rows += [{**rest, "rubric": text} for text in criteria]
        else:
            rows.append(check)
    return rows


def _grader_of(number: int, check: Fields) -> Fields | None:
    head: Fields = {"name": str(check.get("name", f"{number}-{'llm' if check['type'] == 'judge' else check['type']}"))}
    head |= {"weight": check["weight"]} if check.get("weight", 1) != 1 else {}
    match check["type"]:
        case "regex":
            absent = _ABSENT.fullmatch(str(check["pattern"]))
            pattern, mode = (absent["pattern"], "not_contains") if absent else (check["pattern"], "contains")
            flags = {"flags": "i"} if check.get("ignore_case") else {}
            return {**head, "type": "regex", "match": mode, **flags, "pattern": pattern}
        case "judge" if "rubric" in check:
            return {**head, "type": "llm", "criteria": check["rubric"]}
    return None


def _trigger_grader(number: int, skill: str) -> Fields:
    head: Fields = {"name": f"{number}-tool_used", "type": "tool_used", "tool": "Skill", "arm": "both"}
    return {**head, "input_match": f'"(?:[a-z0-9-]+:)?{skill}"'} if skill else {**head, "min": 0, "max": 0}

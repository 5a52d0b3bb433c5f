"""Owns what an instance is: its row as published, what of it is refused, and the script that runs its tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from skillgit.domain.trajectory import Item
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import DataError
from skillgit.plugin.data_rows import Row, check_storable
from skillgit_envs.shipped_environment import fields_hint, require

DATASETS = ("lite", "verified", "full")
REVISION = "666f26226e5078d7a53365d7e2a4a7572559b35e"
ROWS_HINT = f"take those of data/ in github.com/SWE-bench/SWE-bench at {REVISION}, written as JSON lines"
"""Which rows can be run."""
_RUNNABLE = ("eval_script", "log_parser", "eval_type")
_EVAL_TYPES = ("pass_and_fail", "fail_only")
_FORMS = {
    "repo": re.compile(r"(?!.*\.\.)[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"),
    "base_commit": re.compile(r"[0-9a-f]{40}"),
    "version": re.compile(r"(?!.*\.\.)(?:[A-Za-z0-9][\w.+-]*)?"),
    "image": re.compile(r"(?:[a-z0-9][\w./:@-]*)?"),
    "log_parser": re.compile(r"[a-z]\w*"),
}
"""What a field may be that becomes part of a path or an argument of a program."""


def own_files(files: Sequence[Path], dataset_name: str) -> Sequence[Path]:
    """Return the data files, or of several those that are named after ``dataset_name``."""
    matches = [path for path in files if dataset_name in path.stem.lower() or dataset_name in path.parent.name.lower()]
    if len(files) > 1 and not matches:
        raise DataError(
            f"none of the data files in {files[0].parent} is named after {dataset_name}",
            hint=f"call one {dataset_name}.jsonl, or leave env.dataset_name empty",
        )
    return matches if len(files) > 1 else files


def completed(row: Row, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of an item with its tests; a DataError if it cannot be run, or is not safe to run."""
    where = row.where
    if missing := ", ".join(name for name in _RUNNABLE if not content[name]):
        raise DataError(f"{where} has no {missing}: it is of a release that cannot be run", hint=ROWS_HINT)
    require(where, "swebench", {"problem_statement": content["problem_statement"]})
    for name, form in _FORMS.items():
        if not form.fullmatch(content[name]):
            raise DataError(f"{where} has the {name} {shown(content[name])}", hint=fields_hint("swebench"))
    if content["eval_type"] not in _EVAL_TYPES:
        raise DataError(f"{where} has an unknown eval_type", hint=f"it is one of {', '.join(_EVAL_TYPES)}")
    tests = {name: _tests(where, row.fields, name) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    require(where, "swebench", {"FAIL_TO_PASS": tests["FAIL_TO_PASS"]})
    return {**content, **tests, "task_type": content["repo"]}


def _tests(where: str, fields: Mapping[str, object], name: str) -> list[str]:
    """Return the names of tests; most releases have them as a text that holds a JSON list."""
    value = fields.get(name) or []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} has {name} that are not JSON", hint='write ["one", "two"]') from error
        check_storable(where, value)
    if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
        raise DataError(f"{where} has {name} that are not a list of texts", hint=fields_hint("swebench"))
    return value


_CODE = "SWEBENCH_TEST_EXIT_CODE"
START, END, EXIT = ">>>>> Start Test Output", ">>>>> End Test Output", ">>>>> Test Exit Code"
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_INSTALLS = re.compile(r"\s*(?:(?:source|\.)\s+\S*conda\S*|conda\s|(?:python[\d.]*\s+-m\s+)?pip[\d.]*\s)")


@dataclass(frozen=True, slots=True)
class Instance:
    """An item, by what running and grading it needs."""

    item: Item

    def text(self, name: str) -> str:
        return str(self.item.content[name])

    def tests(self, name: str) -> Sequence[str]:
        return cast("Sequence[str]", self.item.content[name])

    @property
    def folder(self) -> str:
        """The project as one part of a path."""
        return self.text("repo").replace("/", "__")

    def script(self, *, installs: bool) -> str:
        """Return what runs the tests; like the official one it writes the exit code of the tests behind its mark.

        Without ``installs``, the lines that call conda or pip do nothing, and the checkout is ``$TESTBED``.
        """
        lines = self.text("eval_script").split("\n")
        body = lines if installs else list(_without_installs(lines))
        body = [line for line in body if line not in {"#!/bin/bash", "set -uxo pipefail"}]
        at = next((number for number, line in enumerate(body) if END in line), None)
        if at is not None:
            body[at : at + 1] = [f"{_CODE}=$?", body[at], f'echo "{EXIT}: ${_CODE}"']
        return "\n".join(["#!/bin/bash", "set -uxo pipefail", *body, ""])


def _without_installs(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a script; a document in it, such as a patch, is left alone."""
    mark = ""
    for line in lines:
        if mark:
            mark = "" if line == mark else mark
            yield line
        elif _INSTALLS.match(line):
            yield "true"
        else:
            match = _HEREDOC.search(line)
            mark = match[2] if match else ""
            yield line.replace("/testbed", "$TESTBED")

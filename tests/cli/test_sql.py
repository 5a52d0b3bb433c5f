"""The documented tables are those of the index, and the documented queries run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from documents import blocks, page
from program import skillgit as program
from sample_run import write_run

from skillgit.index.schema import in_memory

SQL = page("scripting.md").partition("\n## The index in SQL\n")[2]
EXAMPLES = [block.removeprefix("skillgit sql ").rstrip() for block in blocks("scripting.md", "sh", mark="executed")]
TABLE = re.compile(r"^### `(\w+)`\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)


def documented() -> dict[str, list[str]]:
    return {name: re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE) for name, text in TABLE.findall(SQL)}


def in_the_index() -> dict[str, list[str]]:
    connection = in_memory()
    names = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'search\\_%' ESCAPE '\\'"
    tables = [row[0] for row in connection.execute(names)]
    found = {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in tables}
    connection.close()
    return found


def test_the_documented_tables_and_columns_are_those_of_the_index():
    tables = in_the_index()
    assert documented() == {name: tables[name] for name in documented()}
    assert {"log", "scoreboard", "item_history", "run", "event", "version", "candidate", "edit"} <= set(documented())


@pytest.fixture
def repository(repo) -> Path:
    write_run(repo)
    return repo.workdir


def test_there_are_examples():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_documented_queries_have_answers(repository, example):
    options, query = re.fullmatch(r'((?:--\w+ )*)"(.*)"', example, flags=re.DOTALL).groups()
    assert len(program("sql", *options.split(), query, cwd=repository).out.splitlines()) >= 2


def test_every_form_says_the_same(repository):
    query = "SELECT version, score, inherited FROM scoreboard ORDER BY version LIMIT 2"
    text = program("sql", query, cwd=repository).out
    assert text == "version  score  inherited\n───────  ─────  ─────────\n      0    0.4\n      1    0.6\n"
    assert program("sql", "--plain", query, cwd=repository).out == "0\t0.4\t\n1\t0.6\t\n"
    assert program("sql", "--plain", query, cwd=repository).out == "0\t0.4\t\n1\t0.6\t\n"
    rows = [{"version": 0, "score": 0.4, "inherited": None}, {"version": 1, "score": 0.6, "inherited": None}]
    lines = program("sql", "--jsonl", query, cwd=repository).out.splitlines()
    assert [json.loads(line) for line in lines] == rows
    document = json.loads(program("sql", "--json", query, cwd=repository).out)
    assert document == {"schema": "skillgit.sql/1", "columns": ["version", "score", "inherited"], "rows": rows}


def test_a_mistake_is_one_sentence_and_a_hint(repository):
    ended = program("sql", "SELECT * FROM lgo", cwd=repository, code=2)
    assert ended.err == "skillgit: SQL: no such table: lgo\nhint: did you mean 'log'?\n"


def test_text_of_a_model_cannot_drive_the_terminal(repository):
    assert "^[" in program("sql", "SELECT char(27) || ']0;x' AS evil", cwd=repository).out

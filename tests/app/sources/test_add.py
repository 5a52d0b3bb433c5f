from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillgit.app.sources.tasks import add, review
from skillgit.errors import DataError, UsageError

FILE = Path("tasks.jsonl")
ROW = {"prompt": "What is 2 + 2?", "answers": ["4"], "check": "numeric"}


def test_a_task_is_added_with_an_id_of_its_content(empty):
    first = add(empty, FILE, ROW)
    second = add(empty, FILE, ROW | {"prompt": "What is 2 + 3?", "answers": ["5"]})
    lines = [json.loads(line) for line in (empty.directory / FILE).read_text().splitlines()]
    assert lines[0] == {"id": first.id, **ROW}
    assert (first.count, second.count) == (1, 2)
    assert first.id.startswith("t-")
    assert first.id != second.id


def test_what_stands_in_the_file_stays_as_it_is(empty):
    before = '{"prompt":"a",   "answer":"x"}\n\n{"prompt": "b", "answer": "\\u00e9"}'
    (empty.directory / FILE).write_text(before)
    add(empty, FILE, ROW)
    assert (empty.directory / FILE).read_text().startswith(f"{before}\n{{")
    assert [path.name for path in empty.directory.iterdir()] == ["tasks.jsonl"]


def test_the_same_task_is_refused_under_any_id(empty):
    add(empty, FILE, ROW)
    with pytest.raises(DataError, match=r"the task is there already: tasks\.jsonl:1, t-"):
        add(empty, FILE, ROW | {"id": "mine"})
    add(empty, FILE, ROW | {"id": "mine", "answers": ["4", "4.0"]})
    with pytest.raises(DataError, match=r"tasks\.jsonl:2, mine"):
        add(empty, FILE, {"id": "mine", "prompt": "Why?", "answers": ["so"]})


def test_what_is_no_task_is_refused_and_nothing_is_written(empty):
    with pytest.raises(DataError, match="the new task does not say what a right result is"):
        add(empty, FILE, {"prompt": "Why?"})
    assert not (empty.directory / FILE).exists()


def test_a_file_with_a_broken_line_is_not_added_to(empty):
    (empty.directory / FILE).write_text('{"prompt": "a"}\n')
    with pytest.raises(DataError, match=r"tasks\.jsonl:1 does not say"):
        add(empty, FILE, ROW)


def test_only_files_of_lines_are_added_to(empty):
    with pytest.raises(UsageError, match=r"not a \*\.jsonl file"):
        add(empty, Path("tasks.csv"), ROW)
    with pytest.raises(UsageError, match="cannot be written"):
        add(empty, Path("no/where/tasks.jsonl"), ROW)


def test_the_first_task_makes_the_folder_of_tasks(empty):
    add(empty, Path("tasks/mine.jsonl"), ROW)
    assert (empty.directory / "tasks" / "mine.jsonl").is_file()


def test_the_mark_that_an_editor_put_before_a_file_stays(empty):
    rows = [ROW | {"id": name, "prompt": name, "status": "draft"} for name in ("first", "second")]
    (empty.directory / FILE).write_text("\ufeff" + "".join(json.dumps(row) + "\n" for row in rows))
    add(empty, FILE, ROW)
    assert review(empty, FILE, ["first"]).accepted == ("first",)
    text = (empty.directory / FILE).read_text()
    assert [text[0], text.count("\ufeff"), text.count("\n")] == ["\ufeff", 1, 3]


def test_the_files_of_a_task_are_looked_for_beside_the_file(empty):
    with pytest.raises(DataError, match=r"there is no file notes\.txt"):
        add(empty, FILE, ROW | {"files": ["notes.txt"]})
    (empty.directory / "notes.txt").write_text("two and two")
    assert add(empty, FILE, ROW | {"files": ["notes.txt"]}).count == 1

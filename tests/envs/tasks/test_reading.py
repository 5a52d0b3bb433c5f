from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.evaluation import Split
from skillgit.domain.skill import Skill
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.backend import Image
from skillgit_envs.tasks import Tasks, messages
from skillgit_envs.tasks.reading import Reader

if TYPE_CHECKING:
    from pathlib import Path

SKILL = Skill("tasks", {"SKILL.md": b"---\nname: tasks\ndescription: x\n---\n\n# Rules {form}\n"})


def one(folder: Path, row: dict, **settings: object):
    return Reader(**settings).item("the row", row, folder / "tasks.jsonl")


@pytest.mark.parametrize("field", ["prompt", "question", "input", "task"])
def test_the_task_is_found_under_its_usual_names(tmp_path: Path, field: str):
    assert one(tmp_path, {field: "Why?", "answer": "so"}).content["prompt"] == "Why?"


def test_another_field_can_be_named(tmp_path: Path):
    row = {"question": "Why?", "ask": "How?", "answer": "so"}
    assert one(tmp_path, row, prompt_field="ask").content["prompt"] == "How?"
    with pytest.raises(DataError, match="the row has no ask with text; it has question, answer"):
        one(tmp_path, {"question": "Why?", "answer": "so"}, prompt_field="ask")


def test_context_stands_before_the_task_and_choices_behind_it(tmp_path: Path):
    row = {"context": "A wall.", "prompt": "What?", "choices": ["hut", "wall"], "answer": "B", "check": "choice"}
    assert one(tmp_path, row).content["prompt"] == "A wall.\n\nWhat?\n\nA. hut\nB. wall"


def test_the_id_is_made_from_the_content_where_there_is_none(tmp_path: Path):
    row = {"prompt": "Why?", "answer": "so"}
    assert one(tmp_path, row).id == one(tmp_path, row | {"note": "seen"}).id
    assert one(tmp_path, row).id != one(tmp_path, row | {"answer": "because"}).id
    assert one(tmp_path, row | {"id": 7}).id == "7"


@pytest.mark.parametrize(
    ("row", "extract"),
    [
        ({"answer": "x"}, "tag"),
        ({"check": {"type": "json", "fields": {"a": 1}}}, "json"),
        ({"rubric": "It is kind."}, "whole"),
        ({"checks": [{"type": "judge", "rubric": "Kind."}, {"type": "exact", "answer": "x"}]}, "tag"),
        ({"answer": "x", "extract": "code"}, "code"),
    ],
)
def test_the_result_is_read_as_the_checks_need_it(tmp_path: Path, row: dict, extract: str):
    assert one(tmp_path, {"prompt": "a", **row}).content["extract"] == extract


def test_the_options_say_how_results_are_read(tmp_path: Path):
    assert one(tmp_path, {"prompt": "a", "answer": "x"}, extract="last_line").content["extract"] == "last_line"
    with pytest.raises(DataError, match="the row has the 'extract' 'all'"):
        one(tmp_path, {"prompt": "a", "answer": "x", "extract": "all"})
    for option in ({"extract": "all"}, {"scorer": "best"}, {"tools": "shell"}, {"max_turns": 0}):
        with pytest.raises(ConfigError, match=rf"env\.{next(iter(option))} is"):
            Tasks(option, tmp_path)


def test_a_table_holds_lists_and_checks_as_json(tmp_path: Path):
    with (tmp_path / "tasks.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "answer", "check", "choices"])
        writer.writerow(["a", "How many?", "4", '{"type": "numeric", "abs": 1}', ""])
        writer.writerow(["b", "Which?", "hut", "choice", '["hut", "wall"]'])
        writer.writerow(["c", "Which [one]?", "[hut", "", ""])
    first, second, third = Reader().read([tmp_path / "tasks.csv"])
    assert first.content["checks"] == [{"weight": 1, "pass": 1, "type": "numeric", "abs": 1, "answers": ["4"]}]
    assert second.content["checks"][0]["answers"] == ["A"]
    assert third.content["checks"][0]["answers"] == ["[hut"]
    (tmp_path / "tasks.csv").write_text('question,checks\nWhy?,"[{"\n')
    with pytest.raises(DataError, match=r"tasks\.csv:2 has a 'checks' that is not JSON"):
        Reader().read([tmp_path / "tasks.csv"])


def test_the_evals_of_a_skill_are_read(tmp_path: Path):
    (tmp_path / "evals" / "files").mkdir(parents=True)
    (tmp_path / "evals" / "files" / "sales.csv").write_text("a,b\n")
    evals = [
        {
            "id": 1,
            "prompt": "Sum it up.",
            "expected_output": "A sum.",
            "files": ["evals/files/sales.csv"],
            "expectations": ["It names the sum.", "It names the file."],
        },
        {"id": 2, "prompt": "Say hello.", "expected_output": "A greeting.", "files": [], "assertions": []},
    ]
    path = tmp_path / "evals" / "evals.json"
    path.write_text(json.dumps({"skill_name": "sales", "evals": evals}))
    first, second = Reader().read([path])
    assert (first.id, first.content["checks"][0]["criteria"]) == ("1", ["It names the sum.", "It names the file."])
    assert [entry["name"] for entry in first.content["files"]] == ["evals/files/sales.csv"]
    assert second.content["checks"][0]["criteria"] == ["The result is as described here: A greeting."]
    path.write_text(json.dumps({"skill_name": "sales", "evals": ["Sum"]}))
    with pytest.raises(DataError, match=r"evals\.json, eval 1 is not an object"):
        Reader().read([path])


def test_a_draft_is_refused_until_it_was_reviewed(written):
    rows = [{"prompt": "a", "answer": "x"}, {"prompt": "b", "answer": "x", "status": "draft"}]
    with pytest.raises(DataError, match=r"tasks\.jsonl:2 is a draft that is not reviewed"):
        Reader().read([written(*rows)])
    assert len(Reader(drafts=True).read([written(*rows)])) == 2
    rows[1]["status"] = "reviewed"
    assert len(Reader().read([written(*rows)])) == 2


def test_a_column_divides_the_items(written, tmp_path: Path):
    named = ["train", "val", "test", "train", "selection"]
    written(*({"id": str(n), "prompt": f"{n}?", "answer": "x", "split": name} for n, name in enumerate(named)))
    environment = Tasks({"data_path": "tasks.jsonl", "limit": 1}, tmp_path)
    assert [[item.id for item in environment.items(split)] for split in Split] == [["0"], ["1"], ["2"]]
    assert [item.id for item in Tasks({"data_path": "tasks.jsonl"}, tmp_path).items(Split.SELECTION)] == ["1", "4"]


def test_a_column_must_be_full_and_known(written, tmp_path: Path):
    rows = [{"id": str(n), "prompt": f"{n}?", "answer": "x", "split": "train"} for n in range(3)]
    for change, said in (
        ({"split": ""}, "item 2 has no split, though others have"),
        ({"split": "dev"}, r"tasks\.jsonl:3: there is no split 'dev'"),
        ({}, "the selection split has no items"),
    ):
        written(*rows[:2], rows[2] | change)
        with pytest.raises(DataError, match=said):
            Tasks({"data_path": "tasks.jsonl"}, tmp_path).items(Split.TRAIN)


def test_a_typo_in_one_split_is_told_of_its_row_alone(written, tmp_path: Path):
    rows = [{"id": str(n), "prompt": f"{n}?", "answer": "x"} for n in range(12)]
    written(rows[0] | {"split": "tset"}, *rows[1:])
    with pytest.raises(DataError) as refused:
        Tasks({"data_path": "tasks.jsonl"}, tmp_path).items(Split.TRAIN)
    assert refused.value.message.endswith("tasks.jsonl:1: there is no split 'tset'")


@pytest.mark.parametrize(("value", "kind"), [(["x"], "a list"), ({"a": 1}, "an object"), (True, "true or false")])
@pytest.mark.parametrize("name", ["id", "split", "task_type", "prompt", "context", "extract", "expected_output"])
def test_a_field_of_a_wrong_type_is_told_with_its_row(written, name, value, kind):
    row = {"prompt": "What?", "answer": "x"}
    with pytest.raises(DataError, match=rf"tasks\.jsonl:2 has {kind} as its '{name}'$"):
        Reader().read([written(row, row | {name: value})])


def test_the_same_task_twice_is_refused(written, tmp_path: Path):
    written(*({"prompt": f"{n % 7}?", "answer": "x"} for n in range(12)))
    with pytest.raises(DataError, match="occur"):
        Tasks({"data_path": "tasks.jsonl"}, tmp_path).items(Split.TRAIN)


def test_files_are_shown_as_text_before_the_task(tmp_path: Path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "b.txt").write_text("second")
    (tmp_path / "notes" / "a.txt").write_text("first")
    reader = Reader()
    item = reader.item("the row", {"prompt": "Sum up.", "answer": "x", "files": "notes"}, tmp_path / "t.jsonl")
    system, question = messages(item, SKILL, reader.attachments, "none")
    assert question.text == (
        '<file name="notes/a.txt">\nfirst\n</file>\n\n<file name="notes/b.txt">\nsecond\n</file>\n\nSum up.'
        "\n\nGive the final answer between <answer> and </answer>."
    )
    assert "# Rules {form}" in system.text, "a skill is not filled in"


def test_pictures_are_shown(tmp_path: Path):
    (tmp_path / "a.PNG").write_bytes(b"\x89PNG")
    reader = Reader()
    item = reader.item("the row", {"prompt": "What?", "answer": "x", "images": ["a.PNG"]}, tmp_path / "t.jsonl")
    picture = messages(item, SKILL, reader.attachments, "none")[1].parts[1]
    assert isinstance(picture, Image)
    assert picture.media_type == "image/png"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"files": ["gone.txt"]}, "there is no file gone.txt"),
        ({"files": ["../a.txt"]}, "which is not a path next to the data"),
        ({"files": ["/etc/passwd"]}, "which is not a path next to the data"),
        ({"files": ["link.txt"]}, "leads out of the folder of the data"),
        ({"files": ["a.txt", "a.txt"]}, "names the file a.txt twice"),
        ({"files": ["empty"]}, "the folder empty is empty"),
        ({"files": 7}, "entry 1 of 'files' must be a path"),
        ({"images": ["a.txt"]}, "a.txt is not a PNG, JPEG, GIF or WebP"),
        ({"choices": ["a", "a"]}, "has too many choices, or one twice"),
        ({"choices": {"X": "a"}}, "has 'choices' that are not a list of texts"),
        ({"answer": {"a": 1}}, "has an answer that is neither text nor number"),
        ({"prompt": " "}, "has no prompt or question or input or task with text"),
        ({"id": "a b"}, "item id 'a b' is not usable"),
        ({"chek": "exact"}, "has the field 'chek', which means nothing"),
        ({"rubic": "polite"}, "has the field 'rubic', which means nothing"),
        ({"image": []}, "has the field 'image', which means nothing"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_place(tmp_path: Path, row: dict, said: str):
    inside = tmp_path / "data"
    (inside / "empty").mkdir(parents=True)
    (inside / "a.txt").write_text("a")
    (tmp_path / "outside.txt").write_text("a")
    (inside / "link.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(DataError, match=r"^the row") as caught:
        one(inside, {"prompt": "a", "answer": "x", **row})
    assert said in caught.value.message


def test_a_file_that_is_no_text_needs_tools(written, tmp_path: Path):
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe\x00")
    written(*({"prompt": f"{n}?", "answer": "x", "files": ["a.bin"]} for n in range(20)))
    with pytest.raises(DataError, match=r"a\.bin is not text"):
        Tasks({"data_path": "tasks.jsonl"}, tmp_path).items(Split.TRAIN)


def test_answers_tasks_and_what_checks_look_for_are_secret(tmp_path: Path):
    (tmp_path / "a.txt").write_text("the whole story")
    row = {
        "prompt": "Sum up.",
        "files": ["a.txt"],
        "checks": [
            {"type": "exact", "answers": ["Oak", "oak tree"]},
            {"type": "regex", "pattern": "o.k"},
            {"type": "judge", "rubric": "It names the tree."},
            {"type": "json", "fields": {"a": "elm", "b": 2}},
        ],
    }
    environment = Tasks({}, tmp_path)
    item = environment._reader.item("the row", row, tmp_path / "t.jsonl")
    secrets = environment.secrets(item)
    assert secrets.answers == ("Oak", "oak tree", "elm", "2")
    assert secrets.inputs == ("Sum up.", "the whole story")
    assert secrets.checks == ("o.k", "It names the tree.")


def test_what_changes_outcomes_changes_the_digest(tmp_path: Path):
    options = ({}, {"tools": "read"}, {"tools": "python"}, {"tools": "python", "max_turns": 3}, {"check_timeout": 5.0})
    assert len({Tasks(chosen, tmp_path).digest for chosen in options}) == len(options)
    assert Tasks({"max_turns": 3}, tmp_path).digest == Tasks({}, tmp_path).digest, "it counts with tools only"


def test_the_keys_of_an_object_are_ids(tmp_path: Path):
    (tmp_path / "tasks.json").write_text(
        json.dumps({"a": {"prompt": "1?", "answer": 1}, "b": {"prompt": "2?", "answer": 2}})
    )
    assert [item.id for item in Reader().read([tmp_path / "tasks.json"])] == ["a", "b"]
    (tmp_path / "tasks.json").write_text(json.dumps([{"prompt": "1?", "answer": 1}]))
    assert Reader().read([tmp_path / "tasks.json"])[0].id.startswith("t-")


def test_all_faults_of_a_file_are_told(written):
    path = written({"prompt": "a"}, {"prompt": "b", "answer": "x"}, {"answer": "x"})
    with pytest.raises(DataError) as caught:
        Reader().read([path])
    assert [fault.message.partition(" ")[0] for fault in caught.value.faults] == [f"{path}:1", f"{path}:3"]


def test_a_field_that_resembles_none_is_the_row_s_own_business(tmp_path: Path):
    item = one(tmp_path, {"prompt": "a", "answer": "x", "customer": "c-7", "source": "mail", "ids": [1]})
    assert item.content["prompt"] == "a"


CRITERIA = ["There is a chart", "Axes are labelled"]


@pytest.mark.parametrize("field", ["criteria", "expectations", "assertions"])
@pytest.mark.parametrize(
    "entries",
    [
        CRITERIA,
        [{"name": "chart", "description": CRITERIA[0]}, {"description": CRITERIA[1]}],
        [{"text": CRITERIA[0]}, CRITERIA[1]],
        [{"id": 1, "criterion": CRITERIA[0]}, {"id": 2, "title": "axes", "criterion": CRITERIA[1]}],
        [{"assertion": CRITERIA[0]}, {"assertion": CRITERIA[1]}],
        [{"name": "chart", "expectation": CRITERIA[0]}, {"statement": CRITERIA[1]}],
    ],
)
def test_a_criterion_is_a_text_or_an_object_that_holds_one(tmp_path: Path, field: str, entries: list):
    (check,) = one(tmp_path, {"prompt": "Make a chart", field: entries}).content["checks"]
    assert (check["type"], check["criteria"]) == ("judge", CRITERIA)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"name": "has_chart"}, "an object with name"),
        ({"type": "contains", "value": "chart"}, "an object with type, value"),
        ({"description": "x", "weight": 2}, "an object with description, weight"),
        ({"description": "x", "text": "y"}, "an object with description, text"),
        (["x"], "neither"),
        (7, "neither"),
    ],
)
def test_a_criterion_of_another_shape_is_named_with_its_field(tmp_path: Path, entry: object, said: str):
    with pytest.raises(DataError, match=rf"entry 2 of 'assertions' must be a text.* and is {said}$") as error:
        one(tmp_path, {"prompt": "a", "assertions": ["There is a chart", entry]})
    assert '"description"' in error.value.hint
    with pytest.raises(DataError, match="entry 1 of 'expectations' has no text in 'description'"):
        one(tmp_path, {"prompt": "a", "expectations": [{"description": 7}]})


@pytest.mark.parametrize("key", ["path", "name", "filename"])
def test_a_file_may_stand_in_the_row_with_its_content(tmp_path: Path, key: str):
    environment = Tasks({}, tmp_path)
    row = {"prompt": "Sum up.", "answer": "3", "files": [{key: "data/a.txt", "content": "1 and 2 é"}]}
    item = environment._reader.item("the row", row, tmp_path / "tasks.jsonl")
    assert [entry["name"] for entry in item.content["files"]] == ["data/a.txt"]
    assert environment._reader.attachments.read(item.content["files"][0]).decode() == "1 and 2 é"
    shown = messages(item, SKILL, environment._reader.attachments, "none")[1].text
    assert '<file name="data/a.txt">\n1 and 2 é\n</file>' in shown
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("1 and 2 é", encoding="utf-8")
    assert one(tmp_path, row | {"files": [{key: "data/a.txt"}]}).digest == item.digest
    assert one(tmp_path, row | {"files": "data/a.txt"}).digest == item.digest


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"content": "x"}, "an object with content"),
        ({"path": "a.txt", "content": 7}, "an object with path, content"),
        ({"path": "a.txt", "content": "eA==", "encoding": "base64"}, "an object with path, content, encoding"),
        ({"path": "a.txt", "url": "https://example.org"}, "an object with path, url"),
        (7, "neither"),
    ],
)
def test_a_file_of_another_shape_is_named_with_its_field(tmp_path: Path, entry: object, said: str):
    with pytest.raises(DataError, match=rf"entry 1 of 'files' must be a path.* and is {said}$"):
        one(tmp_path, {"prompt": "a", "answer": "x", "files": [entry]})


@pytest.mark.parametrize("name", ["../a.txt", "/etc/passwd", ""])
def test_a_file_in_the_row_has_a_name_beside_the_data(tmp_path: Path, name: str):
    with pytest.raises(DataError, match="not a path next to the data"):
        one(tmp_path, {"prompt": "a", "answer": "x", "files": [{"path": name, "content": "x"}]})

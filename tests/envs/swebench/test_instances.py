"""Published rows are read, what cannot be run is refused, and a hostile row names no path and no option."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from reading import items_in
from swebench_cases import LOGS, PYTHON, needs_logs, needs_package, row, write

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.splits import divide_each_type
from skillgit_envs.swebench import SWEBench
from skillgit_envs.swebench.instances import EXIT, Instance

LITE = {
    "django/django": 114,
    "sympy/sympy": 77,
    "matplotlib/matplotlib": 23,
    "scikit-learn/scikit-learn": 23,
    "pytest-dev/pytest": 17,
    "sphinx-doc/sphinx": 16,
    "astropy/astropy": 6,
    "psf/requests": 6,
    "pylint-dev/pylint": 6,
    "pydata/xarray": 5,
    "mwaskom/seaborn": 4,
    "pallets/flask": 3,
}


def read(folder, *rows) -> list[Item]:
    return items_in(SWEBench, write(folder / "lite.jsonl", *rows))


@needs_logs
def test_the_real_rows_are_read():
    items = items_in(SWEBench, *sorted(LOGS.glob("*.jsonl")), dataset_name="lite")
    assert len(items) == 15
    assert all(item.content["FAIL_TO_PASS"] and item.content["eval_script"] for item in items)
    assert {item.task_type for item in items} >= {"pallets/flask", "sympy/sympy", "django/django"}


def test_tests_are_a_list_or_a_text_that_holds_one(tmp_path):
    (text,) = read(tmp_path, row())
    (listing,) = read(tmp_path, row(FAIL_TO_PASS=["tests/test_a.py::test_x"], PASS_TO_PASS=[]))
    assert text == listing
    assert text.content["FAIL_TO_PASS"] == ["tests/test_a.py::test_x"]
    assert "HINT-5f0c" not in json.dumps(text.content)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"eval_script": "", "log_parser": None},
            "has no eval_script, log_parser: it is of a release that cannot be run",
        ),
        ({"problem_statement": " "}, "has no problem_statement"),
        ({"FAIL_TO_PASS": "[]"}, "has no FAIL_TO_PASS"),
        ({"FAIL_TO_PASS": "[1]"}, "has FAIL_TO_PASS that are not a list of texts"),
        ({"PASS_TO_PASS": "['a']"}, "has PASS_TO_PASS that are not JSON"),
        ({"eval_type": "all"}, "has an unknown eval_type"),
        ({"repo": "../.."}, "has the repo"),
        ({"repo": "acme/tool/x"}, "has the repo"),
        ({"repo": "-acme/tool"}, "has the repo"),
        ({"base_commit": "--upload-pack=touch x"}, "has the base_commit"),
        ({"version": "../../etc"}, "has the version"),
        ({"image": "--privileged"}, "has the image"),
        ({"image": "a b"}, "has the image"),
        ({"log_parser": "os.system"}, "has the log_parser"),
        ({"instance_id": "a\nb"}, "id"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(fields, sentence, tmp_path):
    with pytest.raises(DataError, match=re.escape(sentence)) as raised:
        read(tmp_path, row(**fields))
    assert ":1" in raised.value.message
    assert raised.value.hint


def test_of_several_files_those_of_the_data_set_are_read(tmp_path):
    files = [
        write(tmp_path / "SWE-bench_Lite" / "test.jsonl", row()),
        write(tmp_path / "verified.jsonl", row(instance_id="acme__tool-13")),
    ]
    assert [item.id for item in items_in(SWEBench, *files, dataset_name="lite")] == ["acme__tool-12"]
    assert [item.id for item in items_in(SWEBench, *files, dataset_name="verified")] == ["acme__tool-13"]
    assert [item.id for item in items_in(SWEBench, *files[:1], dataset_name="full")] == ["acme__tool-12"]
    with pytest.raises(DataError, match=r"none of the data files in .* is named after full"):
        items_in(SWEBench, *files, dataset_name="full")


def items_of(sizes: dict[str, int]) -> list[Item]:
    return [
        Item(id=f"{project.replace('/', '__')}-{number}", content={"n": f"{project}{number}"}, task_type=project)
        for project, size in sizes.items()
        for number in range(size)
    ]


def test_lite_is_divided_by_project_as_the_reference_counts():
    splits = divide_each_type(items_of(LITE), "2:1:7", 42)
    assert [len(splits[split]) for split in Split] == [60, 33, 207]
    assert all(set(LITE) == {item.task_type for item in splits[split]} for split in Split)


def script(*lines: str, installs: bool = False) -> str:
    text = "\n".join(["#!/bin/bash", "set -uxo pipefail", *lines])
    return Instance(Item(id="a", content={"eval_script": text})).script(installs=installs)


MARKED = (": '>>>>> Start Test Output'", "pytest -rA", ": '>>>>> End Test Output'", "git checkout -- tests")


def test_the_exit_code_of_the_tests_is_written_behind_their_mark():
    lines = script(*MARKED, installs=True).splitlines()
    at = lines.index("SWEBENCH_TEST_EXIT_CODE=$?")
    assert lines[at - 1] == "pytest -rA"
    assert lines[at + 1 : at + 3] == [MARKED[2], f'echo "{EXIT}: $SWEBENCH_TEST_EXIT_CODE"']


def test_without_installs_conda_and_pip_do_nothing_and_documents_stay_as_they_are():
    document = ["git apply -v - <<'EOF_1'", "+pip install x", "+/testbed", "+conda activate", "EOF_1"]
    lines = script(
        *("source /opt/miniconda3/bin/activate", "conda activate testbed", "cd /testbed"),
        *("python -m pip install -e .", "pip install .[test]", "pipeline run", *document),
    ).splitlines()
    assert lines[2:8] == ["true", "true", "cd $TESTBED", "true", "true", "pipeline run"]
    assert lines[8:13] == document
    assert "cd /testbed" in script("cd /testbed", installs=True)


@needs_package
def test_the_script_is_that_of_the_package(tmp_path):
    (item,) = read(tmp_path, row(eval_script="\n".join(["#!/bin/bash", "set -uxo pipefail", *MARKED])))
    code = (
        "import json, sys; from swebench.harness.utils import make_test_spec;"
        "print(make_test_spec(json.load(sys.stdin)).eval_script, end='')"
    )
    content = json.dumps({"instance_id": item.id, **item.content})
    done = subprocess.run(
        [PYTHON or sys.executable, "-c", code], input=content, capture_output=True, text=True, check=True
    )
    assert done.stdout == Instance(item).script(installs=True)

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spreadsheet_solutions import workbook

from skillgit.errors import SandboxError
from skillgit.sandbox import Sandbox
from skillgit_envs.spreadsheetbench.rollout import find_program, run

if TYPE_CHECKING:
    from pathlib import Path

COPY = "import shutil\nshutil.copy(INPUT_PATH, OUTPUT_PATH)\n"


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("Here:\n```python\na = 1\n```\nDone.", "a = 1\n"),
        ("```python\nold = 1\n```\nBetter:\n```py\nnew = 1\n```\nOutput:\n```text\nx\n```", "new = 1\n"),
        ("```\na = 1\n```", "a = 1\n"),
        ("```Python\na = 1", "a = 1\n"),
        ("~~~python\ntext = '''\n```\n'''\n~~~", "text = '''\n```\n'''\n"),
        ("````python\ntext = '''\n```python\n'''\n````", "text = '''\n```python\n'''\n"),
        ("```json\n{}\n```", ""),
        (COPY, COPY),
        ("DONE", ""),
        ("I would write to OUTPUT_PATH.", ""),
        ("", ""),
    ],
)
def test_the_last_block_of_python_is_the_program(reply: str, program: str):
    assert find_program(reply) == program


@given(st.text("`~ \npython#=", max_size=60))
def test_any_reply_can_be_looked_through(reply: str):
    assert isinstance(find_program(reply), str)


@pytest.fixture
def box() -> Sandbox:
    try:
        return Sandbox()
    except SandboxError as error:
        pytest.skip(error.message)


def tried(box: Sandbox, code: str, seconds: float = 60):
    return asyncio.run(run(code, workbook({"A1": 7}), box, seconds))


def test_a_program_finds_its_paths_and_nothing_is_added_to_its_text(box: Sandbox):
    code = f'from __future__ import annotations\ntext = """one\ntwo"""\nprint(repr(text), __name__)\n{COPY}'
    done = tried(box, code)
    assert done.output
    assert done.report == "'one\\ntwo' __main__\n[the program ended well]"


def test_what_goes_wrong_is_told_with_the_line_of_the_program(box: Sandbox):
    done = tried(box, f"{COPY}value = 1\nvalue.missing\n")
    assert done.output is None, "a program that saves and then fails has made nothing"
    assert 'solution.py", line 4' in done.report
    assert done.report.endswith("[the program failed with exit code 1]")
    assert tried(box, "pass").report == "[the program ended well, but wrote nothing to OUTPUT_PATH]"


def test_a_program_that_does_not_end_is_stopped(box: Sandbox):
    assert tried(box, "import time\ntime.sleep(600)", seconds=1.0).report == "[the program was stopped after 1 seconds]"


def test_each_run_begins_in_a_folder_with_the_workbook_alone(box: Sandbox):
    code = f"import os\nprint(sorted(os.listdir('.')))\nopen('left', 'w').write('x')\n{COPY}"
    for _ in range(2):
        assert "['input.xlsx', 'main.py', 'solution.py']" in tried(box, code).report


def test_an_answer_cannot_be_read_from_inside(box: Sandbox, tmp_path: Path):
    answer = tmp_path / "1_x_answer.xlsx"
    answer.write_bytes(workbook({"A1": 42}))
    done = tried(box, f"import shutil\nshutil.copy({str(answer)!r}, OUTPUT_PATH)")
    assert done.output is None
    assert "Error" in done.report
    link = tried(box, f"import os\nos.symlink({str(answer)!r}, OUTPUT_PATH)")
    assert link.output is None, "a link is not followed"

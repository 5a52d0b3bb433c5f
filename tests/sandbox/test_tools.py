from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.plugin.backend import ToolCall
from skillgit.sandbox import Limits
from skillgit.sandbox.tools import TOOLS, SandboxTools, read_arguments


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=json.dumps(arguments))


@pytest.fixture
def library(usual_sandbox, open_folder):
    (open_folder / "2021").mkdir()
    (open_folder / "2021" / "may.txt").write_text("first\nrevenue 12\nthird\nfourth\n")
    (open_folder / "june.txt").write_text("Revenue 13\r\n" + "x" * 5000 + "\n")
    (open_folder / "june.csv").write_text("revenue,14\n")
    (open_folder / "outside").symlink_to("/etc/passwd")
    return SandboxTools(sandbox=usual_sandbox, documents=open_folder)


def ask(tools: SandboxTools, name: str, **arguments: object) -> str:
    return asyncio.run(tools.execute(call(name, **arguments)))


def test_documents_are_listed_in_order_and_links_out_are_not_among_them(library):
    assert ask(library, "glob", pattern="**").splitlines() == [
        "june.csv (11 bytes)",
        "june.txt (5013 bytes)",
        "2021/may.txt (30 bytes)",
    ]
    assert ask(library, "glob", pattern="*.csv") == "june.csv (11 bytes)"
    assert ask(library, "glob", pattern="*.pdf") == "no document"


def test_lines_are_read_with_their_numbers(library):
    assert ask(library, "read", path="2021/may.txt", offset=2, lines=2) == "2\trevenue 12\n3\tthird\n[lines 2-3 of 4]"
    assert ask(library, "read", path="2021/may.txt", offset=4) == "4\tfourth"
    assert ask(library, "read", path="2021/may.txt", offset=9) == "error: '2021/may.txt' has 4 lines"
    assert ask(library, "read", path="june.txt").endswith("x [cut]")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "outside", "2021", "", "none.txt", "a\0b"])
def test_only_documents_are_read(library, path):
    assert ask(library, "read", path=path) == f"error: there is no document '{path}'"


def test_lines_are_found_in_all_documents_or_some(library):
    assert ask(library, "grep", pattern="(?i)revenue").splitlines() == [
        "june.csv:1: revenue,14",
        "june.txt:1: Revenue 13",
        "2021/may.txt:2: revenue 12",
    ]
    assert ask(library, "grep", pattern="revenue", path="2021/*") == "2021/may.txt:2: revenue 12"
    assert ask(library, "grep", pattern="root:") == "no match"
    assert ask(library, "grep", pattern="(").startswith("error: no valid regular expression")


def test_an_expression_that_takes_for_ever_is_told_to_the_model(library, monkeypatch):
    (library.documents / "evil.txt").write_text("a" * 60 + "b")
    monkeypatch.setattr("skillgit.sandbox.tools._LOOKING", Limits(wall_s=0.5))
    assert "took too much" in ask(library, "grep", pattern="(a+)+c", path="evil.txt")


def test_python_sees_documents_and_keeps_its_files(library):
    code = "print(open('documents/june.csv').read().strip())\nopen('n.txt', 'w').write('7')"
    assert ask(library, "python", code=code) == "revenue,14\nfiles: n.txt\n[exit code 0]"
    assert ask(library, "python", code="print(open('n.txt').read())") == "7\n[exit code 0]"
    assert library.files == {"n.txt": b"7"}


def test_python_reads_where_nothing_tells_of_this_machine(library):
    told = ask(library, "python", code="open('documents/none.txt')")
    assert "No such file" in told
    assert str(library.documents) not in told
    assert ask(library, "python", code="import os; print(os.path.realpath('documents'))") == "documents\n[exit code 0]"


def test_python_is_told_which_limit_it_broke(library):
    library.limits = Limits(wall_s=1)
    assert ask(library, "python", code="import time; time.sleep(60)") == "[stopped after 1 seconds]"


def test_a_long_result_is_cut(library):
    library.longest = 100
    told = ask(library, "python", code="print('x' * 1000)")
    assert told == "x" * 100 + "\n[cut after 100 characters]"


def test_without_documents_there_are_none(usual_sandbox):
    assert ask(SandboxTools(sandbox=usual_sandbox), "glob", pattern="*") == "error: there are no documents"


def test_only_what_is_offered_can_be_used(library):
    library.names = ("read", "grep")
    assert [tool.name for tool in library.tools] == ["read", "grep"]
    assert ask(library, "python", code="1") == "error: there is no tool 'python'; there are: read, grep"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("read", "{", "not JSON"),
        ("read", "[]", "not a JSON object"),
        ("read", '"x"', "not a JSON object"),
        ("read", "{}", "needs the argument 'path'"),
        ("read", "", "needs the argument 'path'"),
        ("read", '{"path": 1}', "must be of type string"),
        ("read", '{"path": "a", "offset": "1"}', "must be of type integer"),
        ("read", '{"path": "a", "offset": true}', "must be of type integer"),
        ("read", '{"path": "a", "line": 1}', "has no argument 'line'"),
        ("shell", "{}", "there is no tool 'shell'"),
    ],
)
def test_a_call_that_does_not_fit_is_told_to_the_model(library, name, arguments, told):
    answer = asyncio.run(library.execute(ToolCall(id="1", name=name, arguments=arguments)))
    assert answer.startswith("error: ")
    assert told in answer


@given(
    st.sampled_from(["read", "grep", "glob", "python", "other"]),
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)
    ).map(json.dumps),
)
def test_whatever_a_model_writes_is_read_or_refused(name, arguments):
    call_ = ToolCall(id="1", name=name, arguments=arguments)
    try:
        found = read_arguments(call_, tuple(TOOLS.values()))
    except ValueError:
        return
    assert set(TOOLS[name].parameters["required"]) <= set(found)

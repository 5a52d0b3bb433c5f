from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trained_runs import user

from skillgit.app.sources.plugin_evals import cases_of, import_evals, read_cases, rows_of, triggers_of
from skillgit.app.sources.tasks import review
from skillgit.errors import DataError, NotFoundError
from skillgit.plugin.seed_folder import write_files

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30).map(str.strip).filter(bool)
WORDS = st.one_of(TEXT, st.sampled_from(["---", "- a: [b", "null", "18", "a\nb", "'\"", "# x", " blanks ", "{}"]))
PATTERNS = st.sampled_from(
    [r"18\d\d", "^x|y$", r"(?:a|b)+", r"[^\s]", "---", "null", r"\bno\b", r"^(?![\s\S]*(?:sorry))", r" a\.b "]
)
NAMES = st.sampled_from(["", "tone check", "first", "a: b"])
WEIGHTS = st.sampled_from([1, 2, 0.5])


def with_more(check: dict, name: str, weight: float) -> dict:
    return check | ({"name": name} if name else {}) | ({"weight": weight} if weight != 1 else {})


REGEXES = st.builds(
    lambda pattern, ignore, name, weight: with_more(
        {"type": "regex", "pattern": pattern, **({"ignore_case": True} if ignore else {})}, name, weight
    ),
    PATTERNS | TEXT.map(re.escape),
    st.booleans(),
    NAMES,
    WEIGHTS,
)
JUDGES = st.builds(
    lambda rubric, name, weight: with_more({"type": "judge", "rubric": rubric}, name, weight), WORDS, NAMES, WEIGHTS
)


def whole(checks: list[dict]) -> dict:
    return {"check": checks[0], "extract": "whole"} if len(checks) == 1 else {"checks": checks, "extract": "whole"}


GRADED = st.one_of(
    st.builds(lambda rubric: {"rubric": rubric}, TEXT),
    st.builds(lambda criteria: {"criteria": criteria}, st.lists(TEXT, min_size=2, max_size=3)),
    st.builds(lambda first, rest: whole([first, *rest]), REGEXES, st.lists(REGEXES | JUDGES, max_size=2)),
)
TAGS = st.fixed_dictionaries(
    {}, optional={"split": st.sampled_from(["train", "test"]), "group": st.just("00ff00ff00ff00ff"), "task_type": TEXT}
)


@st.composite
def task_files(draw):
    names = draw(
        st.lists(st.from_regex(r"t[a-z0-9.-]{0,7}[a-z0-9]", fullmatch=True), unique=True, min_size=1, max_size=4)
    )
    tasks, triggers = [], []
    for name in sorted(names):
        kind, prompt = draw(st.integers(0, 2)), draw(TEXT)
        if kind != 1:
            tasks.append({"id": name, "prompt": prompt, **draw(TAGS), **draw(GRADED)})
        if kind:
            triggers.append({"id": name, "prompt": prompt, "skill": draw(st.sampled_from(["", "my-skill", "a1"]))})
    return tasks, triggers


def write_rows(path: Path, rows: list[dict]) -> None:
    if rows:
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


def read_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@given(task_files())
def test_for_all_rows_that_can_be_carried_reading_what_was_written_gives_them_again(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("rows")
    tasks, triggers = files
    write_rows(folder / "tasks.jsonl", tasks)
    write_rows(folder / "tasks-triggers.jsonl", triggers)
    written = cases_of(user(folder), "tasks.jsonl")
    assert not written.left_out
    write_files(folder / "evals", written.files)
    import_evals(user(folder), Path("evals"), Path("again.jsonl"))
    assert sorted(read_rows(folder / "again.jsonl"), key=str) == sorted(tasks, key=str)
    assert sorted(read_rows(triggers_of(folder / "again.jsonl")), key=str) == sorted(triggers, key=str)


CANNOT = [
    ({"answer": "y"}, "it has a check that no grader equals"),
    *[
        (row, 'graders read the whole last message: set "extract": "whole"')
        for row in (
            {"check": {"type": "regex", "pattern": "x"}},  # of a tag
            {"check": {"type": "regex", "pattern": "x"}, "extract": "last_line"},
            {"checks": [{"type": "regex", "pattern": "x"}, {"type": "judge", "rubric": "y"}]},
        )
    ],
    ({"check": {"type": "regex", "pattern": "x", "match": "full"}, "extract": "whole"}, "no words for match"),
    ({"check": {"type": "regex", "pattern": "(?P<a>x)"}, "extract": "whole"}, "does not mean the same in JavaScript"),
    ({"check": {"type": "judge", "rubric": "x", "pass": 0.5}}, "no words for pass"),
    ({"check": {"type": "judge", "against": "x", "rubric": "y"}}, "no words for against"),
    ({"rubric": "x", "status": "draft"}, "it is a draft"),
    ({"rubric": "x", "id": "con"}, "cannot name a folder"),
    ({"rubric": "x", "files": ["a.txt"]}, "no words for files"),
]


@pytest.mark.parametrize(("row", "reason"), CANNOT, ids=[reason for _, reason in CANNOT])
def test_a_row_that_cannot_be_carried_is_left_out_with_the_reason(row, reason, tmp_path):
    (tmp_path / "a.txt").write_text("x")
    write_rows(tmp_path / "tasks.jsonl", [{"id": "one", "prompt": "x", **row}])
    written = cases_of(user(tmp_path), "tasks.jsonl")
    assert not written.files
    (task,) = written.left_out
    assert reason in task.reason
    if "extract" in reason:
        write_rows(tmp_path / "tasks.jsonl", [{"id": "one", "prompt": "x", **row, "extract": "whole"}])
        assert not cases_of(user(tmp_path), "tasks.jsonl").left_out, "the reason leads out"


CASE = """schema_version: "1.1"
name: from-yaml
tags: [slow]
execution: {prompt: "Write it", max_turns: 5, allowed_tools: [Write]}
expected_outcome: A file with the report.
graders:
  - {type: file_exists, name: made, path: "*.md"}
  - {type: tool_order, name: order, before: Read, after: {tool: Write}}
  - {type: regex, name: done, pattern: "done", flags: i}
  - {type: tool_used, name: wrote, tool: Write}
"""
FILES = {
    "skills/pdf/SKILL.md": "---\nname: pdf\ndescription: d\n---\n",
    "evals/one/case.yaml": CASE,
    "evals/two/prompt.md": "---\nmax_turns: 10\n---\n\nFill the form.\n",
    "evals/two/graders/loads.md": "---\ntype: tool_used\ntool: Skill\n---\n",
    "evals/deep/three/prompt.md": "What is 2+2?",
    "evals/deep/three/graders/quiet.md": "---\ntype: tool_used\ntool: Skill\nmin: 0\nmax: 0\narm: both\n---\n",
    "evals/deep/three/graders/count.md": "---\ntype: regex\nmatch: count:2\n---\n4\n",
    "evals/deep/three/graders/sorry.md": "---\ntype: regex\nmatch: not_contains\n---\nsorry\n",
    "evals/deep/three/graders/like.md": "---\ntype: baseline\nbaseline_file: a.md\n---\nas good\n",
    "evals/results/old/prompt.md": "no case",
    "evals/mocks/s/t.md": "no case",
}


def made(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    write_files(folder / "plugin", {path: text.encode() for path, text in files.items()})
    return folder / "plugin"


def test_a_grader_that_no_check_equals_is_told_and_makes_a_draft(tmp_path):
    result = import_evals(user(tmp_path), made(tmp_path, FILES), Path("tasks.jsonl"))
    assert result.unmatched == {"baseline": 1, "file_exists": 1, "regex": 1, "tool_order": 1, "tool_used": 1}
    assert result.drafts == result.tasks == ("deep-three", "from-yaml")
    three, one = read_rows(tmp_path / "tasks.jsonl")
    assert one["check"] == {"type": "regex", "pattern": "done", "ignore_case": True, "name": "done"}
    assert one["status"] == three["status"] == "draft"
    assert one["eval"] == {"max_turns": 5, "allowed_tools": ["Write"], "tags": ["slow"]}
    assert [grader["type"] for grader in one["unmatched"]] == ["file_exists", "tool_order", "tool_used"]
    assert three["check"]["pattern"] == r"^(?![\s\S]*(?:sorry))"
    assert read_rows(tmp_path / "tasks-triggers.jsonl") == [
        {"id": "deep-three", "prompt": "What is 2+2?", "skill": ""},
        {"id": "two", "prompt": "Fill the form.", "skill": "pdf"},
    ]


def test_what_an_import_could_not_translate_is_accepted_by_its_id_once_it_says_what_is_right(tmp_path):
    hard = {"type": "tool_used", "tool": "Bash"}
    texts = {
        "none": {"schema_version": "1.1", "execution": {"prompt": "a"}, "graders": [hard]},
        "part": {
            "schema_version": "1.1",
            "execution": {"prompt": "b"},
            "graders": [{"type": "llm", "criteria": "It is kind."}, hard],
        },
    }
    write_files(tmp_path / "evals", {f"{name}/case.yaml": json.dumps(case).encode() for name, case in texts.items()})
    file = tmp_path / "tasks.jsonl"
    import_evals(user(tmp_path), Path("evals"), Path("tasks.jsonl"))
    left = review(user(tmp_path), file, ["all"])
    assert (left.accepted, {draft.warning for draft in left.drafts}) == (
        (),
        {"no check equals what its case is graded by: tool_used"},
    )
    before = file.read_text()
    with pytest.raises(DataError, match="draft none cannot be accepted"):
        review(user(tmp_path), file, ["part", "none"])
    assert file.read_text() == before
    file.write_text(before.replace("The case was graded by tool_used", "It ran a command, not"))
    assert review(user(tmp_path), file, ["part", "none"]).drafts == ()


def test_cases_that_are_there_are_left_alone(tmp_path):
    plugin = made(tmp_path, FILES)
    first = import_evals(user(tmp_path), plugin, Path("tasks.jsonl"))
    before = (tmp_path / "tasks.jsonl").read_bytes()
    second = import_evals(user(tmp_path), plugin / "evals", Path("tasks.jsonl"))
    assert second.present == ("deep-three", "from-yaml", "two")
    assert (second.tasks, second.triggers) == ((), ())
    assert first.tasks
    assert (tmp_path / "tasks.jsonl").read_bytes() == before


BOMB = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n"
BROKEN = [
    ("case.yaml", BOMB, "an alias or a tag"),
    ("case.yaml", "!!python/object/apply:os.system [id]", "an alias or a tag"),
    ("case.yaml", "[" * 50_000, "too deep"),
    ("case.yaml", "a: " + "x" * 70_000, "too long"),
    ("case.yaml", 'schema_version: "2.0"', "schema_version"),
    ("case.yaml", "- a", "not a mapping"),
    ("case.yaml", 'a: "\\ud800"', "not a mapping"),
    ("prompt.md", "x", "it has no graders"),
    ("prompt.md", "x" * (1 << 20) + "y", "cannot be read"),
]


@pytest.mark.parametrize(("name", "text", "reason"), BROKEN, ids=[reason for *_, reason in BROKEN])
def test_a_file_that_is_no_case_is_refused_with_its_name(name, text, reason, tmp_path):
    with pytest.raises(DataError, match=reason) as refusal:
        read_cases(made(tmp_path, {f"evals/a/{name}": text}))
    assert "evals/a" in refusal.value.message
    assert refusal.value.hint


def test_links_are_not_followed(tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "prompt.md").write_text("x")
    plugin = made(tmp_path, {"evals/a/graders/g.md": "---\ntype: llm\n---\nx"})
    (plugin / "evals" / "b").symlink_to(tmp_path / "secret")
    with pytest.raises(NotFoundError, match="no case"):
        read_cases(plugin)
    (plugin / "evals" / "a" / "prompt.md").symlink_to(tmp_path / "secret" / "prompt.md")
    with pytest.raises(DataError, match="link"):
        read_cases(plugin)
    linked = made(tmp_path / "linked", {"evals/a/prompt.md": "x"})
    (tmp_path / "secret" / "g.md").write_text("---\ntype: llm\n---\nsecret")
    (linked / "evals" / "a" / "graders").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError, match="no graders"):
        read_cases(linked)


def test_a_skill_is_meant_by_its_name_with_and_without_its_plugin(tmp_path):
    for number, pattern in enumerate(['"(?:[a-z0-9-]+:)?pdf"', "pdf", "docs:pdf", "^pdf$"]):
        grader = f"---\ntype: tool_used\ntool: Skill\ninput_match: {json.dumps(pattern)}\n---\n"
        cases, skills = read_cases(
            made(tmp_path / str(number), {"evals/a/prompt.md": "x", "evals/a/graders/g.md": grader})
        )
        assert rows_of(cases[0], skills)[1] == {"id": "a", "prompt": "x", "skill": "pdf"}

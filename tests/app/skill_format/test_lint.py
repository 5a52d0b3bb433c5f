from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from asking import ask
from documents import page
from hypothesis import given
from hypothesis import strategies as st
from skills_ref.validator import validate
from soaking import soak

from skillgit.app import skill_format
from skillgit.app.skill_format.lint import check_folder, lint
from skillgit.app.skill_format.lint_rules import RULES
from skillgit.domain.finding import Severity
from skillgit.errors import NotFoundError

HEAD = "---\nname: demo\ndescription: Use it for demonstrations.\n---\n"
BODY = "\n# Demo\n\nSay what you do.\n"
GOOD = f"{HEAD}{BODY}"


def with_keys(keys: str) -> str:
    return f"---\n{keys}---\n{BODY}"


def with_body(body: str) -> str:
    return f"{HEAD}\n{body}"


def fault_of(document: str | bytes, **files: str | bytes) -> list[tuple[str, str, int]]:
    everything = {
        "SKILL.md": document,
        **{name.replace("__", "/").replace("_DOT_", "."): files[name] for name in files},
    }
    found = check_folder("demo", {path: as_bytes(content) for path, content in everything.items()})
    return [(fault.rule, fault.path, fault.line) for fault in found]


def as_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


NAMED = "name: demo\ndescription: Use it.\n"
BROKEN = {
    "encoding": ("SKILL.md", 9, GOOD.encode() + b"caf\xe9\n"),
    "byte-order-mark": ("SKILL.md", 1, b"\xef\xbb\xbf" + GOOD.encode()),
    "line-ends": ("SKILL.md", 1, GOOD.replace("\n", "\r\n")),
    "hidden-character": ("SKILL.md", 8, with_body("# Demo\n\nRead \u202eit.\x00\n")),
    "frontmatter-missing": ("SKILL.md", 1, f"\n{GOOD}"),
    "frontmatter-open": ("SKILL.md", 1, "---\nname: demo\n"),
    "frontmatter-length": ("SKILL.md", 1, with_keys(f"name: demo\ndescription: {'x' * 70_000}\n")),
    "frontmatter-fence": ("SKILL.md", 3, with_keys("name: demo\ndescription: a --- b\n")),
    "frontmatter-yaml": ("SKILL.md", 3, with_keys("name: demo\ndescription: a: b\n")),
    "frontmatter-keys": ("SKILL.md", 2, with_keys("just words\n")),
    "frontmatter-flow": ("SKILL.md", 2, with_keys("{name: demo, description: Use it.}\n")),
    "frontmatter-repeated": ("SKILL.md", 4, with_keys(f"{NAMED}name: demo\n")),
    "frontmatter-tag": ("SKILL.md", 4, with_keys(f"{NAMED}license: !own MIT\n")),
    "key-unknown": ("SKILL.md", 4, with_keys(f"{NAMED}mood: calm\n")),
    "key-of-agents": ("SKILL.md", 4, with_keys(f"{NAMED}version: '1'\n")),
    "key-not-text": ("SKILL.md", 5, with_keys(f"{NAMED}license:\n  - MIT\n")),
    "value-not-text": ("SKILL.md", 5, with_keys(f"{NAMED}allowed-tools:\n  - Read\n")),
    "value-flow": ("SKILL.md", 4, with_keys(f"{NAMED}metadata: {{author: me}}\n")),
    "value-unquoted": ("SKILL.md", 5, with_keys(f"{NAMED}metadata:\n  version: 1.0\n")),
    "name-missing": ("SKILL.md", 1, with_keys("description: Use it.\n")),
    "name-form": ("SKILL.md", 2, with_keys("name: De--mo\ndescription: Use it.\n")),
    "name-length": ("SKILL.md", 2, with_keys(f"name: {'d' * 65}\ndescription: Use it.\n")),
    "name-folder": ("SKILL.md", 2, with_keys("name: other\ndescription: Use it.\n")),
    "description-missing": ("SKILL.md", 3, with_keys("name: demo\ndescription: ' '\n")),
    "description-length": ("SKILL.md", 3, with_keys(f"name: demo\ndescription: {'x' * 1025}\n")),
    "compatibility-missing": ("SKILL.md", 4, with_keys(f"{NAMED}compatibility: ''\n")),
    "compatibility-length": ("SKILL.md", 4, with_keys(f"{NAMED}compatibility: {'x' * 501}\n")),
    "metadata-keys": ("SKILL.md", 4, with_keys(f"{NAMED}metadata: text\n")),
    "installed-metadata": ("SKILL.md", 4, with_keys(f"{NAMED}metadata:\n  github-ref: 'v1'\n")),
    "reserved-metadata": ("SKILL.md", 4, with_keys(f"{NAMED}metadata:\n  io.modelcontextprotocol/x: 'v1'\n")),
    "licence-file": ("SKILL.md", 4, with_keys(f"{NAMED}license: Complete terms in LICENSE.txt\n")),
    "body-empty": ("SKILL.md", 4, HEAD),
    "document-lines": ("SKILL.md", 500, with_body("word\n\n" * 250)),
    "body-tokens": ("SKILL.md", 0, with_body("word " * 4000)),
    "link-missing": ("SKILL.md", 9, with_body("# Demo\n\nSee\nthe [guide](references/guide.md#part).\n")),
    "link-outside": ("SKILL.md", 6, with_body("See [it](../other/SKILL.md).\n")),
    "mention-missing": ("SKILL.md", 6, with_body("Run `python scripts/check.py --fast`.\n")),
    "region-open": ("SKILL.md", 8, with_body("Words.\n\n<!-- skillgit:keep -->\n- mine\n")),
}


@pytest.mark.parametrize(("rule", "place", "line", "document"), [(rule, *told) for rule, told in BROKEN.items()])
def test_a_broken_rule_is_named_with_its_line(rule, place, line, document):
    found = [fault for fault in fault_of(document) if fault[0] == rule]
    assert found
    assert found[0] == (rule, place, line)


def test_other_files_are_checked_too():
    files = {
        "references__a_DOT_md": "See [b](b.md), [gone](gone.md) and [the top](../SKILL.md).\n",
        "references__b_DOT_md": b"caf\xe9\n",
        "scripts__run_DOT_sh": b"#!/bin/sh\r\necho\r\n",
        "assets__logo_DOT_png": b"\x89PNG\r\n\xff\x00",
    }
    document = with_body("See [a](references/a.md).\n")
    assert fault_of(document, **files) == [
        ("reference-chain", "references/a.md", 1),
        ("companion-link-missing", "references/a.md", 1),
        ("companion-encoding", "references/b.md", 1),
        ("line-ends", "scripts/run.sh", 1),
    ]


def test_a_folder_without_a_document_and_one_in_small_letters():
    assert [fault.rule for fault in check_folder("demo", {"README.md": b""})] == ["document-missing"]
    assert [fault.rule for fault in check_folder("demo", {"skill.md": GOOD.encode()})] == ["document-case"]


@pytest.mark.parametrize("names", [("../x",), ("CON",), ("a\\xff",), ("a", "A"), (".git/x",)])
def test_names_that_lead_elsewhere_or_stand_for_another_are_named(names):
    files = {"SKILL.md": GOOD.encode(), **dict.fromkeys(names, b"")}
    assert {fault.rule for fault in check_folder("demo", files)} == {"file-name"}


def test_every_rule_is_broken_by_some_test():
    others = {
        "document-missing",
        "document-case",
        "symbolic-link",
        "link-leads-out",
        "file-name",
        "companion-encoding",
        "companion-link-missing",
        # of a whole library: test_library_lint.py
        "listing-absent",
        "listing-name",
        "listing-cut",
        "listing-alike",
    }
    assert set(RULES) == {*BROKEN, *others, "reference-chain"}


def test_what_is_shown_as_an_example_is_no_link():
    example = "```markdown\n[x](gone.md)\n```\n\n    [y](gone.md)\n"
    body = f"{example}\n[web](https://example.org/a.md) [part](#demo) `dir/x.py`\n"
    assert fault_of(with_body(body)) == []


@pytest.mark.parametrize("depth", [10, 500, soak(3000)])
def test_deep_nesting_and_strange_keys_are_told_and_crash_nothing(depth):
    assert fault_of(with_keys(f"{NAMED}metadata: {'[' * depth}\n"))
    assert fault_of(with_keys(f"{NAMED}? [a, b]\n: x\n"))
    assert fault_of(with_keys(f"{NAMED}license: &a MIT\ncompatibility: *a\n"))[0] == ("frontmatter-tag", "SKILL.md", 4)


ORACLE = [
    GOOD,
    with_keys(
        "name: demo\ndescription: >-\n  Use it\n  often.\nlicense: MIT\nmetadata:\n  version: '1.0'\n  author: me\n"
    ),
    with_keys(f"{NAMED}# a remark\ncompatibility: Python 3.11\nallowed-tools: Read Bash(git *)\n"),
    with_keys('name: demo\ndescription: "Umlauts: Grüße, 中文, 🙂"\n'),
    *(document for rule, (_, _, document) in BROKEN.items() if RULES[rule].severity is Severity.ERROR),
]
OURS_ALONE = {
    *("link-missing", "licence-file", "key-not-text", "metadata-keys", "compatibility-missing"),
    "frontmatter-fence",  # it reads a part of the value and says nothing
    "installed-metadata",  # a rule of gh skill publish
}
"""Rules of the specification that its validator does not check."""


@pytest.mark.parametrize("document", ORACLE)
def test_the_reference_validator_finds_no_error_that_lint_does_not_and_the_other_way_round(document, tmp_path):
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(as_bytes(document))
    try:
        theirs = bool(validate(folder))
    except UnicodeDecodeError:
        theirs = True
    errors = {rule for rule, _, _ in fault_of(document) if RULES[rule].severity is Severity.ERROR}
    assert theirs <= bool(errors)
    if not theirs:
        assert errors <= OURS_ALONE


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=120))
def test_whatever_the_frontmatter_says_lint_answers(text):
    for fault in check_folder("demo", {"SKILL.md": f"---\n{text}\n---\n{BODY}".encode()}):
        assert fault.sentence
        assert fault.hint
        assert 0 <= fault.line <= text.count("\n") + 20


def write(folder: Path, document: str = GOOD) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(document)
    return folder


def test_skills_are_found_in_folders_and_a_document_stands_for_its_folder(empty):
    home = empty.directory
    write(home / "skills" / "demo")
    write(home / "skills" / "second")
    write(home / ".git" / "demo")
    found = ask(lint, empty, ("skills", "skills/demo/SKILL.md"))
    assert [skill.place for skill in found.skills] == ["skills/demo", "skills/second", "skills/demo"]
    assert [fault.rule for skill in found.skills for fault in skill.faults] == ["name-folder"]
    assert (found.errors, found.warnings) == (1, 0)


def test_a_symbolic_link_and_a_folder_without_a_skill_are_told(empty):
    folder = write(empty.directory / "demo")
    (folder / "link.md").symlink_to("/etc/hostname")
    (folder / "copy.md").symlink_to("SKILL.md")
    (folder / "up.md").symlink_to("../secret.md")
    faults = {fault.path: fault.rule for fault in ask(lint, empty, ("demo",)).skills[0].faults}
    assert faults == {"link.md": "link-leads-out", "copy.md": "symbolic-link", "up.md": "link-leads-out"}
    (empty.directory / "notes").mkdir()
    with pytest.raises(NotFoundError, match="no skill in notes"):
        ask(lint, empty, ("notes",))
    (empty.directory / "notes" / "a.md").write_text("x")
    assert [fault.rule for fault in ask(lint, empty, ("notes",)).skills[0].faults] == ["document-missing"]
    with pytest.raises(NotFoundError, match="neither a path nor a revision"):
        ask(lint, empty, ("nowhere",))


@pytest.mark.usefixtures("records")
def test_every_commit_of_a_run_holds_a_valid_skill(context, repo):
    seen = 0
    for name in repo.raw.references:
        if "/evidence/" in name or name.startswith("refs/notes/"):
            continue
        for commit in repo.raw.walk(repo.raw.references[name].peel().id):
            found = ask(lint, context, (str(commit.id),))
            assert found.errors == 0, found
            seen += len(found.skills)
    assert seen > 10


@pytest.mark.usefixtures("records")
def test_a_version_is_checked_as_its_commit_has_it_and_not_as_the_work_tree_does(context):
    found = ask(lint, context, ("v2",))
    assert [skill.name for skill in found.skills] == ["demo"]
    assert found.skills[0].place.endswith(":skills/demo")


def test_the_table_of_rules_in_the_documentation_is_that_of_the_program():
    rows = [f"| `{name}` | {rule.severity.value} | {rule.demand} |" for name, rule in RULES.items()]
    assert "\n".join(rows) in page("moving.md")


def test_a_folder_that_is_no_skill_is_told_what_it_lacks_and_its_files_are_not_read(empty):
    """It may be any folder: the user's home, or a whole disk."""
    folder = empty.directory / "home"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"\r\n")
    (folder / "deep" / "link").symlink_to("/etc/hostname")
    os.mkfifo(folder / "deep" / "pipe")
    (skill,) = ask(lint, empty, ("home",)).skills
    assert [fault.rule for fault in skill.faults] == ["document-missing"]


def test_every_rule_that_the_code_names_is_one():
    folder = Path(skill_format.__file__).parent
    calls = [node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    names = {"broken": "", "_unusable": "frontmatter-"}
    named = {
        names[call.func.id] + call.args[0].value
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    assert {"frontmatter-length", "frontmatter-missing"} <= named
    assert named <= RULES.keys()

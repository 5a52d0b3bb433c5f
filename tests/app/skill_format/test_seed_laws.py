"""Laws of seeds: one frontmatter and never a second, invented one; every byte of people's; nothing that git ignores."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_git import git

from skillgit.app.skill_format import frontmatter
from skillgit.app.skill_format.lint import check_folder
from skillgit.app.skill_format.lint_rules import AGENT_KEYS
from skillgit.app.skill_format.seed import left_out, normalise, read_seed
from skillgit.domain.finding import Severity
from skillgit.domain.protected_regions import frontmatter as block_of
from skillgit.domain.skill import Skill
from skillgit.errors import SkillError
from skillgit.plugin.skill_library import with_description

DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[4] / "shared" / "data"))
SKILLS = DATA / "skills"
BLOCK = "---\nname: charts\ndescription: Use when a chart is asked for.\n---\n"
BODY = "\n# Charts\n\n- Label axes.\n"


def seeded(document):
    content = document if isinstance(document, bytes) else document.encode()
    return normalise(Skill("folder", {"SKILL.md": content})).document


def indented(text, margin):
    return "".join(margin + line if line.strip() else line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize(
    ("document", "seed"),
    [
        (f"\n{BLOCK}{BODY}", BLOCK + BODY),
        (f" \t\n\n\n{BLOCK}{BODY}", BLOCK + BODY),
        (f"\ufeff\n{BLOCK}{BODY}", BLOCK + BODY),
        (f"\u200b{BLOCK}{BODY}", BLOCK + BODY),
        (f"<!-- Copyright -->\n{BLOCK}{BODY}", f"{BLOCK}\n<!-- Copyright -->\n{BODY}"),
        (f"\n<!-- a\n---\nb -->\n\n<!-- c -->\n{BLOCK}{BODY}", f"{BLOCK}\n<!-- a\n---\nb -->\n\n<!-- c -->\n{BODY}"),
        (indented(BLOCK, "  ") + BODY, BLOCK + BODY),
        (indented(BLOCK, "\t") + BODY, BLOCK + BODY),
        (indented(BLOCK + BODY, "    "), BLOCK + BODY),
        ((BLOCK + BODY).replace("\n", "\r"), BLOCK + BODY),
        ((BLOCK + BODY).replace("\n", "\r\n"), BLOCK + BODY),
        ((BLOCK + BODY).replace("\n", "\r\r\n"), BLOCK + BODY),
        ((b"\xef\xbb\xbf" + f"\n{BLOCK}{BODY}".replace("\n", "\r\n").encode()), BLOCK + BODY),
    ],
)
def test_a_frontmatter_that_is_not_at_the_very_beginning_is_the_one_frontmatter(document, seed):
    assert seeded(document) == seed


_BLANK = st.sampled_from(["\n", " \n", "\t\n", "\ufeff", "<!-- x -->\n", "<!-- name: y -->", "\r\n", "\r", "\x0c\n"])


@given(st.lists(_BLANK, max_size=6).map("".join), st.sampled_from(["", " ", "   ", "\t"]))
def test_whatever_blank_comes_before_it_no_frontmatter_is_invented(before, margin):
    document = before + indented(BLOCK, margin) + BODY
    text = seeded(document)
    assert block_of(text) == BLOCK
    assert text.count("description:") == 1
    assert "- Label axes." in text


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (f"# Charts\n\n{BLOCK}{BODY}", "text comes before the frontmatter of SKILL.md, which begins in line 3"),
        (BLOCK.removeprefix("---\n") + BODY, "begins with keys and without a line"),
        (f"\n{BLOCK.removeprefix('---')}{BODY}".lstrip("\n"), "begins with keys"),
        ('+++\nname = "charts"\ndescription = "x"\n+++\n# Charts\n', "fenced by '\\+\\+\\+'"),
        (f"```markdown\n{BLOCK}{BODY}```\n", "fenced by '```markdown'"),
        (f"```yaml\n{BLOCK[4:-4]}```\n{BODY}", "fenced by '```yaml'"),
        (BLOCK.replace("---", "----") + BODY, "fenced by '----'"),
        (BLOCK.replace("---", "***") + BODY, "fenced by '\\*\\*\\*'"),
        (BLOCK.replace("---", "—") + BODY, "fenced by|begins with keys|comes before"),
        (BLOCK.removesuffix("---\n") + BODY, "is never closed"),
        (f"\n{BLOCK.removesuffix(chr(45) * 3 + chr(10))}{BODY}", "is never closed"),
        (f"{BLOCK}\n{BLOCK}{BODY}", "a second frontmatter in line 6"),
        (f"\n<!-- c -->\n{BLOCK}{BLOCK}{BODY}", "a second frontmatter|text comes before"),
    ],
)
def test_one_in_another_place_or_fence_is_refused_with_a_way_out(document, sentence):
    with pytest.raises(SkillError, match=sentence) as caught:
        seeded(document)
    assert caught.value.hint


@pytest.mark.parametrize(
    "body",
    [
        "# Rules\n\n---\n\nA line above is a ruler.\n",
        f"# How to write a skill\n\n```markdown\n{BLOCK}```\n",
        "Name: is what people ask for.\n",
    ],
)
def test_rulers_and_examples_are_no_frontmatter(body):
    text = seeded(body)
    assert text.endswith(body)
    assert len(re.findall(r"(?m)^name: folder$", text)) == 1


@pytest.mark.parametrize("document", ["", "\n", " \t\n\n", "\ufeff", b"\xef\xbb\xbf\r\n", "\r"])
def test_an_empty_document_is_refused_and_nothing_is_invented(document):
    with pytest.raises(SkillError, match="is empty"):
        seeded(document)


def test_a_document_of_rules_alone_is_described_by_its_first_rule():
    assert frontmatter.read(seeded("- Answer in Spanish.\n- Be brief.\n"))["description"] == "Answer in Spanish."


AGENT_BLOCKS = [
    *(f"{key}: true" for key in AGENT_KEYS),
    'argument-hint: "[file] [--force]"',
    "argument-hint: [file]",
    "allowed-tools:\n  - Read\n  - Bash(git *)",
    "allowed-tools: [Read, Grep]",
    "metadata:\n  author: someone\n  tags: [charts, office]\n  nested:\n    deep: 1",
    'hooks:\n  PreToolUse:\n    - matcher: "Bash"\n      hooks:\n        - {type: command, command: ./check.sh}',
    "paths:\n- src/**\n- '*.ts'",
    "model: inherit\ncontext: fork\nagent: Explore   # a remark",
    "something-of-my-own: {a: [1, 2]}",
    "category: >-\n  charts\n  and more",
]


@pytest.mark.parametrize("keys", AGENT_BLOCKS)
def test_keys_of_agents_are_taken_and_kept_byte_for_byte_in_what_is_made_of_the_seed(keys):
    document = f"---\nname: charts\n{keys}\ndescription: Use when a chart is asked for.\n---\n{BODY}"
    assert seeded(document) == document
    described = with_description(document, "Use for charts of any kind.")
    released = frontmatter.with_version(document, "1.2.0") if "metadata" not in keys else document
    assert keys in described
    assert keys in released


@pytest.mark.parametrize("key", AGENT_KEYS)
def test_lint_warns_of_a_key_that_only_agents_document_and_reports_no_error(key):
    document = f"---\nname: charts\ndescription: Use it.\n{key}: true\n---\n{BODY}"
    faults = check_folder("charts", {"SKILL.md": document.encode()})
    assert [(fault.rule, fault.severity) for fault in faults] == [("key-of-agents", Severity.WARNING)]


def write(folder, *files):
    for file in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(BLOCK + BODY if path.name == "SKILL.md" else "x\n")


@pytest.mark.parametrize("in_repository", [False, True])
@pytest.mark.parametrize(
    ("rules", "file"),
    [
        ({"charts/.gitignore": "cache/\n"}, "cache/deep/a.md"),
        ({"charts/.gitignore": "*.log\n!keep.log\n"}, "notes/run.log"),
        ({"charts/notes/.gitignore": "secret.txt\n"}, "notes/secret.txt"),
        ({"charts/.gitignore": "/only-here.md\n"}, "only-here.md"),
        ({"charts/.gitignore": "**/node_modules/\n"}, "a/node_modules/b/SKILL.md"),
        ({}, "node_modules/b/index.js"),
    ],
)
def test_what_the_rules_of_the_seed_ignore_is_left_out(rules, file, in_repository, tmp_path):
    if in_repository:
        git(tmp_path, "init", "-q")
    write(tmp_path / "charts", "SKILL.md", "keep.log", "notes/kept.md", file)
    for name, text in rules.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    files = read_seed(tmp_path / "charts").files
    assert file not in files
    assert {"SKILL.md", "keep.log", "notes/kept.md"} <= files.keys()


@pytest.mark.parametrize("rules", [".gitignore", ".git/info/exclude", "lib/.gitignore"])
def test_what_the_repository_around_the_seed_ignores_is_left_out_and_what_it_tracks_is_kept(rules, tmp_path):
    git(tmp_path, "init", "-q")
    write(tmp_path / "lib" / "charts", "SKILL.md", "out.csv", "tracked.csv")
    git(tmp_path, "add", ".")
    git(tmp_path, "rm", "-q", "--cached", "lib/charts/out.csv")
    (tmp_path / rules).write_text("*.csv\n")
    assert [*read_seed(tmp_path / "lib" / "charts").files] == ["SKILL.md", "tracked.csv"]
    assert left_out(tmp_path / "lib" / "charts") == ("out.csv",)


def test_a_seed_in_a_folder_that_git_ignores_as_a_whole_is_taken_by_its_own_rules(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("build/\n")
    write(tmp_path / "build" / "charts", "SKILL.md", "a.md", "b.tmp")
    (tmp_path / "build" / "charts" / ".gitignore").write_text("*.tmp\n")
    assert [*read_seed(tmp_path / "build" / "charts").files] == [".gitignore", "SKILL.md", "a.md"]


@pytest.mark.parametrize(
    "name", [".env", ".env.local", ".envrc", "sub/.ENV", ".netrc", ".pgpass", ".npmrc", "id_ed25519", "server.pem"]
)
def test_files_of_credentials_are_left_out_even_where_git_tracks_them(name, tmp_path):
    git(tmp_path, "init", "-q")
    write(tmp_path / "charts", "SKILL.md", name, ".env.example")
    git(tmp_path, "add", "-f", ".")
    assert [*read_seed(tmp_path / "charts").files] == [".env.example", "SKILL.md"]
    assert left_out(tmp_path / "charts") == (name,)
    assert left_out(tmp_path / "charts" / "SKILL.md") == (name,)


@pytest.mark.skipif(not SKILLS.is_dir(), reason="real skills are not on this machine")
def test_every_public_skill_is_a_seed_whose_frontmatter_stays_byte_for_byte():
    documents = [*SKILLS.glob("*/SKILL.md")]
    assert len(documents) >= 9
    for path in (*documents, *SKILLS.glob("skillopt_ckpt/*.md")):
        theirs = path.read_text(encoding="utf-8")
        ours = read_seed(path.parent if path.name == "SKILL.md" else path).document
        assert not block_of(theirs) or block_of(ours) == block_of(theirs)

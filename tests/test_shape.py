"""The shape of the source: names, who may print, and that tests stand where their subjects stand."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import house
import pytest
from house import parsed

from skillgit import errors

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "skillgit": ROOT / "skillgit",
    "skillgit_envs": ROOT / "envs" / "skillgit_envs",
    "skillgit_backends": ROOT / "backends" / "skillgit_backends",
}
MIRRORED = {"envs": PACKAGES["skillgit_envs"], "backends": PACKAGES["skillgit_backends"]}
OWN = {"agreement", "bench", "concurrency", "damage", "exchange", "interop", "power", "repositories", "wire"}
"""Folders of tests without a subject of the same name: measurements, scorers, repositories, hosts, the model server."""
FORBIDDEN_NAMES = {"base", "common", "helper", "helpers", "misc", "stuff", "util", "utils"}
PRINTERS = {"skillgit/cli/output.py", "skillgit/cli/diagnostics.py"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
FILES = sorted(path for package in PACKAGES.values() for path in package.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def nodes(path: Path) -> tuple[ast.AST, ...]:
    return house.nodes(parsed(path))


def functions(path: Path) -> list[Function]:
    return [node for node in nodes(path) if isinstance(node, Function)]


def test_there_is_something_to_look_at():
    assert len(FILES) > 50


def test_make_lints_every_root():
    """`make lint` names its roots itself, and a test that runs in its own checkout never runs it."""
    (named,) = re.findall(r"^SOURCES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(named.split()) == {name_of(path).partition("/")[0] for path in FILES} | {"tests"}


def test_modules_say_what_they_own():
    assert [name_of(path) for path in FILES if not ast.get_docstring(parsed(path))] == []


def test_annotations_are_not_evaluated():
    astray = []
    for path in FILES:
        imports = [node for node in parsed(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
        future = imports and isinstance(imports[0], ast.ImportFrom) and imports[0].module == "__future__"
        if functions(path) and not future:
            astray.append(name_of(path))
    assert astray == []


def test_names_of_modules_say_something():
    parts = {name_of(path): set(path.relative_to(ROOT).with_suffix("").parts) for path in FILES}
    assert [name for name, words in parts.items() if words & FORBIDDEN_NAMES] == []


def test_modules_do_not_import_each_other():
    assert house.import_cycles() == []


def test_nobody_prints_but_the_two_that_may():
    printing = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        if name_of(path) not in PRINTERS
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_only_the_command_line_knows_the_streams():
    streams = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        if not name_of(path).startswith("skillgit/cli/")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in {"stdin", "stdout", "stderr"}
        if isinstance(node.value, ast.Name) and node.value.id == "sys"
    ]
    assert streams == []


def test_a_broad_except_has_a_reason_or_raises_again():
    astray = []
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler) and is_broad(node) and not raises_again(node):
                around = "\n".join(lines[node.lineno - 2 : node.body[0].lineno])
                if not re.search(r"#(?! noqa: \S+$)", around, flags=re.MULTILINE):
                    astray.append(f"{name_of(path)}:{node.lineno}")
    assert astray == []


def is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or ast.unparse(handler.type) in {"Exception", "BaseException"}


def raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


UNPACKERS = {"extractall", "unpack_archive"}
ARCHIVES = {"zipfile", "tarfile", "shutil"}
ENTRIES_CHECKED = {"skillgit/store/tree.py", "skillgit/app/upkeep/run_checks.py", "skillgit/store/work_tree.py"}
WORK_TREES = {"skillgit/store/promotion.py"}
"""Their paths are those of work trees, which git itself lists."""
STARTERS_OF_GIT = {
    "skillgit/store/git_binary.py",
    "skillgit/cli/output.py",
    "envs/skillgit_envs/swebench/repositories.py",  # clones of other projects, which the store knows nothing of
}
WRITERS = {"write_bytes", "write_text", "symlink_to", "mkdir", "touch"}


def modules_imported(path: Path) -> set[str]:
    plain = {name.name for node in nodes(path) if isinstance(node, ast.Import) for name in node.names}
    return plain | {node.module or "" for node in nodes(path) if isinstance(node, ast.ImportFrom)}


def test_no_archive_is_unpacked_by_the_names_in_it():
    unpacking = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Attribute | ast.alias)
        for word in [node.attr if isinstance(node, ast.Attribute) else node.name]
        if word in UNPACKERS or (word == "extract" and modules_imported(path) & ARCHIVES)
    ]
    assert unpacking == []
    # it checks each name before it hands a file on
    unpacker = "skillgit/app/sources/public_data/contents.py"
    assert [name_of(path) for path in FILES if "tarfile" in modules_imported(path)] == [unpacker]


def test_names_of_entries_are_read_where_they_are_checked():
    """Elsewhere ``pygit2.Tree`` gives names that may be any bytes; those modules compare them, and write no file."""
    trees = [
        path
        for path in FILES
        if name_of(path).startswith("skillgit/store/") and "pygit2.Tree" in path.read_text(encoding="utf-8")
    ]
    joining = {
        name_of(path)
        for path in trees
        for node in nodes(path)
        if (isinstance(node, ast.Attribute) and node.attr in WRITERS)
        or (isinstance(node, ast.ImportFrom) and node.module == "pathlib" and node in parsed(path).body)
    }
    assert {name_of(path) for path in trees} & ENTRIES_CHECKED
    assert joining - ENTRIES_CHECKED - WORK_TREES == set()


def test_names_become_files_in_one_function():
    """A loop that joins names to a folder and writes is how a name leads out of it."""
    loops = []
    for path in FILES:
        for loop in (node for node in nodes(path) if isinstance(node, ast.For)):
            inside = [node.attr for node in ast.walk(loop) if isinstance(node, ast.Attribute)]
            joins = any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) for node in ast.walk(loop))
            if joins and {"write_bytes", "write_text"} & set(inside):
                loops.append(name_of(path))
    # the folder of a job in the sandbox has checked names, and a copy of a plug-in those of its own source
    assert set(loops) == {"skillgit/sandbox/launcher/folder.py", "skillgit/testing/rehearsal.py"}


def test_git_is_started_by_one_command_line():
    """It says which programs a repository may name; see ``store/git_binary.py``."""
    starting = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.List)
        and node.elts
        and isinstance(node.elts[0], ast.Constant)
        and node.elts[0].value == "git"
        and name_of(path) not in STARTERS_OF_GIT
    ]
    assert starting == []


def test_texts_of_commits_are_read_in_one_place():
    """pygit2 decodes ``message`` and ``name`` with the codec that the commit's maker names."""
    signed = (".author", ".committer", ".tagger")
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in {"message", "name", "email"}
        for owner in [ast.unparse(node.value)]
        if (node.attr == "message" and owner in {"commit", "candidate"}) or owner.endswith(signed)
    ]
    # what scanning calls a commit is a value of our own
    assert [place for place in found if not place.startswith("skillgit/app/exchange/push_check.py")] == []


def test_every_error_for_the_user_has_a_hint():
    bare = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and isinstance(getattr(errors, node.func.id, None), type)
        and "hint" not in {keyword.arg for keyword in node.keywords}
    ]
    assert [place for place in bare if not place.startswith("skillgit/errors.py")] == []


def test_nothing_is_left_to_do():
    unfinished = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    assert [name_of(path) for path in FILES if unfinished.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_every_folder_with_modules_is_a_package(package: Path):
    folders = {path.parent for path in package.rglob("*.py")}
    assert [name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []
    assert (package / "py.typed").is_file()


def test_folders_of_tests_mirror_the_source():
    tests = ROOT / "tests"
    astray = []
    for folder in sorted({path.parent for path in tests.rglob("test_*.py")}):
        top, *rest = folder.relative_to(tests).parts or ("",)
        subject = MIRRORED[top].joinpath(*rest) if top in MIRRORED else PACKAGES["skillgit"].joinpath(top, *rest)
        # A folder that was moved leaves its compiled files behind, so only source counts.
        if not OWN & {top, *rest} and not any(subject.glob("*.py")):
            astray.append(name_of(folder))
    assert astray == []


def test_tests_are_named_as_such():
    classes = re.compile(r"^ *class Test", flags=re.MULTILINE)
    files = (ROOT / "tests").rglob("test_*.py")
    assert [path for path in files if classes.search(path.read_text(encoding="utf-8"))] == [], (
        "tests are plain functions"
    )

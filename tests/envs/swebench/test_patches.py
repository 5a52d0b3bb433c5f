"""The patch of a rollout is what was changed, whatever a command does; a hostile one leads nowhere."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples
from swebench_cases import SCRIPTS, clone, own_items, ran, row

from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError
from skillgit_envs.swebench.instances import Instance
from skillgit_envs.swebench.repositories import Clones, Shipped, git

EXISTING = ["README.md", "larder/amounts.py", "larder/shelf.py", "tests/test_shelf.py"]
NEW = ["a new file", "larder/deep/er/x.bin", "ünïcode.txt", "tests/__init__.py", "-dash", "quote'\"s"]
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(EXISTING + NEW), st.binary(max_size=40).map(list)),
        st.tuples(st.just("append"), st.sampled_from(EXISTING), st.just(list(b"no newline at the end"))),
        st.tuples(st.just("delete"), st.sampled_from(EXISTING), st.none()),
        st.tuples(st.just("rename"), st.sampled_from(EXISTING), st.sampled_from(NEW)),
        st.tuples(st.just("mode"), st.sampled_from(EXISTING), st.none()),
        st.tuples(st.just("link"), st.sampled_from(NEW), st.sampled_from(["README.md", "/etc/passwd", "../.."])),
    ),
    max_size=5,
)
EDITOR = """
import json, os, pathlib, sys
for kind, name, detail in json.loads(sys.argv[1]):
    path = pathlib.Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "write":
            path.unlink(missing_ok=True)
            path.write_bytes(bytes(detail))
        elif kind == "append":
            path.write_bytes(path.read_bytes() + bytes(detail))
        elif kind == "delete":
            path.unlink()
        elif kind == "rename":
            pathlib.Path(detail).parent.mkdir(parents=True, exist_ok=True)
            path.rename(detail)
        elif kind == "mode":
            path.chmod(0o755)
        elif kind == "link":
            path.unlink(missing_ok=True)
            path.symlink_to(detail)
    except FileNotFoundError:
        pass
"""


def checked_out(folder: Path) -> Path:
    folder.mkdir()
    Shipped(SCRIPTS / "data" / "repositories").check_out(Instance(own_items()[1]), folder)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checked_out(tmp_path_factory.mktemp("checkout") / "testbed")


def copied(checkout: Path, folder: Path) -> Path:
    os.system(f"cp -R {shlex.quote(str(checkout))} {shlex.quote(str(folder))}")  # noqa: S605 - links stay links
    return folder


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return what git could record of a folder: files with content and right to be run, and links."""
    entries = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if name.parts[0] == ".git" or name.suffix == ".pyc":
            continue
        if path.is_symlink():
            entries[str(name)] = ("link", str(path.readlink()))
        elif path.is_file():
            entries[str(name)] = (bool(path.stat().st_mode & 0o100), path.read_bytes())
    return entries


def turn(testbed: Path, box: Path, command: str, patch: bytes = b"") -> bytes:
    done = ran("turn", testbed, box, command_sh=command.encode(), patch_diff=patch)
    assert done.returncode == 0, done
    return (box / "out" / "patch.diff").read_bytes()


@given(EDITS)
@examples(0.1)
def test_the_patch_makes_the_changed_tree_of_the_one_at_the_beginning(checkout, edits):
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        changed, again = (copied(checkout, folder / name) for name in ("changed", "again"))
        command = shlex.join(["python3", "-c", EDITOR, json.dumps(edits)])
        patch = turn(changed, folder / "box", command)
        assert turn(again, folder / "second", "true", patch) == patch
        assert snapshot(again) == snapshot(changed)


@pytest.mark.parametrize(
    "command",
    [
        "git add -A; git -c user.name=a -c user.email=a@invalid commit -qm x",
        "git checkout -q -b other; git add -A; git -c user.name=a -c user.email=a@invalid commit -qm x",
        "git add -A; git -c user.name=a -c user.email=a@invalid stash -q; git stash pop -q",
        "rm .git/index; rm .git/HEAD",
        "echo 'exit 1' > .git/hooks/pre-commit; git config core.fsmonitor false; git config diff.external false",
        "git config core.excludesFile /dev/stdin; git config core.attributesFile x; git config alias.add '!false'",
        "mkdir -p __pycache__; echo x > __pycache__/a.pyc; echo x > ignored.pyc",
        "kill -9 $$",
    ],
)
def test_what_a_command_does_to_the_repository_does_not_change_the_patch(command, checkout, tmp_path):
    testbed = copied(checkout, tmp_path / "testbed")
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    patch = turn(
        testbed, tmp_path / "box", f"mkdir -p .git/hooks; echo new > new.txt; echo end >> README.md; {command}"
    )
    assert [line for line in patch.decode().splitlines() if line.startswith("diff ")] == [
        "diff --git a/README.md b/README.md",
        "diff --git a/new.txt b/new.txt",
    ]


def test_a_command_that_makes_a_tree_that_git_cannot_record_is_told(checkout, tmp_path):
    testbed = copied(checkout, tmp_path / "testbed")
    done = ran("turn", testbed, tmp_path / "box", command_sh=b"git init -q inner; echo said", patch_diff=b"")
    assert done.returncode == 0
    out = tmp_path / "box" / "out"
    assert (out / "output").read_text() == "said\n"
    assert not (out / "patch.diff").exists()
    assert "inner" in (out / "trouble").read_text()


def test_the_place_of_a_checkout_is_not_told(checkout, tmp_path):
    testbed = copied(checkout, tmp_path / "testbed")
    turn(testbed, tmp_path / "box", "pwd; exit 7")
    assert (tmp_path / "box" / "out" / "output").read_text() == "/testbed\n"
    assert (tmp_path / "box" / "out" / "exit").read_text() == "7\n"


def graded(checkout: Path, folder: Path, patch: bytes) -> Path:
    testbed, box = copied(checkout, folder / "testbed"), folder / "box"
    done = ran("grade", testbed, box, eval_sh=b"echo tested; cat README.md", patch_diff=patch)
    assert done.returncode == 0, done
    return box / "out"


def creation(name: str, content: str = "evil") -> str:
    return (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{content}\n"
    )


LINKED = (
    "diff --git a/out b/out\nnew file mode 120000\n--- /dev/null\n+++ b/out\n@@ -0,0 +1 @@\n+..\n"
    "\\ No newline at end of file\n" + creation("out/evil")
)


@pytest.mark.parametrize("patch", [creation("../evil"), creation("x/../../evil"), LINKED, creation("/../evil")])
def test_a_hostile_patch_writes_nothing_outside_and_does_not_apply(patch, checkout, tmp_path):
    out = graded(checkout, tmp_path, patch.encode())
    assert not list(tmp_path.glob("evil*"))
    assert not (out / "exit").exists()


README = "# larder\n\nAmounts of ingredients, and what is on a shelf."


def change(first: str, *, line: str = "Amounts of ingredients, and what is on a shelf.", at: int = 1) -> bytes:
    """Return a patch of the first line; its context is right where ``line`` is, and its place where ``at`` is 1."""
    text = f"{line} Run the tests with `python -m unittest -v`."
    head = "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n"
    return f"{head}@@ -{at},3 +{at},3 @@\n-{first}\n+# shelf\n \n {text}\n".encode()


@pytest.mark.parametrize(
    ("patch", "applies"),
    [
        (change("# larder"), True),
        (change("# larder", at=2), True),
        (change("# larder", line="Other words."), True),  # patch --fuzz
        (change("# Larder"), False),
        (b"no patch at all\n", False),
        (change("# larder") + creation("tests/__init__.py/x").encode(), False),
    ],
)
def test_a_patch_is_applied_in_four_ways_as_the_benchmark_does(patch, applies, checkout, tmp_path):
    out = graded(checkout, tmp_path, patch)
    assert (out / "exit").exists() == applies
    assert not applies or (out / "output").read_text().startswith("tested\n# shelf\n")


def test_a_checkout_has_nothing_that_came_later_and_runs_nothing_of_its_clone(tmp_path):
    place, later = clone(tmp_path / "clones")
    trap = f"touch {tmp_path}/sprung"
    for key in ("core.fsmonitor", "filter.evil.smudge", "uploadpack.packObjectsHook", "core.sshCommand"):
        git(place, "config", key, trap)
    for hook in ("post-checkout", "post-upload-pack", "pre-receive"):
        path = place / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{trap}\n")
        path.chmod(0o755)
    (place / ".git" / "info").mkdir(exist_ok=True)
    (place / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    clones, instance = Clones(tmp_path / "clones"), Instance(own_items()[1])
    clones.check([instance])
    folder = tmp_path / "checkout"
    folder.mkdir()
    clones.check_out(instance, folder)
    assert not (tmp_path / "sprung").exists()
    assert git(folder, "rev-parse", "HEAD").strip() == instance.text("base_commit")
    assert not (folder / "larder" / "fixed.py").exists()
    objects = git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert later not in objects
    assert git(place, "rev-parse", "HEAD:larder/fixed.py").strip() not in objects


@pytest.mark.parametrize("name", ["hearthside__larder", "hearthside__larder.git", "hearthside/larder"])
def test_a_clone_is_found_by_its_name(name, tmp_path):
    clone(tmp_path, name)
    Clones(tmp_path).check([Instance(own_items()[1])])


def test_a_clone_that_is_missing_or_lacks_a_commit_is_named(tmp_path):
    item = own_items()[1]
    other = Item(id="a", content=row())
    sentence = "has no clone of acme/tool, nor of 1 more: hearthside/larder"
    with pytest.raises(ConfigError, match=sentence) as raised:
        Clones(tmp_path).check([Instance(item), Instance(other)])
    assert "git clone" in raised.value.hint
    place = tmp_path / "hearthside__larder"
    place.mkdir()
    git(place, "init", "--quiet")
    with pytest.raises(ConfigError, match=r"lacks 1 commits of hearthside/larder, such as [0-9a-f]{12}"):
        Clones(tmp_path).check([Instance(item)])

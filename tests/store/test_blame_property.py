"""Each line is blamed on the commit that git blames with both of its options for moves, whatever was done to it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.store.diff import Blamer
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.hypothesis

# lines that git follows alone, lines that it follows only in company, and lines that say too little
LINES = st.sampled_from(
    [
        "",
        "}",
        "- Say the unit.",
        "- Quote the row.",
        "- Say where it stands.",
        *(f"- In case {number} write the number together with its unit, as it stands there." for number in range(5)),
        "## A heading that is long enough to be followed when it is moved",
        "\u00e4\u00f6\u00fc \u4e2d\u6587\u4e2d\u6587\u4e2d\u6587\u4e2d\u6587\u4e2d\u6587",
    ]
)
TEXTS = st.lists(LINES, min_size=1, max_size=14)


@st.composite
def stories(draw) -> list[tuple[int, dict[str, list[str]]]]:
    """Draw the parent and the files of each commit; a commit moves, copies, removes and adds blocks of lines."""
    told: list[tuple[int, dict[str, list[str]]]] = []
    for place in range(draw(st.integers(1, 6))):
        parent = draw(st.integers(max(-1, place - 2), place - 1)) if place else -1
        files = {name: list(text) for name, text in told[parent][1].items()} if parent >= 0 else {}
        for _ in range(draw(st.integers(1, 3))):
            name = draw(st.sampled_from(["a.md", "b.md"]))
            text = files.setdefault(name, [])
            start = draw(st.integers(0, len(text)))
            end = draw(st.integers(start, min(len(text), start + 5)))
            at = draw(st.integers(0, len(text) - (end - start)))
            block = text[start:end]
            match draw(st.sampled_from(["move", "copy", "remove", "add", "across"])):
                case "move":
                    del text[start:end]
                    text[at:at] = block
                case "copy":
                    text[at:at] = block
                case "remove":
                    del text[start:end]
                case "add":
                    text[at:at] = draw(TEXTS)
                case "across":
                    del text[start:end]
                    files.setdefault("b.md" if name == "a.md" else "a.md", []).extend(block)
        told.append((parent, files))
    return told


@given(stories(), st.booleans())
def test_every_line_is_blamed_as_git_blames_it_when_it_follows_moves(tmp_path_factory, story, merged) -> None:
    home = tmp_path_factory.mktemp("blamed")
    tip = _written(home, story, merged=merged)
    for name in ("a.md", "b.md"):
        held = subprocess.run(["git", "-C", home, "cat-file", "-s", f"{tip}:{name}"], capture_output=True, check=False)
        if held.returncode or held.stdout == b"0\n":
            continue
        command = ["git", "-C", home, "blame", "-l", "-s", "-n", "-f", "--root", "-M", "-C", tip, "--", name]
        told = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
        expected = [tuple(row.split(b")")[0].decode().split()) for row in told]
        lines = Blamer(Repo.discover(home)).lines(tip, name)
        assert [
            (line.commit, line.original_path, str(line.original_line), str(line.line)) for line in lines
        ] == expected


def _written(home: Path, story: list[tuple[int, dict[str, list[str]]]], *, merged: bool) -> str:
    subprocess.run(["git", "init", "-q", "--bare", home], check=True)
    stream: list[bytes] = []
    for place, (parent, files) in enumerate(story):
        last = place == len(story) - 1
        stream.append(_commit(place))
        if parent >= 0:
            stream.append(f"from :{parent + 1}\n".encode())
            if last and merged and parent != place - 1:
                stream.append(f"merge :{place}\n".encode())
        stream.append(b"deleteall\n")
        for name, lines in files.items():
            content = "".join(f"{line}\n" for line in lines).encode()
            stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content))
    subprocess.run(["git", "-C", home, "fast-import", "--quiet"], input=b"".join(stream), check=True)
    tip = subprocess.run(
        ["git", "-C", home, "rev-parse", f"refs/heads/at-{len(story)}"], capture_output=True, check=True
    )
    return tip.stdout.decode().strip()


def _commit(place: int) -> bytes:
    who = f"a <a@localhost> {1_700_000_000 + 60 * place} +0000"
    return f"commit refs/heads/at-{place + 1}\nmark :{place + 1}\ncommitter {who}\ndata 0\n".encode()

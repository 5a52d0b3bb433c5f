from __future__ import annotations

import pytest

from skillgit.domain.skill import hidden_characters


@pytest.mark.parametrize(
    ("path", "content", "sentence", "line"),
    [
        ("SKILL.md", b"a\nb\x00\n", "SKILL.md has a hidden character in line 2: U+0000", 2),
        ("r/a.md", "x\u202ey\u202c".encode(), "r/a.md has 2 hidden characters, the first in line 1: U+202E", 1),
        ("run.py", b"a = '\x1b[31m'\n", "run.py has a hidden character in line 1: U+001B", 1),
    ],
)
def test_what_is_hidden_is_named_with_its_line(path, content, sentence, line) -> None:
    hidden = hidden_characters(path, content)
    assert hidden is not None
    assert (hidden.sentence, hidden.line) == (sentence, line)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("SKILL.md", b"plain\r\n\ttext\n"),
        ("SKILL.md", "\ufeffwith a mark 👩\u200d💻\n".encode()),
        ("data.bin", b"\x00\x01"),
        ("image.png", b"\x89PNG\r\n\x1a\n\x00"),
        ("SKILL.md", b"caf\xe9\x07"),
    ],
)
def test_line_ends_binaries_and_other_encodings_are_none_of_it(path, content) -> None:
    assert hidden_characters(path, content) is None

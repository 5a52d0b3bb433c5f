from __future__ import annotations


def test_without_a_terminal_it_says_what_to_use_instead(skillgit):
    ended = skillgit("tui")
    assert ended.code == 2
    assert ended.err == "skillgit: tui needs a terminal\nhint: skillgit log\n"
    assert ended.out == b""

from __future__ import annotations

import pytest
from sample_run import PATH

from skillgit.domain.protected_regions import SLOW_START
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.store.diff import Blamer
from skillgit.store.repo import Repo

FILE = f"{PATH}/{DOCUMENT}"
RULE = "- A rule that is long enough to be told from every other rule of this file."
OTHER = "- Another rule, which says something else and is as long as the first one is."


def commit(git, repo, message: str, **files: str | None) -> str:
    """Commit ``files`` by hand, named with underscores for slashes, and return the commit."""
    for name, text in files.items():
        path = repo.workdir / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")
    git("add", "-A")
    git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", message)
    return git("rev-parse", "HEAD").strip()


def test_every_line_names_the_commit_that_brought_it(repo, history) -> None:
    seed, first, merge, fourth = (history[place].commit for place in (0, 1, 5, 6))
    slow = history[4].commit

    found = {line.text: line for line in Blamer(repo).lines(fourth, FILE)}

    assert found["- Read the question again before answering."].commit == seed
    assert found["- Answer in the unit the question asks for, and say it."].commit == first
    assert found["- Quote the span that you rely on."].commit == fourth
    assert found["Prefer the shortest answer"].commit == slow, "guidance belongs to the slow line, not to the merge"
    assert found[SLOW_START].commit == slow
    assert merge not in {line.commit for line in found.values() if line.text}
    lines = repo.commit(fourth).tree[FILE].data.decode().split("\n")
    assert [line.text for line in Blamer(repo).lines(fourth, FILE)] == lines[:-1]
    assert [line.line for line in Blamer(repo).lines(fourth, FILE)] == list(range(1, len(lines)))


def test_it_is_what_git_says(repo, history, git) -> None:
    tip = history[6].commit
    told = [
        row.split()[0].lstrip("^") for row in git("blame", "-l", "--root", "-M", "-C", tip, "--", FILE).splitlines()
    ]

    assert [line.commit for line in Blamer(repo).lines(tip, FILE)] == told


def test_a_line_that_was_moved_keeps_its_origin(repo, git) -> None:
    first = commit(git, repo, "one", a_md=f"{RULE}\n{OTHER}\nlast\n")
    second = commit(git, repo, "two", a_md=f"last\nnew line\n{OTHER}\n{RULE}\n")

    found = {line.text: line for line in Blamer(repo).lines(second, "a.md")}

    assert (found[RULE].commit, found[RULE].original_line) == (first, 1)
    assert found["new line"].commit == second


def test_a_rule_that_was_moved_to_another_file_keeps_its_origin(repo, git) -> None:
    first = commit(git, repo, "one", a_md=f"# A\n\n{RULE}\n{OTHER}\n", b_md="# B\n")
    second = commit(git, repo, "two", a_md="# A\n", b_md=f"# B\n\n{RULE}\n{OTHER}\n")

    found = {line.text: line for line in Blamer(repo).lines(second, "b.md")}

    assert (found[RULE].commit, found[RULE].original_path, found[RULE].original_line) == (first, "a.md", 3)


def test_a_file_that_was_renamed_is_followed(repo, git) -> None:
    first = commit(git, repo, "one", a_md=f"{RULE}\n{OTHER}\n")
    second = commit(git, repo, "two", a_md=None, c_md=f"{RULE}\n{OTHER}\n")

    assert {(line.commit, line.original_path) for line in Blamer(repo).lines(second, "c.md")} == {(first, "a.md")}


def test_names_that_git_puts_in_quotation_marks_are_read(repo, git) -> None:
    name = 'o"dd\tnäme.md'
    (repo.workdir / name).write_text(f"{RULE}\n", encoding="utf-8")
    tip = commit(git, repo, "one", a_md="x\n")

    assert [line.original_path for line in Blamer(repo).lines(tip, name)] == [name]


def test_what_a_user_keeps_out_of_blame_is_not_kept_out_here(repo, git) -> None:
    commit(git, repo, "one", a_md=f"{RULE}\n")
    second = commit(git, repo, "two", a_md=f"{RULE} And more of it.\n")
    (repo.workdir / "ignored").write_text(f"{second}\n")
    git("config", "blame.ignoreRevsFile", "ignored")

    assert Blamer(repo).lines(second, "a.md")[0].commit == second


def test_text_of_any_kind_is_read(repo, git) -> None:
    (repo.workdir / "a.md").write_bytes(b"\tindented\n0123456789012345678901234567890123456789 1 1 1\n\xff\r\nno end")
    tip = commit(git, repo, "one", b_md="")

    texts = [line.text for line in Blamer(repo).lines(tip, "a.md")]

    assert texts == ["\tindented", "0123456789012345678901234567890123456789 1 1 1", "\ufffd\r", "no end"]
    assert Blamer(repo).lines(tip, "b.md") == ()


def test_a_bare_repository_is_as_good(repo, history, git, tmp_path) -> None:
    git("clone", "-q", "--bare", str(repo.workdir), str(tmp_path / "bare"))
    tip = history[6].commit

    assert Blamer(Repo.discover(tmp_path / "bare")).lines(tip, FILE) == Blamer(repo).lines(tip, FILE)


def test_what_is_not_there_is_named(repo, history) -> None:
    with pytest.raises(NotFoundError, match=r"no file 'nothing\.md'"):
        Blamer(repo).lines(history[0].commit, "nothing.md")
    with pytest.raises(NotFoundError, match="no file"):
        Blamer(repo).lines(history[0].commit, PATH)
    with pytest.raises(RevisionNotFoundError):
        Blamer(repo).lines("0" * 40, FILE)

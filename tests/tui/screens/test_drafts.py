from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from harvested import SKILL, draft, write_drafts
from textual.widgets import Static

from skillgit.app.sources.draft_review import review_harvest
from skillgit.store.repo import Repo
from skillgit.tui.screens.drafts import DraftsScreen
from skillgit.tui.widgets.lines import OneLine

CHECK = {"type": "command", "command": ["python", "files/one/check.py"], "files": ["files/one/check.py"]}


@pytest.fixture(autouse=True)
def drafts(tmp_path) -> Path:
    Repo.init(tmp_path)
    rows = [draft(name, prompt=f"How long is the pier {name}, in metres?\x1b[2J") for name in ("one", "two", "three")]
    rows[0] = {name: value for name, value in rows[0].items() if name != "rubric"} | {"check": CHECK}
    rows.append(draft("secret", prompt="Use ghp_" + 6 * "a1B2c3"))
    return write_drafts(tmp_path, rows, {"files/one/check.py": b"assert 180 in [1\x1b[2J80]\n"}).parent


def tree(*folders: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


def said(app) -> tuple[str, str]:
    """Return the progress, and what the last key did, as the screen shows them."""
    progress = app.screen.query_one("#head", OneLine).text.partition(SKILL)[2].strip()
    answer = str(app.screen.query_one("#answer", Static).content)
    seen = " ".join(app.text().split())
    assert f" {progress} " in seen
    assert " ".join(answer.split()) in seen
    return progress, answer


@pytest.mark.parametrize("size", [(104, 30), pytest.param((60, 16), marks=pytest.mark.soak)])
def test_a_draft_looks_as_it_should(shot, size):
    assert shot(DraftsScreen(SKILL), size=size)


def test_each_key_has_a_visible_answer_and_an_undo(play, drafts, tmp_path, monkeypatch):
    before, tasks = tree(drafts, tmp_path / "tasks"), f"{SKILL}.jsonl"
    monkeypatch.setattr(
        DraftsScreen, "in_terminal", lambda _, words: Path(words[-1]).write_text("prompt: Why?\nanswer: so\n") > 0
    )
    keys = [
        ("u", "1 of 4, 0 accepted, 0 dropped", "there is no answer to take back; answers become final after a day"),
        ("h", "1 of 4, 0 accepted, 0 dropped", "there is no draft before this one"),
        ("l", "2 of 4, 0 accepted, 0 dropped", ""),
        ("d", "3 of 4, 0 accepted, 1 dropped", "dropped two; u takes it back"),
        ("e", "3 of 4, 0 accepted, 1 dropped", "edited three; u takes it back"),
        ("a", "4 of 4, 1 accepted, 1 dropped", f"accepted three into {tasks}; u takes it back"),
        ("right", "4 of 4, 1 accepted, 1 dropped", "there is no draft after this one"),
        (
            "a",
            "4 of 4, 1 accepted, 1 dropped",
            "draft secret cannot be accepted: prompt:1 may hold a secret (GitHub token); ",
        ),
        ("left", "3 of 4, 1 accepted, 1 dropped", ""),
        ("a", "4 of 4, 2 accepted, 1 dropped", f"accepted one into {tasks}; u takes it back"),
        ("d", "all 4 answered, 2 accepted, 2 dropped", "dropped secret; u takes it back"),
        ("d", "all 4 answered, 2 accepted, 2 dropped", "there is no draft to answer"),
        ("e", "all 4 answered, 2 accepted, 2 dropped", "there is no draft to edit"),
        ("u", "4 of 4, 2 accepted, 1 dropped", "taken back: secret waits for an answer again"),
        ("u", "3 of 4, 1 accepted, 1 dropped", "taken back: one waits for an answer again"),
        ("u", "3 of 4, 0 accepted, 1 dropped", "taken back: three waits for an answer again"),
        ("u", "3 of 4, 0 accepted, 1 dropped", "taken back: three waits for an answer again"),
        ("u", "2 of 4, 0 accepted, 0 dropped", "taken back: two waits for an answer again"),
    ]

    async def scenario(app, press):
        assert "\x1b[2J" not in await press()
        for key, progress, answer in keys:
            await press(key)
            assert (said(app)[0], said(app)[1][: len(answer)] if answer else "") == (progress, answer), key
        assert tree(drafts, tmp_path / "tasks") == before

    play(DraftsScreen(SKILL), scenario)


@pytest.mark.parametrize("key", ["a", "d", "e"])
def test_what_was_answered_in_another_window_is_said_and_the_others_are_shown(play, monkeypatch, key):
    monkeypatch.setattr(
        DraftsScreen, "in_terminal", lambda _, words: Path(words[-1]).write_text("prompt: Why?\nanswer: so\n") > 0
    )

    async def scenario(app, press):
        await press()
        review_harvest(app.context, SKILL, drop=["one"])
        await press(key)
        answer = "one was dropped in another window; look again before you answer"
        assert said(app) == ("2 of 4, 0 accepted, 1 dropped", answer)
        assert "two waits for an answer" in app.text()

    play(DraftsScreen(SKILL), scenario)


def test_a_key_opens_the_drafts_of_the_skill_that_has_some_and_another_goes_back(play, drafts, tmp_path):
    async def scenario(app, press):
        await press("D")
        assert [type(screen) for screen in app.screen_stack[-2:]] == [DraftsScreen, DraftsScreen]
        await press("q")
        write_drafts(tmp_path, [draft("other", prompt="Why?")], skill="other")
        assert "Drafts of" in await press("D")
        assert "other waits for an answer" in await press("2")
        await press("d", "q")
        (drafts / "drafts.jsonl").write_text("")
        (drafts.with_name("other") / "drafts.jsonl").write_text("")
        await press("D")
        assert [*app._notifications][-1].message.startswith("there are no drafts")

    play(DraftsScreen(SKILL), scenario)


@pytest.mark.parametrize(
    ("program", "answer"),
    [
        ("printf 'a: [\\nb: 1' >", "line 2 is not valid YAML"),
        ("printf 'prompt: why?' >", "this is not a task: draft one does not say what a right result is"),
        (": >", "nothing was changed"),
        ("touch", "nothing was changed"),
        ("printf '\\377' >", "the edit is not UTF-8; nothing was changed"),
        ("false", "the editor ended with an error; nothing was changed"),
    ],
)
def test_an_edit_that_cannot_be_kept_changes_nothing_and_is_opened_again(play, drafts, monkeypatch, program, answer):
    texts = []

    def edit(_screen, words):
        texts.append(Path(words[-1]).read_text())
        return not subprocess.run(f"{program} {shlex.quote(words[-1])}", shell=True, check=False).returncode  # noqa: S602 - our own programs

    monkeypatch.setattr(DraftsScreen, "in_terminal", edit)
    before = tree(drafts)

    async def scenario(app, press):
        await press("e")
        assert said(app)[1].startswith(answer)
        await press("e")
        is_refused = "is not" in answer and "UTF-8" not in answer
        assert said(app)[1].startswith("the refused edit was dropped; nothing was changed" if is_refused else answer)
        await press("e")
        assert tree(drafts) == before
        assert [text == texts[0] for text in texts] == [True, not is_refused, True]

    play(DraftsScreen(SKILL), scenario)

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.keys import _character_to_key

from skillgit.tui import keymap
from skillgit.verbs.filter_language import TOKENS

DOCUMENT = Path(__file__).parents[2] / "docs" / "tui.md"
PLACES = {
    "app": "Everywhere",
    "history": "History",
    "list": "Lists and texts",
    "wide": "Wide texts",
    "find": "Searches",
    "tabs": "Tabs",
    "diff": "Differences",
    "compare": "Compare",
    "item": "Item",
    "event": "Event",
    "printed": "Text",
    "live": "Live",
    "dialog": "Dialogs",
}
HEAD = f"""\
# Screens

`skillgit tui [RUN]` shows runs, the history of one of them, its scores, and the event under the cursor. The tables of
keys below are made from the keymap by `tests/tui/test_keymap.py`; `?` shows those that hold where you are.

![History: runs, events, scores, and the event under the cursor](images/history.png)

- **History**: the panes have numbers. Detail has the tabs Diff, Edits, Items, Trace and Message; the first is
  the whole text for `v0`, and the run in short for the end of a run. Below 100 columns one pane is shown at a time; 60
  by 16 is the smallest terminal that it is made for.
- **Compare**: `w` marks an event, `c` compares it with the one under the cursor, `b` compares that with its base.
- **Item**: `enter` on an item shows it over all versions, with two trajectories side by side.
- **A run and its versions**: a run that is over opens on itself in short: scores with intervals, gate, models, cost,
  settings that are no defaults, and the rules that training brought. `r` shows that at any time. `t` shows the whole
  text of a version with where each line comes from; `enter` on a line says why it is there, and once more shows the
  event. `m` shows items by versions, `$` the cost, `s` the settings: all as the command at the right end of the first
  line prints it. `left` and `right` move what is wider than the screen.
- **Runs**: in their pane `w` marks runs, whose curves are then drawn over each other, `a` plots by step, paid call or
  dollar, `O` sorts, and `/` filters like `skillgit runs --filter`.
- **Live**: `L` watches the run that is trained, be it the one under the cursor or another; below there is more on it.
- What changes refs or files or may cost money asks first and shows the command, which is then run as a process of its
  own; of one that may ask models it says what that [costs](costs.md). `@` shows what was run, with its output, and how
  long it has taken; `:` runs any other command.
- `P` and `p` push and pull; where there are several remotes, they ask for one. `E` writes a version elsewhere, `A` puts
  it where an agent looks for skills, `C` notes something on it for later steps, `H` writes its run as an HTML page.
- The mouse chooses a row with a click and opens it with two; its right button opens the palette, where everything that
  can be done here has its key.
- The plot of a run of more than 400 steps shows every so many-th of them, and says which.
- The history is read from the index page by page, and again when a ref moves: a run that is being trained shows as it
  goes on.

The filter (`/`) understands the tokens `{TOKENS}`, as in `event:rejected score>.6 step:3-9 edit:delete after:2h`. All
other words are looked up in titles, reasons and texts; `run:all` shows the events of all runs.

A candidate whose evaluation ended early is known as no higher than a bound, `≤.6000`. A comparison has three answers
for it: yes, no and unknown; the filter lists an event where the answer is yes. So `score<.7` and
`score<=.6` list that candidate, because they hold for every score that it could have had, and `score<.6`,
`score>.5`, `score=.6` and a range such as `score:.5-.6` do not. The plot draws it as `≤`, which is no point of the
curve.

![Compare: two versions side by side, and the steps that brought the rules](images/compare.png)

Where more than the text differs, a line above the scores says what, and no test is made (see
[What is compared](method.md#what-is-compared)). The tab *Edits* of an event ends with the edits that were chosen and
not applied, each with its reason.

![Item: one item over all versions, and two trajectories of it](images/item.png)

The light theme (`^t`):

![History in light colours](images/history-light.png)

## Watching a run

`skillgit train CONFIG --tui` starts the training as a process of its own and watches it; `L` in the history watches
any run that a process of this machine trains. The screen shows where the run is, its budget and the process, how much
of the whole run is done and the time that is left, slow updates and final tests included; the stages of the step;
what fails now, by the type of the items and the reason that the scorer gives, without quoted words and numbers; and
the events as they land. `enter` opens one. Of a run that no process works on any more it says what the ledger holds
for an event that is not recorded yet.

Three lines are about calls and money: what the run has cost, against its caps; what it will have cost at its end, at
the pace of this process; and the pace: calls per second, how long one takes, what an hour costs, and how many were
refused, failed or were tried again. What is near a cap, or will be beyond it, stands out.

From 30 lines on a curve shows the scores by step, with the signs of the events, a line for the best score so far, and
room for the steps to come. It grows with the terminal. A candidate that was refused before it was measured in full
has `≤` at the highest score that it could have had. Less high terminals show the scores of versions as bars.

The screen only looks. `q` closes it and training goes on: no key and no closed terminal reaches the trainer, nor does
Ctrl-C. The same holds for every command that changes anything and is started with a key or with `:`. `@` lists the
last 100 of them from all sessions with what they print and what they exited with, also those that were started on a
page of `skillgit serve`; their files are in `skillgit/commands` in git's folder. `K` asks the trainer, after a
question, to stop once its step is written; pressed again, to stop after the calls in flight, as Ctrl-C does where
`skillgit train` runs without a screen. Either way the trainer exits with 130, nothing is lost, and the screen names the
command that goes on. When training ends while its screen is open, the screen stays; closing it prints what the trainer
said, and `skillgit` exits with the trainer's code. Closed before, it exits with 0.

The trainer says how far it is in `skillgit/run-RUN.progress` in git's folder, two or three times a second at most and
without credentials; `run-RUN.stop` beside it is the request to stop. One that was killed is shown as stopped without a
word.

![Live: stages, what fails now, and the events as they land](images/live.png)

`skillgit tui A..B` begins with the comparison of two versions.

## In a browser

The screens need a terminal; [`skillgit serve`](serve.md) shows the same history on pages in a browser, also over ssh:
`ssh -L 7421:127.0.0.1:7421 HOST` and there `skillgit serve`.

The pictures of this document are made by `python tests/pictures.py build/demo docs/images` from the repository of
`make demo`; that needs Debian's `chromium`.

## Settings

`git config skillgit.tui.keymap.ID KEYS` binds other keys, separated by spaces or commas; in IDs a hyphen stands for an
underscore, since git knows no underscores there. `git config skillgit.tui.theme` is `dark` or `light`. `--ascii` draws
without special signs. Model text is never interpreted: control characters are written out.

```sh
git config skillgit.tui.keymap.history.compare d
git config skillgit.tui.keymap.list.page-down "ctrl+f pagedown"
```

## Keys
"""


def document() -> str:
    lines = [HEAD]
    told: set[str] = set()
    for place, title in PLACES.items():
        rows = [key for key in keymap.at(place) if key.id not in told]
        told |= {key.id for key in rows}
        if rows:
            lines += [f"### {title}\n", "| key | id | does |", "|---|---|---|"]
            lines += [f"| {keys(key)} | `{key.id}` | {key.label} |" for key in rows]
            lines.append("")
    return "\n".join(lines)


def keys(key: keymap.Key) -> str:
    return " ".join(f"`{keymap.shown(one)}`" for one in key.keys)


def test_the_document_lists_every_key():
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(document(), encoding="utf-8")
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == document(), "run UPDATE_DOCS=1 pytest tests/tui/test_keymap.py"
    assert all(f"`{key.id}`" in text for key in keymap.KEYS)


def test_ids_are_names_that_git_can_hold():
    assert len(keymap.BY_ID) == len(keymap.KEYS)
    for key in keymap.KEYS:
        assert re.fullmatch(r"skillgit\.tui\.keymap\.[a-z]+\.[a-z0-9-]+", key.setting)


@pytest.mark.parametrize("places", [("app", "history", "list", "tabs"), ("app", "compare", "tabs", "diff", "find")])
def test_no_two_keys_of_a_screen_are_the_same(places):
    bound: dict[str, str] = {}
    overlapping = {"list.open", "compare.open"}
    for key in keymap.at(*places):
        for one in key.keys:
            assert bound.get(one) is None or {key.id, bound[one]} == overlapping, (one, key.id, bound.get(one))
            bound[one] = key.id


def test_defaults_work_in_every_terminal():
    for key in keymap.KEYS:
        for one in key.keys:
            assert not one.startswith(("alt+", "ctrl+shift+")), key.id
    usual = {key.id: [one for one in key.keys if not re.fullmatch(r"f\d+", one)] for key in keymap.KEYS}
    assert all(usual.values()), "function keys are extras"


def test_keys_have_the_names_that_textual_gives_them():
    for name, sign in keymap._SIGNS.items():
        if len(sign) == 1:
            assert _character_to_key(sign) == name


def test_a_user_binds_other_keys_by_id():
    found = keymap.rebound(
        {"skillgit.tui.keymap.history.compare": "d", "skillgit.tui.keymap.list.page-down": "ctrl+f ^n, ?"}
    )
    assert found == {"history.compare": "d", "list.page_down": "ctrl+f,ctrl+n,question_mark"}
    assert keymap.rebound({"skillgit.tui.keymap.history.mark": "  "}) == {}


def test_what_is_in_force_is_what_users_bound():
    told = {key.id: keys for key, keys in keymap.in_force({"history.compare": "d,ctrl+k"})}
    assert told["history.compare"] == ("d", "^k")
    assert told["app.help"] == ("?",)


@given(st.lists(st.sampled_from([one for key in keymap.KEYS for one in key.keys]), min_size=1))
def test_what_help_shows_can_be_written_into_the_configuration(names):
    assert keymap.read_keys(" ".join(map(keymap.shown, names))) == tuple(names)

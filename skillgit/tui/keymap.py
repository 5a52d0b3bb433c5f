"""All keys as data: stable ids, the keys they are bound to, and where they hold; help and documents are made of it.

An id is a contract: users bind other keys to it. ``history.compare`` calls ``action_history_compare`` of the nearest
widget, screen or app that has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from textual.binding import BindingType

Place = Literal["app", "history", "list", "wide", "find", "tabs", "diff", "items", "compare",
                "item", "event", "printed", "live", "drafts", "dialog"]  # fmt: skip
"""Where a key holds."""

SETTING: Final = "skillgit.tui.keymap"
"""What the keys of git's configuration begin with that bind other keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One thing that can be done with a key; without a ``footer`` the line at the bottom does not show it."""

    id: str
    keys: tuple[str, ...]
    label: str
    contexts: tuple[Place, ...]
    footer: str = ""

    @property
    def action(self) -> str:
        return self.id.replace(".", "_")

    @property
    def setting(self) -> str:
        """The key of git's configuration that binds other keys to it; git's names have no underscores."""
        return f"{SETTING}.{self.id.replace('_', '-')}"


def _key(name: str, keys: str, label: str, *scopes: Place, footer: str = "") -> Key:
    return Key(id=name, keys=tuple(keys.split()), label=label, contexts=scopes, footer=footer)


KEYS: Final = (
    _key("app.quit", "q ctrl+q", "Quit", "app", footer="quit"),
    _key("app.help", "question_mark", "Help on keys", "app", footer="help"),
    _key("app.palette", "ctrl+p", "Command palette", "app"),
    _key("app.refresh", "R f5", "Read history again", "app"),
    _key("app.theme", "ctrl+t", "Light or dark", "app"),
    _key("command.prompt", "colon", "Run a skillgit command", "app", footer="command"),
    _key("command.log", "at", "Commands that were run", "app"),
    _key("remote.push", "P", "Push to another repository", "app"),
    _key("remote.pull", "p", "Pull from another repository", "app"),
    _key("drafts.open", "D", "Review drafts of tasks", "app"),
    _key("pane.1", "1", "Runs", "history"),
    _key("pane.2", "2", "History", "history"),
    _key("pane.3", "3", "Scores", "history"),
    _key("pane.main", "0", "Detail", "history"),
    _key("pane.next", "tab", "Next pane", "history", "live"),
    _key("pane.prev", "shift+tab", "Previous pane", "history", "live"),
    _key("pane.grow", "plus", "Make the pane larger", "history"),
    _key("pane.shrink", "underscore", "Make the pane smaller", "history"),
    _key("tab.next", "right_square_bracket", "Next tab", "tabs", footer="next tab"),
    _key("tab.prev", "left_square_bracket", "Previous tab", "tabs"),
    _key("list.down", "j down", "Down", "list"),
    _key("list.up", "k up", "Up", "list"),
    _key("list.top", "g home less_than_sign", "First line", "list"),
    _key("list.bottom", "G end greater_than_sign", "Last line", "list"),
    _key("list.page_down", "ctrl+d pagedown", "Page down", "list"),
    _key("list.page_up", "ctrl+u pageup", "Page up", "list"),
    _key("list.open", "enter", "Open", "list", "live", footer="open"),
    _key("wide.left", "left", "To the left", "wide"),
    _key("wide.right", "right", "To the right", "wide"),
    _key("find.open", "slash", "Filter or search", "history", "find", footer="find"),
    _key("find.next", "n", "Next hit", "history", "find"),
    _key("find.prev", "N", "Previous hit", "history", "find"),
    _key("history.mark", "w", "Mark for comparison", "history", footer="mark"),
    _key("history.compare", "c", "Compare with the marked one", "history", footer="compare"),
    _key("history.compare_base", "b", "Compare with its base", "history", footer="with base"),
    _key("history.compare_best", "B", "Compare seed with best", "history", footer="seed with best"),
    _key("history.toggle_rejected", "x", "Show or hide rejected", "history", footer="rejected"),
    _key("history.toggle_slow", "o", "Show or hide slow updates", "history"),
    _key("history.graph", "ctrl+g", "Show or hide the graph", "history"),
    _key("history.use", "U", "Make the run the default run", "history", footer="use"),
    _key("runs.sort", "O", "Sort the runs", "history", footer="sort"),
    _key("plot.axis", "a", "Plot by step, paid call or dollar", "history", footer="axis"),
    _key("run.summary", "r", "The run in short", "history", "event", footer="in short"),
    _key("version.text", "t", "Whole text, with each line's origin", "history", "event", footer="text"),
    _key("run.items", "m", "Items by versions", "history", "event", footer="items"),
    _key("run.cost", "dollar_sign", "What the run has cost", "history", "event", footer="cost"),
    _key("run.settings", "s", "Settings of the run", "history", "event"),
    _key("version.checkout", "space", "Check out", "history", "event", footer="checkout"),
    _key("version.fork", "F", "Fork a run from it", "history", "event"),
    _key("version.revert", "V", "Make its text the newest version", "history", "event"),
    _key("version.promote", "M", "Promote to the trunk", "history", "event"),
    _key("version.evaluate", "T", "Measure it on the test split", "history", "event"),
    _key("version.export", "E", "Write it elsewhere, without git", "history", "event"),
    _key("version.adopt", "A", "Put it where an agent looks", "history", "event"),
    _key("version.note", "C", "Note on it, for later steps", "history", "event"),
    _key("run.report", "H", "Write its run as an HTML page", "history", "event"),
    _key("evidence.open", "e", "Evidence", "history", "event", footer="evidence"),
    _key("copy.menu", "y", "Copy", "history", "compare", "item", "event", "printed", "drafts", footer="copy"),
    _key("editor.open", "i", "Read the skill in the editor", "history", "event"),
    _key("pager.open", "l", "Read the event in the pager", "history", "event"),
    _key("live.open", "L", "Watch the run that is trained", "history"),
    _key("diff.word", "W", "Words or whole lines", "diff", footer="words"),
    _key("diff.side", "S", "Side by side", "diff", footer="side by side"),
    _key("diff.more", "right_curly_bracket", "More context", "diff"),
    _key("diff.less", "left_curly_bracket", "Less context", "diff"),
    _key("diff.next", "J", "Next hunk", "diff", footer="next hunk"),
    _key("diff.prev", "K", "Previous hunk", "diff"),
    _key("items.filter", "f", "Only fixed, broken, … items, in turn", "items", footer="filter"),
    _key("compare.next", "tab", "Next view", "compare", footer="next view"),
    _key("compare.prev", "shift+tab", "Previous view", "compare"),
    _key("compare.swap", "s", "Swap sides", "compare", footer="swap"),
    _key("compare.open", "enter", "Open the item", "compare"),
    _key("item.earlier", "left h", "Earlier version, or draft", "item", "drafts", footer="earlier"),
    _key("item.later", "right l", "Later version, or draft", "item", "drafts", footer="later"),
    _key("draft.accept", "a", "Accept", "drafts", footer="accept"),
    _key("draft.edit", "e", "Edit", "drafts", footer="edit"),
    _key("draft.drop", "d", "Drop", "drafts", footer="drop"),
    _key("draft.undo", "u", "Take back", "drafts", footer="undo"),
    _key("live.follow", "f", "Follow the newest event, or stay", "live", footer="follow"),
    _key("live.stop", "K", "Stop after this step", "live", footer="stop after this step"),
    _key("live.close", "q ctrl+q", "Close; training goes on", "live", footer="close"),
    _key(
        *("screen.close", "q", "Back to the screen before"),
        *("compare", "item", "event", "printed", "drafts"),
        footer="close",
    ),
    _key("screen.back", "escape", "Back", "history", "compare", "item", "event", "printed", "live", "drafts", "dialog"),
)
"""Every key, in the order in which help lists them."""

BY_ID: Final[Mapping[str, Key]] = {key.id: key for key in KEYS}


PINNED: Final = ("app.help", "command.prompt")
"""What the line of keys always has at its right end, before the way out."""
WAYS_OUT: Final = ("live.close", "screen.close", "app.quit")
"""What leads out, the nearest first; the line of keys ends with the first one that holds."""
FIRST: Final[Mapping[str, tuple[str, ...]]] = {
    "runs": (
        "list.open",
        "history.mark",
        "history.compare_best",
        "runs.sort",
        "find.open",
        "run.summary",
        "plot.axis",
        "run.cost",
        "history.use",
    ),
    "events": (
        *("history.mark", "history.compare", "history.compare_best", "find.open", "version.text", "run.items"),
        *("run.summary", "history.compare_base", "history.toggle_rejected", "version.checkout", "evidence.open"),
        *("copy.menu", "drafts.open"),
    ),
    "card": (
        *("draft.accept", "draft.edit", "draft.drop", "draft.undo", "item.later", "item.earlier"),
        *("find.open", "copy.menu"),
    ),
    "scores": ("plot.axis", "run.summary", "run.items", "run.cost"),
    "detail": ("tab.next", "find.open", "diff.next", "diff.side", "diff.word", "version.text", "copy.menu"),
}
"""What has the focus, by its id, to what the line of keys shows then, as far as there is room."""


def at(*scopes: Place) -> tuple[Key, ...]:
    return tuple(key for key in KEYS if set(scopes) & set(key.contexts))


_BEFORE_THE_NEXT: Final = frozenset({"find.open"})
"""What takes effect before the next key is handed to anybody: the keys after it are text, however soon they come."""


def bindings(*scopes: Place) -> list[BindingType]:
    """Return the bindings of a widget or screen for ``scopes``, each with the id that users bind other keys to."""
    from textual.binding import Binding  # noqa: PLC0415 - the documents are made without it

    return [
        Binding(
            ",".join(key.keys),
            key.action,
            key.footer or key.label,
            show=bool(key.footer),
            id=key.id,
            tooltip=key.label,
            key_display=shown(key.keys[0]),
            priority=key.id in _BEFORE_THE_NEXT,
        )
        for key in at(*scopes)
    ]


_SIGNS: Final = {
    "question_mark": "?",
    "colon": ":",
    "at": "@",
    "plus": "+",
    "underscore": "_",
    "dollar_sign": "$",
    "slash": "/",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "right_curly_bracket": "}",
    "left_curly_bracket": "{",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def shown(key: str) -> str:
    """Return a key as people write it: ``?``, ``^p``, ``esc``."""
    return _SIGNS.get(key, key.replace("ctrl+", "^"))


def read_keys(text: str) -> tuple[str, ...]:
    """Return the keys that a user wrote for an id, signs by Textual's names: ``?, ctrl+k``."""
    names = {sign: name for name, sign in _SIGNS.items()}
    parts = text.split() if text.strip() == "," else text.replace(",", " ").split()
    return tuple(names.get(part, part.replace("^", "ctrl+") if len(part) > 1 else part) for part in parts)


def rebound(settings: Mapping[str, str]) -> dict[str, str]:
    """Return id to the keys that users bound it to in git's configuration, as Textual takes them."""
    overrides = {key.id: read_keys(settings.get(key.setting, "")) for key in KEYS}
    return {name: ",".join(keys) for name, keys in overrides.items() if keys}


def in_force(overrides: Mapping[str, str]) -> Iterable[tuple[Key, tuple[str, ...]]]:
    """Yield every key with the keys that do it under ``overrides``, as people write them."""
    for key in KEYS:
        keys = overrides[key.id].split(",") if key.id in overrides else key.keys
        yield key, tuple(shown(name) for name in keys)

"""Items, and what happened when the target model worked on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from skillgit.domain.ids import check_item_id, digest
from skillgit.errors import DataError

if TYPE_CHECKING:
    from skillgit.domain.evaluation import Outcome

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One task of an environment; a DataError if its id is none, or its content cannot be written as JSON.

    Attributes:
        content: Everything that the environment knows of it, gold included, as JSON values.
        group: What it comes from, such as a session of use; items of one group are never divided. Not part of the
            digest, for it says nothing of the task. Empty for an item without a group.
    """

    id: str
    content: Mapping[str, object]
    task_type: str = "default"
    group: str = ""
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        check_item_id(self.id)
        try:
            identity = digest(self.content)[:16]
        except ValueError:
            raise DataError(
                f"item '{self.id}' has a number that JSON cannot write, such as NaN or 1e400",
                hint="write a finite number, or leave it out",
            ) from None
        object.__setattr__(self, "digest", identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call of the target; ``arguments`` is the JSON text that it wrote."""

    name: str
    arguments: str


_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def media_type_of(content: bytes) -> str:
    """Return what a picture is by its first bytes; empty for one that cannot be shown, such as SVG."""
    return next((kind for beginning, kind in _BEGINNINGS.items() if content.startswith(beginning)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture that was shown. Its bytes belong to the data and stay there.

    Attributes:
        digest: The first 16 digits of the SHA-256 of its bytes.
        media_type: For example ``image/png``.
        size: Of the file in bytes.
    """

    digest: str
    media_type: str
    size: int

    @property
    def text(self) -> str:
        return f"[picture {self.digest[:8]}, {self.media_type.removeprefix('image/')}, {-(-self.size // 1000)} kB]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation.

    Attributes:
        content: The words. What a tool brought is the content of a turn of the role ``tool``.
        tool_calls: The tools that are asked for after them.
        pictures: What is shown after them.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolUse, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def text(self) -> str:
        """All of it in words, a line for each tool call and each picture."""
        calls = (f"[{call.name} {call.arguments}]" for call in self.tool_calls)
        return "\n".join(filter(None, (self.content, *calls, *(picture.text for picture in self.pictures))))

    @property
    def row(self) -> dict[str, object]:
        """The turn as JSON values; a turn of words alone is a role and a content."""
        row: dict[str, object] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            row["tool_calls"] = [{"name": call.name, "arguments": call.arguments} for call in self.tool_calls]
        if self.pictures:
            row["pictures"] = [asdict(picture) for picture in self.pictures]
        return row

    @classmethod
    def read(cls, row: Mapping[str, object]) -> Turn:
        """Return the turn that ``row`` is; what a stranger's row lacks or spells otherwise is empty."""
        return cls(
            role=cast("Role", _text(row, "role")),
            content=_text(row, "content"),
            tool_calls=tuple(
                ToolUse(name=_text(call, "name"), arguments=_text(call, "arguments"))
                for call in _rows(row, "tool_calls")
            ),
            pictures=tuple(
                Picture(digest=_text(entry, "digest"), media_type=_text(entry, "media_type"), size=size)
                for entry in _rows(row, "pictures")
                for size in (entry.get("size"),)
                if isinstance(size, int)
            ),
        )


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _rows(row: Mapping[str, object], key: str) -> list[dict[str, object]]:
    value = row.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """What happened on one item.

    Attributes:
        turns: The conversation after the system prompt, in order. The system prompt holds the skill and is the same for
            all items of a rollout, so that it is not repeated here.
        answer: The final answer as the scorer read it.
        feedback: Why the answer got its score, in words that the optimizer may read.
        products: Files that were made, path to bytes, for the scorer; they are not recorded.
    """

    item_id: str
    turns: tuple[Turn, ...]
    answer: str
    feedback: str = ""
    products: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One item with its trajectory and outcome; an item that failed to evaluate has no trajectory."""

    item: Item
    trajectory: Trajectory | None
    outcome: Outcome

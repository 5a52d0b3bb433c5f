"""What the environments of this package share; a plug-in of someone else needs the contract alone, not this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from inspect import getfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.evaluation import Split
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError, EnvironmentFaultError
from skillgit.files import read_plain
from skillgit.plugin.card import RowField, row_fields
from skillgit.plugin.data_rows import Row, read_each, text_field, text_or_blanks
from skillgit.plugin.environment import CallBounds, EnvironmentInfo, option_values
from skillgit.plugin.seed_folder import read_skill
from skillgit.plugin.skill_marks import marked
from skillgit.plugin.splits import Splits, load_splits

if TYPE_CHECKING:
    from skillgit.sandbox import Sandbox


class PromptWording(StrEnum):
    """In which words the target is asked."""

    OWN = "own"
    REFERENCE = "reference"
    """For the same things in the same order as the reference implementation asks; the words are ours."""


@cache
def prompt_file(place: str | Path, name: str, wording: PromptWording = PromptWording.OWN) -> str:
    """Return the text of ``prompts/<name>.md`` in a folder, or a package's, or of ``prompts/reference/<name>.md``."""
    folder = (files(place) if isinstance(place, str) else place) / "prompts"
    folder = folder if wording is PromptWording.OWN else folder / wording
    return (folder / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


USER = "\n\n[user]\n\n"
"""What divides a prompt file into the system prompt and the user's turn, with ``{question}`` in the place of the item.

What changes comes last, so that a provider's cache serves the rest; and a small model keeps to the form of an answer
that ends the turn, not to one that only the system prompt names.
"""


def in_turns(prompt: str) -> tuple[str, str]:
    """Return the system prompt and the user's turn of a prompt file; a file without one asks the question as it is."""
    before, mark, turn = prompt.partition(USER)
    return before, turn if mark else "{question}"


def with_skill(prompt: str, skill: Skill, wording: PromptWording = PromptWording.OWN) -> str:
    """Return ``prompt`` with the skill, without its frontmatter, for ``{skill}``; a blank one is left out."""
    text = skill.document[len(frontmatter(skill.document)) :].strip()
    if wording is PromptWording.REFERENCE:
        return prompt.replace("{skill}", f"## Skill\n{text}\n\n" if text else "").rstrip("\n")
    return prompt.replace("{skill}", marked(skill.name, text)) if text else prompt.replace("{skill}", "").strip("\n")


def sections(**texts: str) -> str:
    return "\n\n".join(f"## {name.replace('_', ' ').capitalize()}\n{text}" for name, text in texts.items() if text)


def read_again(path: Path, name: object = None, hint: str = "check the folder", most: int | None = None) -> bytes:
    """Return the bytes of a file that was there when the items were read."""
    try:
        return read_plain(path, most=most, follow=True)
    except OSError as error:
        raise EnvironmentFaultError(f"{name or path} cannot be read: {error.strerror}", hint=hint) from error


def require(where: str, environment: str, values: Mapping[str, object]) -> None:
    """Refuse a row that has nothing in one of its fields."""
    for name, value in values.items():
        if not value:
            raise DataError(f"{where} has no {name}", hint=fields_hint(environment))


def mapped(row: Row, fields: Mapping[str, RowField], environment: str) -> dict[str, Any]:
    """Return the content of an item, as a card's ``rows`` say; a DataError if a row lacks what it has to have."""
    content: dict[str, Any] = {}
    for name, field in fields.items():
        value = _value(row, field) or (row.name if name == "id" else "")
        content[name] = value if value or field.default in (None, []) else field.default
        if not value and field.default is None:
            raise DataError(f"{row.where} has no {field.names[0]}", hint=fields_hint(environment))
    return content


def _value(row: Row, field: RowField) -> object:
    match field.kind:
        case "list":
            value = row.fields.get(field.names[0])
            return [str(entry) for entry in value] if isinstance(value, list) else []
        case "blanks":
            return text_or_blanks(row.where, row.fields, field.names[0])
        case _:
            return text_field(row.where, row.fields, *field.names)


def fields_hint(environment: str) -> str:
    return f"skillgit plugins {environment} lists the fields of an item"


class ShippedEnvironment(ABC):
    """An environment whose prompts and seed skill are next to its file, or in the folder of its name in here.

    A subclass has ``info``, ``digest``, ``rollout`` and ``score`` (:class:`skillgit.plugin.environment.Environment`).
    """

    info: EnvironmentInfo

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        self._options = option_values(self.info, options)
        self._root = root

    def _text(self, name: str) -> str:
        """Return an option as a text."""
        return str(self._options[name])

    @abstractmethod
    def _load(self) -> Splits:
        """Return the items that the options name, or those that come with the environment."""

    @cached_property
    def _splits(self) -> Splits:
        return self._load()

    def items(self, split: Split) -> Sequence[Item]:
        return self._splits[split]

    def seed_skill(self) -> Skill:
        return read_skill(self._folder / "skills" / self.info.name)

    def taxonomy(self) -> str:
        return self._prompt_file("taxonomy")

    def target_prompt(self) -> str:
        """Return the system prompt and the user's turn, with ``{skill}`` and ``{question}`` in their places."""
        return self._prompt_file("system")

    @cached_property
    def _folder(self) -> Path:
        own = Path(getfile(type(self))).parent
        return own if (own / "prompts").is_dir() else Path(__file__).parent / self.info.name

    def _prompt_file(self, name: str, wording: PromptWording = PromptWording.OWN) -> str:
        return prompt_file(self._folder, name, wording)


class PackagedEnvironment(ShippedEnvironment):
    """An environment that reads rows of data, which come with it unless the options name others.

    Rows become items by the ``rows`` of its card, and by ``item`` where these do not say all.
    """

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._wording = PromptWording(str(self._options.get("prompts", PromptWording.OWN)))

    def call_bounds(self, item: Item) -> CallBounds:
        """Return how many calls a rollout takes: one for each reply of the target, and those of the judge."""
        verdicts = self._verdicts(item)
        return CallBounds(target=(1, self._most_replies), judge=(0, verdicts), repairs=verdicts)

    def _verdicts(self, item: Item) -> int:
        """Return how often a judge is asked about one answer at most."""
        del item
        return 0

    @property
    @abstractmethod
    def _most_replies(self) -> int:
        """How often the target replies at most."""

    def _read(self, files: Sequence[Path]) -> Sequence[Item]:
        """Return the items of data files."""
        rows = row_fields(self._folder)

        def items_of(row: Row, path: Path) -> Iterator[Item]:
            item = self.item(row, mapped(row, rows, self.info.name), path.parent)
            yield from () if item is None else (item,)

        return read_each(files, items_of)

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        """Return the item of a row, or None to leave it out; ``content`` is what the card's ``rows`` make of it.

        The row is in a data file in ``folder``. An ``id`` and a ``task_type`` in ``content`` are those of the item.
        """
        del row, folder
        return Item(id=content.pop("id"), task_type=content.pop("task_type", "default"), content=content)

    def _load(self) -> Splits:
        return load_splits(self._options, self._root, self._folder / "data", self._read)

    @cached_property
    def _sandbox(self) -> Sandbox:
        """Where programs of this environment run, as ``env.sandbox`` says."""
        from skillgit.sandbox import Mode, Sandbox  # noqa: PLC0415 - slow to import, and most environments need none

        return Sandbox(Mode(self._text("sandbox")))

    @property
    def _brings_data(self) -> bool:
        """Whether the options name data, in place of those that come with the environment."""
        return bool(self._options["data_path"] or self._options["split_dir"])

    def target_prompt(self) -> str:
        return self._prompt_file("system", self._wording)

    def _system(self, skill: Skill) -> str:
        return with_skill(in_turns(self.target_prompt())[0], skill, self._wording)

    def _turn(self, question: str) -> str:
        """Return what the target is asked about an item: ``question``, and the form of the answer behind it."""
        return in_turns(self.target_prompt())[1].replace("{question}", question)

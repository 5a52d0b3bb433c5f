"""What the target reads: a system prompt with the skill and the form of a result, then the files and the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from skillgit.errors import DataError
from skillgit.plugin.backend import Message, Text, system
from skillgit.sandbox.tools import DOCUMENTS
from skillgit_envs.prompt_files import prompt_file, with_skill

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit_envs.tasks.attachments import Attachments, Listed

FORMS: Mapping[str, str] = {
    "whole": "Your whole reply is taken as the result.",
    "tag": "Give the result, and nothing else, between <answer> and </answer>.",
    "last_line": "Give the result, and nothing else, on the last line of your reply.",
    "json": "Give the result as JSON in a block of code at the end of your reply.",
    "code": "Give the result in a block of code at the end of your reply.",
}
"""How a result is taken out of a reply, to what the target is told of it."""
LOOK = "Use the tools to look into these files: {}"
RUN = "Python finds them in the folder {}. Files that you write beside it are handed in with your result."


def messages(item: Item, skill: Skill, attachments: Attachments, tools: str) -> tuple[Message, ...]:
    """Return the conversation that a rollout begins with.

    Raises:
        EnvironmentFaultError: A file has gone or changed since the items were read.
    """
    prompt = prompt_file(__package__, "system").replace("{form}", FORMS[str(item.content["extract"])])
    pictures = [attachments.picture(entry) for entry in listed(item, "images")]
    texts = [*_about_files(item, attachments, tools), str(item.content["prompt"])]
    question = Message(role="user", parts=(Text(text="\n\n".join(texts)), *pictures))
    return system(with_skill(prompt, skill)), question


def listed(item: Item, name: str) -> Listed:
    """Return the files of an item that are under ``name``."""
    return cast("Listed", item.content[name])


def _about_files(item: Item, attachments: Attachments, tools: str) -> list[str]:
    files = listed(item, "files")
    if tools == "none":
        return [f'<file name="{entry["name"]}">\n{attachments.read(entry).decode()}\n</file>' for entry in files]
    look = LOOK.format(", ".join(entry["name"] for entry in files)) if files else ""
    return list(filter(None, (look, RUN.format(DOCUMENTS) if tools == "python" else "")))


def check_readable(items: Sequence[Item], attachments: Attachments) -> None:
    """Check that the files of ``items`` can be shown as text.

    Raises:
        DataError: One is no UTF-8.
    """
    for item in items:
        for entry in listed(item, "files"):
            try:
                attachments.read(entry).decode()
            except UnicodeDecodeError as error:
                raise DataError(
                    f"item {item.id}: {entry['name']} is no text, so that the target cannot read it",
                    hint="list pictures under 'images', or set env.tools to python",
                ) from error

"""What the target does on one task: it is asked once, or works with tools in the sandbox until it is done."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Trajectory
from skillgit.plugin.skill_folder import write_files
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.tools import NAMES, SandboxTools
from skillgit_envs.tasks.extraction import EXTRACTORS
from skillgit_envs.tasks.prompt import listed, messages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Target
    from skillgit.sandbox import Limits, Sandbox
    from skillgit.sandbox.conversation import Conversation
    from skillgit_envs.tasks.attachments import Attachments

TOOLS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "read": tuple(name for name in NAMES if name != "python"),
    "python": NAMES,
}
"""What ``env.tools`` says, to the tools on offer."""


class NoTools:
    """A toolbox without tools."""

    tools = ()

    async def execute(self, call: object) -> str:
        """Answer a call that nobody offered."""
        del call
        return "error: there are no tools"


async def ask(item: Item, skill: Skill, target: Target, attachments: Attachments) -> Trajectory:
    """Ask the target once.

    Raises:
        BackendError: The call failed for good.
        EnvironmentFaultError: A file of the item cannot be read.
    """
    return _trajectory(item, await converse(target, messages(item, skill, attachments, "none"), NoTools(), 1))


async def work(
    item: Item,
    skill: Skill,
    target: Target,
    attachments: Attachments,
    *,
    tools: str,
    max_turns: int,
    sandbox: Sandbox,
    limits: Limits,
) -> Trajectory:
    """Let the target work with tools over the files of the item; what Python writes are the trajectory's products.

    Raises:
        BackendError: A call failed for good.
        EnvironmentFaultError: The sandbox failed, or a file of the item cannot be read.
    """
    async with _laid_out(item, attachments) as folder:
        toolbox = SandboxTools(sandbox=sandbox, documents=folder, offered=TOOLS[tools], limits=limits)  # type: ignore[arg-type]
        conversation = await converse(target, messages(item, skill, attachments, tools), toolbox, max_turns)
    return replace(_trajectory(item, conversation), products=toolbox.files)


def _trajectory(item: Item, conversation: Conversation) -> Trajectory:
    answer = EXTRACTORS[str(item.content["extract"])](conversation.text)
    return Trajectory(item_id=item.id, turns=conversation.turns, answer=answer)


@asynccontextmanager
async def _laid_out(item: Item, attachments: Attachments) -> AsyncIterator[Path | None]:
    """Put the files of an item into a folder of their own; None if it has none."""
    files = listed(item, "files")
    if not files:
        yield None
        return
    with TemporaryDirectory(prefix="skillgit-task-") as name:
        folder = Path(name) / "files"
        yield await asyncio.to_thread(_write, folder, {entry["name"]: attachments.read(entry) for entry in files})


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write ``files`` into the new folder ``folder`` and return its real path."""
    write_files(folder, files)
    # The user that jobs run as has to be able to look.
    for path in (folder.parent, folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder.resolve()

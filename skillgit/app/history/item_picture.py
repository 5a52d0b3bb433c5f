"""A picture that an item showed to the target, from the data of its run, for whoever looks at a trajectory."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillgit.app.setup.run_setup import recorded_config
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.evaluation import Split
from skillgit.errors import NotFoundError, SkillgitError
from skillgit.plugin.environment import ShowsPictures
from skillgit.plugin.registry import find_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.workspace.context import Context
    from skillgit.plugin.backend import Image

RASTER: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""How the files that are shown begin; one that says of itself that it is something else, or SVG, is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPicture:
    media_type: str  # as its bytes say, not as the data do
    content: bytes


def item_picture(context: Context, run: str, item: str, digest: str) -> ItemPicture:
    """Return the picture with ``digest`` of a selection item; a NotFoundError if the run's data are not here."""
    try:
        images = list(_images(context, run, item))
    except NotFoundError:
        raise
    except SkillgitError as error:
        raise NotFoundError(f"the data of run {run} are not here: {error}", hint=error.hint) from error
    content = next((base64.b64decode(image.data) for image in images if image.picture.digest == digest), b"")
    media_type = next((kind for beginning, kind in RASTER.items() if content.startswith(beginning)), "")
    if not media_type:
        raise NotFoundError(f"item {item} has no picture {digest[:8]} that can be shown", hint="its data have changed")
    return ItemPicture(media_type=media_type, content=content)


def _images(context: Context, run: str, item: str) -> Iterator[Image]:
    with open_workspace(context) as workspace:
        name = find_run(workspace, run)
        # of a stranger's run only what such a run may set
        config = recorded_config(context, workspace, name, ())
    environment = find_environment(config.values.env.name, config.root).cls(config.options, config.root)
    if isinstance(environment, ShowsPictures):
        for entry in environment.items(Split.SELECTION):
            if entry.id == item:
                yield from environment.pictures(entry)

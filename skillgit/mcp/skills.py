"""The skills extension of the protocol (SEP-2640): trained skills, listed and read as agents load them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from anyio.to_thread import run_sync
from mcp.server.extension import Extension, MethodBinding
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PaginatedRequestParams, RequestParams, Resource, ResourceTemplate

from skillgit.app.deliver.requests import SCHEME, ExportRequest
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import UsageError
from skillgit.verbs.deliver import SERVED_FILE, SERVED_SKILLS

TEMPLATE: Final = ResourceTemplate(
    uri_template=f"{SCHEME}{{+path}}",
    name="skill",
    description="A file of a trained skill: NAME/SKILL.md as it is in use, RUN/v7/NAME/SKILL.md of a version.",
)
_RESULT: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}  # a run may be trained meanwhile


class GetSkillParams(RequestParams):
    uri: str


class SkillsExtension(Extension):
    """Serves each trained skill as it was promoted last, else its best version, and by a revision any version.

    ``explaining`` makes the errors of a function those of the protocol.
    """

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self, explaining: Callable[..., Callable[..., Any]]) -> None:
        refuse = partial(MCPError, INVALID_PARAMS)

        def entries(workspace: Workspace) -> list[dict[str, object]]:
            return [skill.entry for skill in SERVED_SKILLS.ask(workspace, ExportRequest())]

        def resources(workspace: Workspace) -> list[Resource]:
            return [Resource.model_validate(skill.resource) for skill in SERVED_SKILLS.ask(workspace, ExportRequest())]

        def entry(workspace: Workspace, uri: str) -> dict[str, object]:
            skill = SERVED_FILE.ask(workspace, ExportRequest(words=(uri,)))
            if skill.entry["uri"] != uri:
                raise UsageError("this names no skill, only a file of one", hint=f"the skill is {skill.entry['uri']}")
            return skill.entry

        def contents(workspace: Workspace, uri: str) -> ReadResourceContents:
            skill = SERVED_FILE.ask(workspace, ExportRequest(words=(uri,)))
            return ReadResourceContents(content=skill.content, mime_type=skill.kind)

        self._entries, self._resources = explaining(entries, refuse), explaining(resources, refuse)
        self._entry, self._contents = explaining(entry, refuse), explaining(contents, ResourceNotFoundError)

    def methods(self) -> Sequence[MethodBinding]:
        return (
            MethodBinding("skills/list", PaginatedRequestParams, self._list),
            MethodBinding("skills/get", GetSkillParams, self._get),
        )

    async def _list(self, _: object, params: PaginatedRequestParams | None) -> dict[str, Any]:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "this list has one page\nhint: ask again without a cursor")
        return {**_RESULT, "skills": await run_sync(self._entries)}

    async def _get(self, _: object, params: GetSkillParams) -> dict[str, Any]:
        return {**_RESULT, "skill": await run_sync(partial(self._entry, uri=params.uri))}

    async def list_resources(self) -> list[Resource]:
        """Return the skills for clients that do not know the extension."""
        resources: list[Resource] = await run_sync(self._resources)
        return resources

    async def read(self, uri: str) -> ReadResourceContents:
        contents: ReadResourceContents = await run_sync(partial(self._contents, uri=uri))
        return contents

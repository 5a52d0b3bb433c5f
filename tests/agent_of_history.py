"""An agent that asks ``skillgit mcp`` in the same process, and holds every answer against what the tool promises."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import jsonschema
from mcp import Client

from skillgit.mcp.server import server_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_types import CallToolResult
    from mcp_types import Tool as ListedTool

    from skillgit.app.workspace.context import Context

Answer = dict[str, Any]


class Agent:
    """A client of one server; its tools are those that the server listed."""

    def __init__(self, client: Client, tools: dict[str, ListedTool]) -> None:
        self.client = client
        self.tools = tools

    async def ask(self, tool: str, **arguments: Any) -> Answer:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        jsonschema.validate(result.structured_content, self.tools[tool].output_schema)
        (block,) = result.content
        compact = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
        assert block.text == compact, "blanks of JSON are tokens that an agent pays for"
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        result: CallToolResult = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        (block,) = result.content
        return block.text

    async def every(self, rows: str, tool: str, **arguments: Any) -> list[Answer]:
        """Return the rows of all pages."""
        pages, cursor = [], ""
        while True:
            answer = await self.ask(tool, **arguments, cursor=cursor)
            pages += answer[rows]
            cursor = answer["next_cursor"]
            if not cursor:
                return pages


def with_agent(context: Context, play: Callable[[Agent], Awaitable[Any]]) -> Any:
    """Return what ``play`` returns, which gets an agent at a server of its own."""

    async def whole() -> Any:
        async with Client(server_of(context)) as client:
            return await play(Agent(client, {tool.name: tool for tool in (await client.list_tools()).tools}))

    return asyncio.run(whole())


def asked(context: Context, tool: str, **arguments: Any) -> Answer:
    return with_agent(context, lambda agent: agent.ask(tool, **arguments))

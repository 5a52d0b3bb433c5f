"""``skillgit mcp``: what the history holds, for agents, by the Model Context Protocol.

Every tool reads, and answers with a part of the document that the command of its name prints with ``--json``.
"""

from __future__ import annotations

from importlib.util import find_spec

from skillgit.errors import UsageError
from skillgit.plugin.plugin_identity import install_command


def require_extra() -> None:
    # a folder of that name somewhere on the path is a namespace, and not the package
    if find_spec("mcp") is None or find_spec("mcp.server.mcpserver") is None:
        raise UsageError("mcp needs the extra 'mcp'", hint=install_command("mcp"))

"""Write what the agents' programs ask with into ``bodies``, every text of theirs replaced by its length.

``SKILLGIT_CLAUDE=… SKILLGIT_CODEX=… SKILLGIT_OPENCODE=… SKILLGIT_COPILOT=… python tests/endpoint/record_bodies.py``

What the programs say in prompts and descriptions is their makers'; how they say it is all that the endpoint reads.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "calls"), str(HERE.parent / "backends" / "agent_cli")]

KEPT = {
    *("type", "role", "id", "call_id", "tool_use_id", "tool_call_id", "name", "effort", "status", "phase", "model"),
    *("media_type", "tool_choice", "format", "mode", "ttl", "detail", "include", "required", "enum", "keep"),
}
"""Keys whose values say what kind of thing something is."""


def shape(value: Any, key: str = "") -> Any:
    """Return ``value`` with its prose, and the schemas of its tools, left out."""
    match value:
        case dict() if key in ("parameters", "input_schema", "schema"):
            return {"type": "object", "properties": {}}
        case dict():
            return {name: shape(inner, name) for name, inner in value.items()}
        case list():
            return [shape(inner, key) for inner in value]
        case str() if key == "arguments":
            return "{}"
        case str() if key not in KEPT and len(value) > 8:
            return f"text of {len(value)} characters"
        case _:
            return value


def main() -> None:
    import test_real_agents as agents  # noqa: PLC0415 - the path is set above

    from skillgit.endpoint import server  # noqa: PLC0415 - as above

    os.environ.setdefault("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    os.environ.setdefault("OPENAI_API_KEY", "sk-0123456789abcdef")
    read = server._body
    for name, play in agents.EVERY.items():
        bodies: list[Any] = []

        async def heard(request: Any, bodies: list[Any] = bodies) -> Any:
            body = await read(request)
            bodies.append({"path": request.path, "body": shape(body)})
            return body

        server._body = heard
        play(None)
        text = json.dumps(bodies, indent=1, ensure_ascii=False)
        (HERE / "bodies" / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(name, len(bodies), len(text))  # noqa: T201 - a command


if __name__ == "__main__":
    main()

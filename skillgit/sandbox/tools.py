"""Owns the tools with which a model looks into documents and runs Python: each call is a job, down to its patterns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from skillgit.domain.untrusted.model_text import storable_json
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Tool, ToolCall
from skillgit.sandbox.documents import ANSWER, REQUEST
from skillgit.sandbox.job import Limits, Result, expression
from skillgit.sandbox.sandbox import PROGRAM, Sandbox

Name = Literal["read", "grep", "glob", "python"]
NAMES: tuple[Name, ...] = get_args(Name)
DOCUMENTS = "documents"  # the folder in which Python finds the documents
_PROGRAM = Path(__file__).with_name("documents.py").read_text(encoding="utf-8")
_MOST_LINES = 2000
_LINES = 200
_TYPES: Mapping[str, type] = {"string": str, "integer": int}
_TEXT, _COUNT = "string", "integer"
_LOOKING = Limits(wall_s=60.0)


def declared(
    name: str, description: str, mandatory: Mapping[str, tuple[str, str]], **optional: tuple[str, str]
) -> Tool:
    """Return a tool whose arguments, each with its JSON type and what it is, are ``mandatory`` or ``optional``."""
    properties = {key: {"type": kind, "description": help_} for key, (kind, help_) in {**mandatory, **optional}.items()}
    schema = {"type": "object", "properties": properties, "required": list(mandatory), "additionalProperties": False}
    return Tool(name=name, description=description, parameters=schema)


TOOLS: Mapping[str, Tool] = {
    "read": declared(
        "read",
        "Read lines of a document.",
        {"path": (_TEXT, "The document's path.")},
        offset=(_COUNT, "The first line; 1 is the document's first and the default."),
        lines=(_COUNT, f"How many lines; {_LINES} by default, {_MOST_LINES} at most."),
    ),
    "grep": declared(
        "grep",
        "Find the lines that match a regular expression, with document and line number.",
        {"pattern": (_TEXT, "A regular expression as Python writes it.")},
        path=(_TEXT, "A document's path, or a pattern of paths such as 2021/**/*.txt; all documents by default."),
    ),
    "glob": declared(
        "glob",
        "List documents by their paths.",
        {"pattern": (_TEXT, "A pattern of paths: * within a folder, ** over folders, such as **/*.txt.")},
    ),
    "python": declared(
        "python",
        "Run a Python program. Its files stay from call to call; variables do not. There is no network.",
        {"code": (_TEXT, "The whole program; print what you want to see.")},
    ),
}


@dataclass(slots=True, kw_only=True)
class SandboxTools:
    """Tools over a folder of documents, which they cannot change, and a work folder that Python keeps."""

    sandbox: Sandbox
    documents: Path | None = None
    names: Sequence[Name] = NAMES
    files: dict[str, bytes] = field(default_factory=dict)  # what Python is given and what it has made since
    limits: Limits = field(default_factory=Limits)
    longest: int = 20_000  # characters of a result

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(TOOLS[name] for name in self.names)

    async def execute(self, call: ToolCall) -> str:
        """Carry out a call and return what the model reads; an EnvironmentFaultError if the sandbox failed."""
        try:
            arguments = read_arguments(call, self.tools)
        except ValueError as error:
            return f"error: {error}"
        text = await (self._run(arguments["code"]) if call.name == "python" else self._look(call.name, arguments))
        return text if len(text) <= self.longest else f"{text[: self.longest]}\n[cut after {self.longest} characters]"

    async def _run(self, code: str) -> str:
        links = {DOCUMENTS: self.documents} if self.documents else {}
        job = self.sandbox.python_job(code, files=self.files, links=links, limits=self.limits)
        result = await self.sandbox.run(job)
        self.files |= {name: content for name, content in result.files.items() if name != PROGRAM}
        text = _told(result, self.limits)
        # The place of the documents differs from one machine to another.
        return text.replace(str(self.documents), DOCUMENTS) if self.documents else text

    async def _look(self, tool: str, arguments: Mapping[str, Any]) -> str:
        if self.documents is None:
            return "error: there are no documents"
        request = {
            "tool": tool,
            "root": DOCUMENTS,
            "path": arguments.get("path", ""),
            "offset": max(1, arguments.get("offset", 1)),
            "lines": min(max(1, arguments.get("lines", _LINES)), _MOST_LINES),
            "pattern": arguments.get("pattern", ""),
            "among": expression(arguments.get("path", "**") if tool == "grep" else arguments.get("pattern", "**")),
        }
        job = self.sandbox.python_job(
            _PROGRAM,
            files={REQUEST: json.dumps(request).encode()},
            links={DOCUMENTS: self.documents},
            limits=_LOOKING,
            collect=(ANSWER,),
        )
        result = await self.sandbox.run(job)
        if result.ok:
            return result.files.get(ANSWER, b"").decode()
        if result.ended == "exit":
            raise EnvironmentFaultError(f"the tool {tool} failed: {result.stderr[-300:]}", hint="check the documents")
        return f"error: {tool} took too much ({result.ended}); ask for less"


def read_arguments(call: ToolCall, tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the arguments of a call that fits one of ``tools``; else a ValueError with a text for the model."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        raise ValueError(f"there is no tool '{call.name}'; there are: {', '.join(tool.name for tool in tools)}")
    try:
        arguments = storable_json(json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")  # noqa: TRY004 - one kind of error for the model
    properties: Any = tool.parameters["properties"]
    names: Any = tool.parameters["required"]
    for name in names:
        if name not in arguments:
            raise ValueError(f"{tool.name} needs the argument '{name}'")
    for name, value in arguments.items():
        if name not in properties:
            raise ValueError(f"{tool.name} has no argument '{name}'; it has: {', '.join(properties)}")
        kind = properties[name]["type"]
        if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
            raise ValueError(  # noqa: TRY004 - one kind of error for the model
                f"the argument '{name}' of {tool.name} must be of type {kind}"
            )
    return arguments


def _told(result: Result, limits: Limits) -> str:
    ends = {
        "timeout": f"stopped after {limits.wall_s:g} seconds",
        "cpu": f"stopped after {limits.cpu_s} seconds of processor time",
        "memory": f"stopped: more than {limits.memory_mb} MiB of memory",
        "disk": f"stopped: more than {limits.disk_mb} MiB of files",
        "output": f"stopped: more than {limits.output_kb} KiB of output",
        "killed": "killed by a signal",
        "exit": f"exit code {result.exit_code}",
    }
    file_line = f"files: {', '.join(result.files)}" if result.files else ""
    return "\n".join(
        filter(None, (result.stdout.rstrip("\n"), result.stderr.rstrip("\n"), file_line, f"[{ends[result.ended]}]"))
    )

"""``skillgit doctor --local``: which programs serve models on this machine, and a configuration that uses one.

Only the loopback is asked, by no proxy, and each server for a few seconds at most. A program is known by what it
answers, not by its port: people run llama.cpp at 8000 and vLLM at 8080.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import relpath
from typing import Any, Literal, cast

import httpx2
import yaml
from jsonschema import Draft202012Validator

from skillgit.app.setup.config.files import find
from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.server_programs import COMPATIBLE, PROGRAMS
from skillgit.app.skill_format.atomic_write import typed_path
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.shipped_configurations import shipped_folder
from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import ConflictError, ExitCode, NotFoundError

Schemas = Literal["kept", "not kept", "refused", "not asked", "no answer"]

BASE = "tasks/default"
_LOOK_S = 3.0
"""How long one server may take to say what it is."""
_ANSWER_S = 60.0
"""How long a model may take for the question with a schema."""
_MOST_BYTES = 4 << 20
_MOST_MODELS = 50
_REPLY_TOKENS = 200
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"enum": ["teal"]}, "legs": {"type": "integer"}},
    "required": ["colour", "legs"],
    "additionalProperties": False,
}
# The schema is in the parameter alone, so that a reply that fits it was made by it.
_QUESTION = "Say hello. /no_think"
_LEAST_REPLY, _USUAL_REPLY = 256, 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    name: str
    context: int | None = None  # tokens of prompt and reply together; absent if the server does not say
    is_loaded: bool = True
    schemas: Schemas = "not asked"  # whether a reply keeps to a JSON schema
    detail: str = ""  # why it was not asked, or what it said instead


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    program: str  # by what it answers; `another server` if it speaks the protocol and does not say which it is
    version: str
    address: str  # for model.openai_compatible_base_url
    slots: int | None  # calls that it answers at a time; absent if it does not say
    models: tuple[LocalModel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServers:
    servers: tuple[LocalServer, ...]
    ports: tuple[int, ...]  # that were looked at
    written: str = ""  # the configuration that was written; empty if none was asked for

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.OK if self.servers else ExitCode.NO


def local_servers(
    context: Context, *, ports: Sequence[int] = (), ask: bool = True, write: str = "", base: str = ""
) -> LocalServers:
    """Return the servers of this machine; with ``write``, a configuration for one, based on ``base``, is written there.

    ``ports`` are looked at besides the usual ones. With ``ask``, each model that is loaded gets one small question.
    """
    every = tuple(dict.fromkeys((*ports, *(port for program in PROGRAMS for port in program.ports))))
    base_file = find(base or BASE, context.directory)
    path = typed_path(context.directory, write) if write else None
    if path is not None and path.exists():
        raise ConflictError(f"{write} is there already", hint="name a new file, or remove that one")
    if path is not None and not path.parent.is_dir():
        raise NotFoundError(f"there is no folder {path.parent}", hint=f"mkdir -p {path.parent}")
    servers = asyncio.run(_servers(every, ask=ask))
    if path is None:
        return LocalServers(servers=servers, ports=every)
    is_shipped = base_file.is_relative_to(shipped_folder().resolve())
    base = (base or BASE) if is_shipped else relpath(base_file, path.parent)
    path.write_text(_configuration(servers, base), encoding="utf-8")
    load_config(context, str(path))  # what is written can be read
    return LocalServers(servers=servers, ports=every, written=write)


async def _servers(ports: Sequence[int], *, ask: bool) -> tuple[LocalServer, ...]:
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=False) as client:
        servers = [server for server in await asyncio.gather(*(_at(client, port) for port in ports)) if server]
        return tuple(await asyncio.gather(*(_asked(client, server) for server in servers)) if ask else servers)


async def _at(client: httpx2.AsyncClient, port: int) -> LocalServer | None:
    """Return the server at ``port`` of the loopback; None if none that speaks OpenAI's protocol answers there."""
    root = f"http://127.0.0.1:{port}"
    paths = ("/v1/models", "/api/version", "/api/tags", "/api/ps", "/api/v0/models", "/props", "/version")
    answers = await asyncio.gather(*(_get(client, f"{root}{path}") for path in paths))
    listing, ollama, tags, running, studio, props, version = map(_mapping, answers)
    if not isinstance(listing.get("data"), list):
        return None
    entries = [entry for entry in _mappings(listing.get("data")) if isinstance(entry.get("id"), str)][:_MOST_MODELS]
    owners = {str(entry.get("owned_by")) for entry in entries}
    slots = None
    if isinstance(tags.get("models"), list) and isinstance(ollama.get("version"), str):
        program, words = "Ollama", ollama.get("version")
        rows_by_name = {str(row.get("name")): row for row in _mappings(running.get("models"))}
        names = [str(entry["id"]) for entry in entries]
        shows = await asyncio.gather(*(_get(client, f"{root}/api/show", {"model": name}) for name in names))
        models = [
            _model(
                name, rows_by_name.get(name, {}).get("context_length"), *_lengths(show), is_loaded=name in rows_by_name
            )
            for name, show in zip(names, shows, strict=True)
        ]
    elif isinstance(studio.get("data"), list):
        program, words = "LM Studio", ""
        models = [
            _model(
                str(row.get("id")),
                row.get("loaded_context_length"),
                row.get("max_context_length"),
                is_loaded=row.get("state") == "loaded",
            )
            for row in [row for row in _mappings(studio.get("data")) if row.get("type") != "embeddings"][:_MOST_MODELS]
        ]
    else:
        settings = _mapping(props.get("default_generation_settings"))
        models = [
            _model(
                str(entry["id"]),
                settings.get("n_ctx"),
                _mapping(entry.get("meta")).get("n_ctx"),
                next((entry[key] for key in ("max_model_len", "context_length") if key in entry), None),
            )
            for entry in entries
        ]
        program, words = "another server", ""
        if "llamacpp" in owners or "default_generation_settings" in props:
            program, words, slots = "llama.cpp", props.get("build_info"), _number(props.get("total_slots"))
        elif "vllm" in owners or (
            isinstance(version.get("version"), str) and any("max_model_len" in row for row in entries)
        ):
            program, words = "vLLM", version.get("version")
    return LocalServer(
        program=program,
        version=storable(words[:60]) if isinstance(words, str) else "",
        address=f"{root}/v1",
        slots=slots,
        models=tuple(models),
    )


def _model(name: str, *lengths: object, is_loaded: bool = True) -> LocalModel:
    """Return a model whose context is the first of ``lengths`` that is one."""
    context = next(filter(None, map(_number, lengths)), None)
    return LocalModel(name=storable(name), context=context, is_loaded=is_loaded)


def _lengths(show: object) -> list[object]:
    info = _mapping(_mapping(show).get("model_info"))
    return [value for key, value in info.items() if key.endswith(".context_length")]


async def _asked(client: httpx2.AsyncClient, server: LocalServer) -> LocalServer:
    """Return ``server`` with what its loaded models do with a schema, asked one after the other."""
    models = [
        await _with_schemas(client, server, model) if model.is_loaded else replace(model, detail="not loaded")
        for model in server.models
    ]
    return replace(server, models=tuple(models))


async def _with_schemas(client: httpx2.AsyncClient, server: LocalServer, model: LocalModel) -> LocalModel:
    body = {
        "model": model.name,
        "messages": [{"role": "user", "content": _QUESTION}],
        "max_tokens": _REPLY_TOKENS,
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": _SCHEMA},
        },
    }
    answer = await _get(client, f"{server.address}/chat/completions", body, limit_s=_ANSWER_S)
    if answer is None:
        return replace(model, schemas="no answer", detail=f"within {_ANSWER_S:.0f} s")
    choices = _mappings(_mapping(answer).get("choices"))
    if not choices:
        return replace(model, schemas="refused", detail=_words(json.dumps(answer, ensure_ascii=False)))
    text = str(_mapping(choices[0].get("message")).get("content") or "")
    try:
        is_kept = Draft202012Validator(_SCHEMA).is_valid(read_document(text.encode()))
    except DocumentError:
        is_kept = False
    return replace(model, schemas="kept" if is_kept else "not kept", detail="" if is_kept else _words(text))


def _words(text: str) -> str:
    return storable(" ".join(text.split())[:80])


async def _get(
    client: httpx2.AsyncClient, url: str, body: Mapping[str, object] | None = None, *, limit_s: float = _LOOK_S
) -> object:
    """Return the JSON that is at ``url``, of an error too; None if there is none in time, or too much of it."""
    try:
        async with (
            asyncio.timeout(limit_s),
            client.stream("GET" if body is None else "POST", url, json=body, timeout=limit_s) as response,
        ):
            content = bytearray()
            async for part in response.aiter_bytes():
                content += part
                if len(content) > _MOST_BYTES:
                    return None
        return read_document(bytes(content))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TimeoutError, DocumentError):
        return None


START = "start one: ollama serve, llama-server -m MODEL.gguf, vllm serve MODEL, or the server of LM Studio"


def _configuration(servers: Sequence[LocalServer], base: str) -> str:
    """Write a configuration for a model that keeps to schemas, else one that is loaded, else the first."""
    pairs = [(server, model) for server in servers for model in server.models]
    if not pairs:
        raise NotFoundError("no server of this machine has a model", hint=START)
    server, model = min(pairs, key=lambda pair: (pair[1].schemas != "kept", not pair[1].is_loaded))
    settings: dict[str, object] = {"backend": COMPATIBLE, "target": model.name, "optimizer": model.name}
    settings |= {f"{COMPATIBLE}_base_url": server.address, "prices": {model.name: [0, 0]}}
    calls: dict[str, object] = {"temperature": 0, "timeout_s": 600, "concurrency": server.slots or 4}
    if model.context is not None:
        settings["context_window"] = {model.name: model.context}
        calls["max_output_tokens"] = max(_LEAST_REPLY, min(_USUAL_REPLY, model.context // 4))
    document: dict[str, object] = {"_base_": base, "model": settings, "calls": calls, "env": {"exec_timeout": 600}}
    if model.schemas in ("refused", "not kept"):
        document["optimizer"] = {"structured_output": "off"}
    descriptions = [f"{each.program} at {each.address}: {', '.join(m.name for m in each.models)}" for each in servers]
    head = [
        f"Models of this machine, as skillgit doctor --local found them: {server.program} answers for every role.",
        "One small model for both roles shows that all works; a larger optimizer finds better edits.",
        "Servers sample by default; at temperature 0 an item gives the same answer again.",
        "There are " + "; ".join(descriptions) + ".",
        "_base_ is the environment: tasks/default for your own tasks, or another configuration.",
    ]
    comment = "".join(f"# {' '.join(line.split())}\n" for line in head)
    return comment + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [_mapping(entry) for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= 10**9 else None

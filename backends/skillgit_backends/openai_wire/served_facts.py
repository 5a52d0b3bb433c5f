"""What servers of OpenAI's protocol say about the model that they serve, as far as it changes with its weights.

The list of models is the same protocol everywhere, and most of what it holds says nothing about weights: ``created`` is
the time of the request at vLLM and the start of the server at llama.cpp, so that a restart with the same weights would
look like another model. Three servers say more at paths of their own, which they are asked for by who owns the model:

- llama.cpp's server at ``/props``: the file, the build, which is also the ``system_fingerprint`` of its replies, and
  the template of a conversation;
- LM Studio at ``/api/v0/models``: architecture and quantization;
- Ollama, whose models are all called ``name:tag``, at ``/api/tags``: the digest, which a new pull of a tag changes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from skillgit.domain.ids import short_digest
from skillgit.wire.json_values import entries_at, fields_at

_ENTRY = ("digest", "owned_by", "parent", "quantization", "root", "size")
_META = ("ftype", "n_params", "size")
_LLAMA_CPP, _LM_STUDIO = "llamacpp", "organization_owner"
_PATH = re.compile(r"(?:/|~|[A-Za-z]:[\\/]).*[\\/](?P<name>[^\\/]+)[\\/]*")
_LONGEST = 200  # characters of a fact; a server may say anything

Facts = dict[str, object]


async def served_facts(ask: Callable[[str], Awaitable[object]], url: str, model: str) -> Facts:
    """Return the facts about ``model`` of the server at ``url``; ``ask`` returns the JSON at a path or an address."""
    entry = _entry(entries_at(await ask("/models"), "data"), "id", model)
    meta = fields_at(entry, "meta")
    facts: Facts = {name: entry.get(name) for name in _ENTRY} | {name: meta[name] for name in _META if name in meta}
    listed_name = str(entry.get("id") or "")
    if listed_name and listed_name != model:
        facts["name"] = listed_name
    facts |= await _facts_of_its_own(ask, url.rstrip("/").removesuffix("/v1"), model, entry)
    return {name: _short(value) for name, value in facts.items() if isinstance(value, str | int | float)}


async def _facts_of_its_own(
    ask: Callable[[str], Awaitable[object]], root: str, model: str, listed: Mapping[str, object]
) -> Facts:
    owner = listed.get("owned_by")
    if owner == _LLAMA_CPP:
        properties = fields_at(await ask(f"{root}/props"))
        template = properties.get("chat_template")
        return {
            "file": properties.get("model_path"),
            "build": properties.get("build_info"),
            "template": short_digest(template) if template else None,
        }
    if owner == _LM_STUDIO:
        entry = _entry(entries_at(await ask(f"{root}/api/v0/models"), "data"), "id", model)
        return {name: entry.get(name) for name in ("arch", "publisher", "quantization")}
    if ":" not in str(listed.get("id")):
        return {}
    entry = _entry(entries_at(await ask(f"{root}/api/tags"), "models"), "name", model)
    details = fields_at(entry, "details")
    return {name: entry.get(name) for name in ("digest", "size") if name in entry} | {
        name: details[name] for name in ("parameter_size", "quantization_level") if name in details
    }


def _entry(entries: Sequence[Mapping[str, object]], key: str, model: str) -> Mapping[str, object]:
    """Return the entry of ``model``; of a server with one model, which answers by any name, its only one."""
    for entry in entries:
        aliases = entry.get("aliases")
        if entry.get(key) in {model, f"{model}:latest"} or (isinstance(aliases, list) and model in aliases):
            return entry
    return entries[0] if len(entries) == 1 else {}


def _short(value: str | float) -> str | float:
    """Return ``value`` as it may be published: a path of this or another machine is its last part, and a digest."""
    if not isinstance(value, str):
        return value
    path = _PATH.fullmatch(value)
    return f"{path['name']}~{short_digest(value)[:8]}" if path else value[:_LONGEST]

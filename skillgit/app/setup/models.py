"""The models of a configuration: the backend of each role, and what is known of its model without a call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from skillgit.app.setup.config.resolved import ResolvedConfig, is_neutral
from skillgit.app.setup.config.schema import ModelSettings
from skillgit.calls.pricing import context_table, find_price, price_of
from skillgit.calls.route import Route
from skillgit.domain.ids import short_digest
from skillgit.domain.rehearsal import is_offline
from skillgit.domain.served_model import ServedModel, normalised
from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import (
    AsksModels,
    AsksServer,
    Backend,
    Batches,
    PlaysRole,
    Price,
    Probe,
    Probes,
    TellsContext,
)
from skillgit.plugin.plugin_identity import PluginSource
from skillgit.plugin.redaction import redact
from skillgit.plugin.registry import BACKENDS, find_backend, installed, load_backend

ESTIMATED = "{} counts no tokens: gate.objective compares estimates, a token for four characters of prompt and answer"
TIMEOUT_S = 120.0
"""Seconds that one call may take where neither the configuration nor the backend says."""
_ACCOUNT = ("base_url", "api_key_env", "azure_endpoint", "azure_client_id", "region", "profile", "path")
"""Settings that identify a provider's account, which has its own rate limits."""


def find_routes(config: ResolvedConfig, roles: Iterable[str]) -> dict[str, Route]:
    """Return the ways to the models of ``roles``; no role shares its backend with another one."""
    return {role: _route(config, role) for role in roles}


def _route(config: ResolvedConfig, role: str) -> Route:
    model, calls = config.values.model, config.values.calls
    name = getattr(model, role) or model.optimizer
    settings = config.settings(role)
    backend, source = _backend(config, role, settings)
    _check_model(name, role, backend, config)
    has_batches = bool(getattr(model, f"{role}_batch"))
    if has_batches and not isinstance(backend, Batches):
        problem = f"model.{role}_batch is true, and the backend {backend.info.name} has no batches"
        raise ConfigError(problem, hint=f"openai_chat and claude_chat have; or -o model.{role}_batch=false")
    inner = _behind(config, role, backend, name)
    route = _way(config, role, backend, name, settings)
    timeout_s = config.values.env.exec_timeout if role == "target" else calls.timeout_s
    return replace(
        route,
        variant="".join((config.variant(role), source.code)),
        temperature=calls.temperature,
        top_p=getattr(model, f"{role}_top_p"),
        seed=getattr(model, f"{role}_seed"),
        stop=model.target_stop if role == "target" else (),
        timeout_s=timeout_s or backend.info.timeout_s or TIMEOUT_S,
        batch=has_batches,
        inner=inner,
        server=route.server if inner is None else None,
    )


def _way(config: ResolvedConfig, role: str, backend: Backend, model: str, settings: Mapping[str, object]) -> Route:
    """Return the way to ``model`` by ``backend``, with what does not depend on who asks."""
    values, calls = config.values.model, config.values.calls
    return Route(
        backend=backend,
        backend_name=backend.info.name,
        model=model,
        max_output_tokens=calls.max_output_tokens,
        reasoning_effort=getattr(values, f"{role}_reasoning_effort") or values.reasoning_effort,
        price=_price(config, model, backend),
        concurrency=calls.concurrency,
        timeout_s=calls.timeout_s or backend.info.timeout_s or TIMEOUT_S,
        lane=_lane(config, role, backend, model, settings),
        server=_server(backend, model),
        as_written=partial(_as_written, config, role),
    )


def _behind(config: ResolvedConfig, role: str, agent: Backend, model: str) -> Route | None:
    """Return who answers the questions of ``agent``, if it is one whose questions are metered."""
    behind = agent.model_behind() if isinstance(agent, AsksModels) else None
    if behind is None:
        return None
    settings = {**behind.settings, **config.settings_behind(role, behind.backend)}
    plugin = find_backend(behind.backend, config.root)
    neutral = {name: value for name, value in settings.items() if not is_neutral(f"model.x_{name}")}
    variant = "".join((short_digest(neutral) if neutral else "", plugin.source.code))
    return replace(_way(config, role, plugin.cls(settings), model, settings), variant=variant)


def _server(backend: Backend, model: str) -> ServedModel | None:
    """Return the model at the server that ``backend`` asks, which knows its role by now; None if it asks none."""
    place = backend.server() if isinstance(backend, AsksServer) else None
    if place is None:
        return None
    return ServedModel(
        backend=backend.info.name,
        model=model,
        address=redact(normalised(place.url)),
        is_pinned=place.is_pinned,
        names_deployments=place.names_deployments,
        variable=place.variable,
    )


def _price(config: ResolvedConfig, model: str, backend: Backend) -> Price | None:
    rows = config.values.model.prices.items()
    overrides = {priced_model: price_of(row) for priced_model, row in rows}
    is_known = is_of_provider(_server(backend, model))
    return find_price(model, overrides=overrides, declarations=backend.info.prices, is_in_table=is_known)


def is_of_provider(server: ServedModel | None) -> bool:
    """Say whether the tables of prices and contexts hold there: they are of providers, and of no other address."""
    return server is None or server.is_pinned


def _lane(config: ResolvedConfig, role: str, backend: Backend, model: str, settings: Mapping[str, object]) -> str:
    """Return whose limits the calls share: those of the same model by the same account do."""
    own = backend.play(config.players(role)[0]) if isinstance(backend, PlaysRole) else ()
    account = {key: settings[key] for key in _ACCOUNT if settings.get(key)}
    return f"{backend.info.name}/{model}@{short_digest([account, list(own)])}" if account or own else ""


def _check_model(model: str, role: str, backend: Backend, config: ResolvedConfig) -> None:
    """Refuse a model that the backend of ``role`` does not have: one of the two was set and the other forgotten."""
    if is_offline(f"{backend.info.name}/") and model not in backend.info.models:
        names, (first, slash, _) = [plugin.name for plugin in installed(BACKENDS)], model.partition("/")
        if slash and first not in names:
            raise ConfigError(
                f"there is no backend '{first}', and {backend.info.name}, that of model.{role}, has no model '{model}'",
                hint=f"backends: {', '.join(names)}; for a server of yours: {_backend_of(model, role)}",
            )
        raise ConfigError(
            f"model.{role} is '{model}', and its backend is {backend.info.name}, which follows fixed rules and has no"
            " such model",
            hint=f"name the backend that has it: {_backend_of(model, role)}",
        )
    usual = ModelSettings.model_fields["target_backend"].default
    origin, backend_origin = (config.origin(f"model.{key}").kind for key in (role, f"{role}_backend"))
    is_left_over = origin == "default" or (backend_origin == "override" and origin != "override")
    may_lack = is_left_over and ".py:" not in config.backend(role) and backend.info.needs_network
    if may_lack and model in load_backend(usual, config.root).info.models:
        problem = f"model.{role} is '{model}', a model of the backend {usual}, and its backend is {backend.info.name}"
        raise ConfigError(problem, hint=f"name a model of {backend.info.name}: -o model.{role}=MODEL")


_FAMILIES = {"gpt": "openai_chat", "o": "openai_chat", "chatgpt": "openai_chat", "claude": "claude_chat"} | {
    "qwen": "qwen_chat",
    "minimax": "minimax_chat",
}
"""How the names of models begin, and the backend of the provider that calls them so."""
_FAMILY = re.compile(r"[a-z]+")


def _backend_of(model: str, role: str) -> str:
    """Return the options that name a backend for ``model``; a server of one's own where its name says no provider."""
    match = _FAMILY.match(model.lower())
    backend = "" if "/" in model or match is None else _FAMILIES.get(match[0], "")
    if backend:
        return f"-o model.{role}_backend={backend}"
    return f"-o model.{role}_backend=openai_compatible -o model.openai_compatible_base_url=URL"


def _backend(config: ResolvedConfig, role: str, settings: Mapping[str, object]) -> tuple[Backend, PluginSource]:
    name = config.backend(role)
    source = find_backend(name, config.root)
    paths = {path: str(config.root / default) for path, default in source.cls.info.paths.items() if default}
    values = paths | {key: value for key, value in settings.items() if value is not None or key not in paths}
    try:
        return source.cls(values), source.source
    except ConfigError as error:
        error.message, error.hint = _as_written(config, role, error.message), _as_written(config, role, error.hint)
        error.args = (error.message,)
        raise


def _as_written(config: ResolvedConfig, role: str, text: str) -> str:
    """Return ``text``, where a backend names settings its own way, with the keys that the user writes for ``role``."""
    own = rf"\bmodel\.{re.escape(config.backend(role))}_(\w+)"
    text = re.sub(own, lambda key: config.origin_of_setting(role, key[1]), text)
    if role == "target":
        text = re.sub(r"\bcalls\.timeout_s\b", "env.exec_timeout", text)
    text = re.sub(r"\bmodel\.(top_p|seed|stop)\b", rf"model.{role}_\1", text)  # these are set for roles alone
    if getattr(config.values.model, f"{role}_reasoning_effort"):
        text = re.sub(r"\bmodel\.reasoning_effort\b", f"model.{role}_reasoning_effort", text)
    return text


_NEAR = 0.8
_MOST_CHARACTERS_PER_TOKEN = 8
_ESTIMATED_CHARACTERS_PER_TOKEN = 4

ContextOrigin = Literal["", "configuration", "server", "table"]
Fit = Literal["unknown", "fits", "near", "too long"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWindow:
    tokens: int | None  # tokens, prompt and reply together; None if that is not known
    source: ContextOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRoom:
    """How the longest prompt of a role compares with what its model takes."""

    context: int | None  # tokens that the model takes, prompt and reply together; None if that is not known
    source: ContextOrigin
    prompt: int  # tokens of the longest prompt, estimated at four characters each
    reply: int

    @property
    def fit(self) -> Fit:
        """Whether the prompt fits; ``too long`` if it does not even at eight characters a token, as no text has."""
        if self.context is None:
            return "unknown"
        if self.prompt * _ESTIMATED_CHARACTERS_PER_TOKEN > self.context * _MOST_CHARACTERS_PER_TOKEN:
            return "too long"
        return "near" if self.prompt > _NEAR * self.context or self.prompt + self.reply > self.context else "fits"


def answering(route: Route) -> Route:
    """Return whose model answers in the end: that of an agent whose questions are metered is another backend's."""
    return route.inner or route


async def look(route: Route) -> Probe | None:
    """Return what a backend finds without a call; None if it cannot look. The backend behind it is looked at too."""
    if route.inner is not None:
        await look(route.inner)
    if not isinstance(route.backend, Probes):
        return None
    probe = await route.backend.probe()
    if not probe.ready:
        raise FatalBackendError(f"{route.backend_name} is not ready to call its model", hint=probe.detail)
    return probe


async def context_of(route: Route, contexts: Mapping[str, int]) -> ContextWindow:
    """Return how much the model of ``route`` takes: by the configuration, its server or a table, in this order."""
    route = answering(route)
    tokens, source = contexts.get(route.model), "configuration"
    if tokens is None and isinstance(route.backend, TellsContext):
        tokens, source = await route.backend.context(route.model), "server"
    if tokens is None and is_of_provider(route.server):
        tokens, source = context_table().find(route.model), "table"
    origin: ContextOrigin = "" if tokens is None else source  # type: ignore[assignment]
    return ContextWindow(tokens=tokens, source=origin)


def room(route: Route, prompt: int, context: ContextWindow) -> PromptRoom:
    """Return how a prompt of ``prompt`` tokens compares with what the model of ``route`` takes."""
    return PromptRoom(context=context.tokens, source=context.source, prompt=prompt, reply=route.max_output_tokens)

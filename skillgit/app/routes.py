"""From a configuration to the ways to its models: one backend for each role, with the settings of that role."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from skillgit.calls.pricing import find_price, price_of
from skillgit.calls.route import Route
from skillgit.domain.ids import short_digest
from skillgit.errors import ConfigError
from skillgit.plugin.backend import PlaysRole
from skillgit.plugin.registry import find_backend

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillgit.app.config import ResolvedConfig
    from skillgit.plugin.backend import Backend
    from skillgit.plugin.source import Source

TIMEOUT_S = 120.0
"""Seconds that one call may take where neither the configuration nor the backend says."""
_ACCOUNT = ("base_url", "api_key_env", "azure_endpoint", "azure_client_id", "region", "profile", "path")
"""Settings that tell one provider's account from another one: what has others has rate limits of its own."""


def find_routes(config: ResolvedConfig, roles: Iterable[str]) -> dict[str, Route]:
    """Return the ways to the models of ``roles``; no role shares its backend with another one.

    Raises:
        ConfigError: A setting of a backend is wrong.
        NotFoundError: There is no such backend.
    """
    return {role: _route(config, role) for role in roles}


def _route(config: ResolvedConfig, role: str) -> Route:
    model, calls = config.values.model, config.values.calls
    name = getattr(model, role) or model.optimizer
    settings = config.settings(role)
    backend, source = _backend(config, role, settings)
    own = backend.play(config.players(role)[0]) if isinstance(backend, PlaysRole) else ()
    timeout_s = config.values.env.exec_timeout if role == "target" else calls.timeout_s
    return Route(
        backend=backend,
        backend_name=backend.info.name,
        variant="".join((config.variant(role), source.code)),
        model=name,
        max_output_tokens=calls.max_output_tokens,
        temperature=calls.temperature,
        reasoning_effort=getattr(model, f"{role}_reasoning_effort") or model.reasoning_effort,
        price=find_price(
            name,
            overrides={known: price_of(row) for known, row in model.prices.items()},
            declared=backend.info.prices,
        ),
        concurrency=calls.concurrency,
        timeout_s=timeout_s or backend.info.timeout_s or TIMEOUT_S,
        lane=_lane(f"{backend.info.name}/{name}", settings, own),
        as_written=partial(_as_written, config, role),
    )


def _backend(config: ResolvedConfig, role: str, settings: Mapping[str, object]) -> tuple[Backend, Source]:
    name = config.backend(role)
    found = find_backend(name, config.root)
    paths = {path: str(config.root / default) for path, default in found.cls.info.paths.items() if default}
    given = paths | {key: value for key, value in settings.items() if value is not None or key not in paths}
    try:
        return found.cls(given), found.source
    except ConfigError as error:
        error.message, error.hint = _as_written(config, role, error.message), _as_written(config, role, error.hint)
        error.args = (error.message,)
        raise


def _as_written(config: ResolvedConfig, role: str, text: str) -> str:
    """Return ``text`` with the keys that the user wrote, or would write, for ``role``.

    A backend knows its settings by its own name; the user wrote some of them for a role.
    """
    own = rf"\bmodel\.{re.escape(config.backend(role))}_(\w+)"
    text = re.sub(own, lambda key: config.origin_of_setting(role, key[1]), text)
    if role == "target":
        text = re.sub(r"\bcalls\.timeout_s\b", "env.exec_timeout", text)
    if getattr(config.values.model, f"{role}_reasoning_effort"):
        text = re.sub(r"\bmodel\.reasoning_effort\b", f"model.{role}_reasoning_effort", text)
    return text


def _lane(name: str, settings: Mapping[str, object], own: tuple[str, ...]) -> str:
    """Return whose limits a role's calls share: those of other calls of the same model by the same account."""
    account = {key: settings[key] for key in _ACCOUNT if settings.get(key)}
    return f"{name}@{short_digest([account, list(own)])}" if account or own else ""

"""The free keys of the section ``model``: settings of a backend, for all roles or for one.

``model.<backend>_<setting>`` holds for every role with that backend, ``model.<role>_<setting>`` for one role whatever
its backend is, and ``model.<role>_<backend>_<setting>`` for one role if it has that backend. The last one found counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.config.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

ROLES = ("target", "optimizer", "judge")
_FIXED = ("backend", "model", "reasoning_effort")
"""What keys of a role say that no backend reads; a misspelt one is no setting."""


def belongs(name: str, backends: Iterable[str]) -> str:
    """Return the backend whose free key ``name`` is, or an empty string."""
    prefixes = [backend for backend in backends if name.startswith(f"model.{backend}_")]
    return max(prefixes, key=len, default="")


def role_of(name: str) -> str:
    """Return the role whose free key ``name`` is, or an empty string."""
    role, _, setting = name.removeprefix("model.").partition("_")
    return role if name.startswith("model.") and role in ROLES and setting and not nearest(setting, _FIXED) else ""


def is_free(name: str, backends: Iterable[str]) -> bool:
    """Say whether ``name`` is a setting that a backend has to check."""
    return bool(belongs(name, backends) or role_of(name))


def settings_of(
    given: Mapping[str, object], roles: Iterable[str], backend: str, backends: Collection[str]
) -> dict[str, object]:
    """Return the settings of ``backend`` in a role, under the names that the backend knows.

    Args:
        given: All free keys without their section.
        roles: The roles whose keys count; later ones win.
        backend: The backend.
        backends: The installed backends.
    """
    found = _after(f"{backend}_", given)
    for role in roles:
        own = _after(f"{role}_", given)
        plain = {name: value for name, value in own.items() if not belongs(f"model.{name}", backends)}
        found |= plain | _after(f"{backend}_", own)
    return found


def _after(prefix: str, given: Mapping[str, object]) -> dict[str, object]:
    return {name[len(prefix) :]: value for name, value in given.items() if name.startswith(prefix)}


def written_as(given: Collection[str], roles: Sequence[str], backend: str, setting: str) -> str:
    """Return the key that sets ``setting`` of ``backend`` in a role; the arguments are as for ``settings_of``."""
    of_roles = (name for role in reversed(roles) for name in (f"{role}_{backend}_{setting}", f"{role}_{setting}"))
    return next((f"model.{name}" for name in of_roles if name in given), f"model.{backend}_{setting}")

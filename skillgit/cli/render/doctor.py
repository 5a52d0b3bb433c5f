"""A check-up as people read it: the machine, the repository, and each role's model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.doctor import Checkup, Machine, RoleHealth
    from skillgit.cli.screen import Screen

_LABEL = 13
_SOURCES = {
    "configuration": "by model.contexts",
    "server": "as the server says",
    "table": "by the table of {date}",
}


def lines(found: Checkup, screen: Screen) -> Iterator[str]:
    """Yield a check-up."""
    for label, text in _machine(found.machine):
        yield _line(label, text, screen)
    where = found.repository
    runs = f"{where.path}, {words.plural(where.runs, 'run')}" if where is not None else "none around this folder"
    yield _line("repository", runs, screen)
    for role in found.roles:
        yield ""
        yield _line(role.role, screen.paint(Style.STRONG, f"{role.backend}/{role.model}"), screen)
        for label, text in _role(role, found, screen):
            yield _line(f"  {label}", text, screen)


def _line(label: str, text: str, screen: Screen) -> str:
    return f"{screen.paint(Style.FAINT, label.ljust(_LABEL))}{text}"


def _machine(machine: Machine) -> Iterator[tuple[str, str]]:
    yield "python", f"{machine.python} on {machine.system}"
    yield "git", machine.git or "not found; it is needed to look at differences"
    yield "sqlite", machine.sqlite
    for program in machine.programs:
        yield program.name, program.path or f"not found; it {program.purpose}"


def _role(role: RoleHealth, found: Checkup, screen: Screen) -> Iterator[tuple[str, str]]:
    if role.place:
        yield "calls", " ".join(filter(None, (role.place, role.version)))
    if role.credential:
        yield "as", role.credential
    yield "answers", _answer(role, screen)
    if role.hint:
        yield "hint", role.hint
    if role.counted is not None:
        yield "tokens", "counted by the provider" if role.counted else "not counted by the provider, estimated"
    yield "price", _price(role, found)
    if role.room is not None:
        yield "context", _context(role, found)


def _answer(role: RoleHealth, screen: Screen) -> str:
    if role.error:
        return screen.paint(Style.REJECTED, f"no: {role.error}")
    if role.answers is None:
        return "on this machine" if role.is_local else "not asked"
    by = f", as {role.answered_by}" if role.answered_by else ""
    return screen.paint(Style.ACCEPTED, f"yes, in {role.latency_ms} ms{by}")


def _price(role: RoleHealth, found: Checkup) -> str:
    if role.price is None:
        return "unknown; set model.prices to cap and count dollars"
    if not role.price.usd_in and not role.price.usd_out:
        return "nothing"
    told = f"{words.money(role.price.usd_in)} in, {words.money(role.price.usd_out)} out for a million tokens"
    source = {"configuration": "by model.prices", "backend": "as the backend says"}
    return f"{told}, {source.get(role.price_source, f'by the table of {found.prices_of}')}"


def _context(role: RoleHealth, found: Checkup) -> str:
    room = role.room
    if room is None or room.context is None:
        prompt = f"; the longest prompt has about {room.prompt:,} tokens" if room is not None else ""
        return f"unknown; set model.contexts to check it{prompt}"
    source = _SOURCES[room.source].format(date=found.contexts_of)
    told = f"{room.context:,} tokens {source}; the longest prompt has about {room.prompt:,}"
    return told + {
        "near": f", its reply may have {room.reply:,}: some calls may be refused",
        "too long": ": it does not fit",
    }.get(role.fit, "")

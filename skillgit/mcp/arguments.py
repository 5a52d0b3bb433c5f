"""The arguments of a tool: the fields of a request that are marked for agents, and the request that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from inspect import Parameter
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_type_hints

from pydantic import AfterValidator, Field

from skillgit.app.workspace.request import Arg, Opt, Words, parameters
from skillgit.app.workspace.request import Parameter as Asked
from skillgit.domain.untrusted.model_text import visible

Q = TypeVar("Q")


def _plain(text: str) -> str:
    if visible(text) != text:
        raise ValueError("control and hidden characters have no place here")
    return text


Word = Annotated[str, Field(max_length=400), AfterValidator(_plain)]
_NAMED: Final[Mapping[Words, str]] = {
    "revisions": "v7, best, head, r4, RUN, RUN/v7 or a commit",
    "runs": "a run; the default run if left out",
}
"""What a value names, for agents."""


class Pace(NamedTuple):
    """A page of a list: how long it is, and where it begins."""

    limit: Annotated[int, Field(ge=1, le=100)]
    cursor: Annotated[Word, Field(description="next_cursor of the page before")] = ""


def arguments_of(request: type, length: int) -> Iterator[Parameter]:
    """Yield what agents may give of a request, and of the page that they want: of ``length`` rows; 0: not a list."""
    for part in parameters(request):
        if name := part.description.tool:
            default = Parameter.empty if part.required else _default(part)
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=_type(part))
    types = get_type_hints(Pace, include_extras=True)
    for name, value in Pace(length)._asdict().items() if length else ():
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=types[name])


def request_of(request: type[Q], values: Mapping[str, Any]) -> Q:
    """Return the request that agents make by ``values``; an empty text is none."""
    given = {part.name: (part, values[part.description.tool]) for part in parameters(request) if part.description.tool}
    return request(**{name: _value(part, value) for name, (part, value) in given.items() if value != ""})


def _type(part: Asked) -> Any:  # noqa: ANN401 - a type
    kind, description = part.plain_type, part.description
    meaning = Field(description=_meaning(description))
    if issubclass(kind, Enum):
        values = (*(() if part.required else ("",)), *(str(member.value) for member in kind))
        return Annotated[Literal[values], meaning]
    if kind is bool:
        return Annotated[bool, meaning]
    return Annotated[Word, meaning, Field(min_length=1)] if part.required else Annotated[Word, meaning]


def _meaning(description: Opt | Arg) -> str:
    if isinstance(description, Opt):
        what = description.help
        return f"false to {what[:1].lower()}{what[1:]}" if description.names.startswith("--no-") else what
    return _NAMED.get(description.words, description.metavar.strip("[]"))


def _default(part: Asked) -> object:
    return part.default if isinstance(part.default, bool | str) else ""


def _value(part: Asked, value: Any) -> Any:  # noqa: ANN401 - of the field's type
    typed = part.plain_type(value) if issubclass(part.plain_type, Enum) else value
    return (typed,) if part.many else typed

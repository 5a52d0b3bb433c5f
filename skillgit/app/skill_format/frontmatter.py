"""The frontmatter of a ``SKILL.md``: read, checked with line numbers, and written."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from skillgit.app.skill_format.lint_rules import (
    COMPATIBILITY_LENGTH,
    DESCRIPTION_LENGTH,
    KEYS,
    NAME_LENGTH,
    RuleSeverity,
    broken,
)
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import SkillError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from yaml.nodes import MappingNode, ScalarNode

    from skillgit.app.skill_format.lint_rules import Fault


VERSION = "version"
"""The key under ``metadata`` that holds the version of a release."""


def read(text: str) -> Fields | None:
    """Return the checked frontmatter of a ``SKILL.md``, or None if it has none.

    Raises:
        SkillError: It breaks a rule of Agent Skills.
    """
    head = read_head(text)
    if any(fault.rule == "frontmatter-missing" for fault in head.faults):
        return None
    _check(head.faults)
    return head.fields


def compose(name: str, description: str) -> str:
    """Return a frontmatter block with its fences.

    Raises:
        SkillError: The name cannot name a skill, or the description is empty.
    """
    import yaml  # noqa: PLC0415 - as above

    line = " ".join(re.sub(r"-{3,}", "-", description).split())[:DESCRIPTION_LENGTH].rstrip()
    body = yaml.safe_dump(
        {"name": name, "description": line}, sort_keys=False, allow_unicode=True, width=10 * DESCRIPTION_LENGTH
    )
    block = f"---\n{body}---\n"
    read(block)
    return block


def with_version(text: str, version: str) -> str:
    """Return the document ``text`` with ``metadata.version`` set to ``version``, quoted; every other byte stays.

    Raises:
        SkillError: Its frontmatter is missing or breaks a rule of Agent Skills.
    """
    import yaml  # noqa: PLC0415 - as above

    before = read(text)
    if before is None:
        raise SkillError(f"{DOCUMENT} has no frontmatter to write a version into", hint="skillgit lint")
    block = frontmatter(text)
    inside = inner(block)
    node = yaml.compose(inside, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        raise TypeError("a checked frontmatter is a mapping")
    position, length, insertion = _insertion(inside, node, version)
    position += block.index("\n") + 1
    release = text[:position] + insertion + text[position + length :]
    fields = {**before, "metadata": {**_metadata(before), VERSION: version}}
    if read(release) != fields:
        raise SkillError(
            f"the version cannot be written into the frontmatter of {DOCUMENT} without changing more of it",
            hint=f"write 'metadata:' and below it '  {VERSION}: \"{version}\"' yourself",
        )
    return release


def version_of(text: str) -> str:
    """Return ``metadata.version`` of a document; empty if it has none or its frontmatter breaks a rule."""
    try:
        return _metadata(read(text) or {}).get(VERSION, "")
    except SkillError:
        return ""


def skill_name(text: str) -> str:
    """Return ``text`` as a skill's name: lower case, digits and single hyphens; ``skill`` if nothing is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:NAME_LENGTH].strip("-") or "skill"


def _check(faults: Iterable[Fault]) -> None:
    for fault in faults:
        if fault.severity is RuleSeverity.ERROR:
            raise SkillError(fault.sentence, hint=fault.mend)


def _metadata(fields: Fields) -> dict[str, str]:
    metadata = fields.get("metadata")
    return dict(metadata) if isinstance(metadata, dict) else {}


def _insertion(inside: str, node: MappingNode, version: str) -> tuple[int, int, str]:
    """Return where the version goes, how many characters it takes the place of, and what is written there."""
    import yaml  # noqa: PLC0415 - as above

    line = f'{VERSION}: "{version}"\n'
    indent = " " * node.start_mark.column
    metadata = next(((key, value) for key, value in node.value if key.value == "metadata"), None)
    if metadata is None:
        return len(inside), 0, f"{indent}metadata:\n{indent}  {line}"
    key, value = metadata
    if not isinstance(value, yaml.MappingNode):
        # a metadata without anything under it
        return _line_end(inside, key.end_mark.index), 0, f"{indent}  {line}"
    scalar = next((item for name, item in _texts(value) if name == VERSION), None)
    if scalar is not None:
        return _replaced(inside, scalar, version)
    return value.start_mark.index - value.start_mark.column, 0, f"{' ' * value.start_mark.column}{line}"


def _texts(node: MappingNode) -> Iterator[tuple[str, ScalarNode]]:
    import yaml  # noqa: PLC0415 - as above

    for key, value in node.value:
        if isinstance(value, yaml.ScalarNode):
            yield str(key.value), value


def _replaced(inside: str, node: ScalarNode, version: str) -> tuple[int, int, str]:
    """Return the stretch of the value that is there now, and the new one in its place."""
    start, end = node.start_mark.index, node.end_mark.index
    block = node.style in {"|", ">"}
    gap = " " if start == end and inside[start - 1 : start] == ":" else ""
    return start, end - start, f'{gap}"{version}"{chr(10) * block}'


def _line_end(inside: str, position: int) -> int:
    return inside.index("\n", position) + 1


Fields = dict[str, str | dict[str, str]]

_FENCE = "---"
_LONGEST = 64_000
"""Characters of a frontmatter; name and description have a thousand, and YAML takes its time over nested nonsense."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TEXT_TAG = "tag:yaml.org,2002:str"
_STRANGE = {yaml.AnchorToken: "an anchor", yaml.AliasToken: "an alias", yaml.TagToken: "a tag"}
_WHERE = f"in the frontmatter of {DOCUMENT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the frontmatter of a document says.

    Attributes:
        fields: Key to its text as it is written, metadata as keys and texts; what cannot be read is left out.
        lines: Key to its line.
    """

    fields: Fields
    faults: tuple[Fault, ...]
    lines: dict[str, int]
    present: bool = True


def read_head(text: str) -> Head:
    """Return the frontmatter of the document ``text``."""
    block = frontmatter(text)
    if not block:
        return Head(fields={}, faults=(_absent(text),), lines={}, present=False)
    inside = inner(block)
    if len(inside) > _LONGEST:
        message = broken(
            "frontmatter-length", DOCUMENT, 1, f"the frontmatter of {DOCUMENT} has {len(inside):,} characters"
        )
        return Head(fields={}, faults=(message,), lines={}, present=False)
    position = inside.find(_FENCE)
    if position >= 0:
        line = inside.count("\n", 0, position) + 2
        fence = broken("frontmatter-fence", DOCUMENT, line, f"the frontmatter of {DOCUMENT} contains '{_FENCE}'")
        return Head(fields={}, faults=(fence,), lines={}, present=False)
    try:
        tags = tuple(_tags(inside))
        node = yaml.compose(inside, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        return Head(fields={}, faults=(_unreadable(error),), lines={}, present=False)
    if not isinstance(node, yaml.MappingNode):
        empty = broken("frontmatter-keys", DOCUMENT, 2, f"the frontmatter of {DOCUMENT} has no keys")
        return Head(fields={}, faults=(empty,), lines={}, present=False)
    return _of_node(node, tags)


def inner(block: str) -> str:
    """Return what is between the fences of the frontmatter ``block``."""
    return block.partition("\n")[2].rstrip().removesuffix(_FENCE)


def _absent(text: str) -> Fault:
    if text.startswith(_FENCE) and text.partition("\n")[0].strip() == _FENCE:
        return broken("frontmatter-open", DOCUMENT, 1, f"the frontmatter of {DOCUMENT} is never closed")
    return broken("frontmatter-missing", DOCUMENT, 1, f"the first line of {DOCUMENT} is not '{_FENCE}'")


def _unreadable(error: yaml.YAMLError | RecursionError) -> Fault:
    if isinstance(error, RecursionError):
        return broken("frontmatter-yaml", DOCUMENT, 2, f"the frontmatter of {DOCUMENT} is nested too deeply")
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or "a character is not allowed")
    line = mark.line + 2 if mark is not None else 2
    return broken("frontmatter-yaml", DOCUMENT, line, f"the frontmatter of {DOCUMENT} is not YAML: {problem}")


def _tags(inside: str) -> Iterator[Fault]:
    for token in yaml.scan(inside, Loader=yaml.SafeLoader):
        if type(token) in _STRANGE:
            kind = _STRANGE[type(token)]
            line = token.start_mark.line + 2
            yield broken("frontmatter-tag", DOCUMENT, line, f"the frontmatter of {DOCUMENT} uses {kind}")


def _of_node(node: yaml.MappingNode, tags: tuple[Fault, ...]) -> Head:
    faults = [*tags, *_shape_faults(node)]
    fields: Fields = {}
    lines: dict[str, int] = {}
    for key_node, value in node.value:
        key = str(key_node.value)
        lines.setdefault(key, _line(key_node))
        if key not in KEYS:
            faults.append(broken("key-unknown", DOCUMENT, _line(key_node), f"'{key}' is not allowed {_WHERE}"))
        read = _scalar(key, value, faults)
        if read is not None:
            fields.setdefault(key, read)
    return Head(fields=fields, faults=(*faults, *_value_faults(fields, lines)), lines=lines)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 2


def _shape_faults(node: yaml.MappingNode) -> Iterator[Fault]:
    """Yield what strict YAML refuses about keys, however deep they stand."""
    if node.flow_style:
        yield broken("frontmatter-flow", DOCUMENT, _line(node), f"the frontmatter of {DOCUMENT} uses braces")
    keys: set[str] = set()
    for key, value in node.value:
        name = str(key.value)
        if name in keys:
            twice = f"the frontmatter of {DOCUMENT} has '{name}' twice"
            yield broken("frontmatter-repeated", DOCUMENT, _line(key), twice)
        keys.add(name)
        if isinstance(value, yaml.MappingNode):
            yield from _shape_faults(value)


def _scalar(key: str, node: yaml.Node, faults: list[Fault]) -> str | dict[str, str] | None:
    """Return a value as it is written; what keeps it from being text is added to ``faults``."""
    if isinstance(node, yaml.ScalarNode):
        if node.value and node.tag != _TEXT_TAG and node.style is None:
            kind = node.tag.rpartition(":")[2]
            message = f"'{key}' {_WHERE} is {node.value}, which YAML reads as {kind}"
            faults.append(broken("value-unquoted", DOCUMENT, _line(node), message))
        return str(node.value)
    if key == "metadata" and isinstance(node, yaml.MappingNode):
        inside = {str(name.value): _scalar(f"metadata.{name.value}", value, faults) for name, value in node.value}
        return {name: value for name, value in inside.items() if isinstance(value, str)}
    faults.append(broken("key-not-text", DOCUMENT, _line(node), f"'{key}' {_WHERE} is not text"))
    return None


def _value_faults(fields: Fields, lines: dict[str, int]) -> Iterator[Fault]:
    yield from _name_faults(fields, lines)
    yield from _length_faults("description", fields, lines, DESCRIPTION_LENGTH)
    if "compatibility" in lines:
        yield from _length_faults("compatibility", fields, lines, COMPATIBILITY_LENGTH)
    if isinstance(fields.get("metadata"), str) and fields["metadata"]:
        yield broken("metadata-keys", DOCUMENT, lines["metadata"], f"'metadata' {_WHERE} is text")


def _name_faults(fields: Fields, lines: dict[str, int]) -> Iterator[Fault]:
    name, line = fields.get("name", ""), lines.get("name", 0)
    if not isinstance(name, str) or not name:
        if isinstance(name, str) and ("name" in fields or "name" not in lines):
            yield broken("name-missing", DOCUMENT, line or 1, f"the frontmatter of {DOCUMENT} has no name")
        return
    # skills-ref accepts letters of any script; a folder and a branch have to carry the name too, so ASCII it is
    if not _NAME.fullmatch(name):
        yield broken("name-form", DOCUMENT, line, f"'{name}' cannot name a skill")
    elif len(name) > NAME_LENGTH:
        yield broken("name-length", DOCUMENT, line, f"the name {_WHERE} has {len(name)} characters")


def _length_faults(key: str, fields: Fields, lines: dict[str, int], limit: int) -> Iterator[Fault]:
    value, line = fields.get(key, ""), lines.get(key, 0)
    if key in lines and key not in fields:
        return  # said already: it is not text
    if not isinstance(value, str) or not value.strip():
        yield broken(f"{key}-missing", DOCUMENT, line or 1, f"the frontmatter of {DOCUMENT} has no {key}")
    elif len(value) > limit:
        yield broken(f"{key}-length", DOCUMENT, line, f"the {key} {_WHERE} has {len(value)} characters")

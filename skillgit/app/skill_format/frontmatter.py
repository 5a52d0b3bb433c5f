"""The frontmatter of a ``SKILL.md``: read, checked with line numbers, and written."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from skillgit.app.skill_format.lint_rules import (
    AGENT_KEYS,
    COMPATIBILITY_LENGTH,
    KEYS,
    NAME_LENGTH,
    broken,
)
from skillgit.domain.finding import Finding, Severity
from skillgit.domain.protected_regions import frontmatter, has_marker
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import SkillError
from skillgit.plugin.skill_library import DESCRIPTION_LENGTH

if TYPE_CHECKING:
    from yaml.nodes import MappingNode


PROTOCOLS = "io.modelcontextprotocol/"  # how keys under ``metadata`` begin that MCP keeps for itself (SEP-2640)
VERSION = "version"  # the key under ``metadata`` that holds the version of a release
_TAKEN = frozenset({"key-unknown", "key-not-text", "value-flow", "compatibility-missing", "compatibility-length"})
"""Errors that validators report and that do not prevent using the skill: the frontmatter belongs to people."""


def read(text: str) -> Fields | None:
    """Return the frontmatter of a ``SKILL.md``, None if it has none; a SkillError if an agent could not use it.

    It needs a name and a description. Keys and values beyond the specification are kept and left out of the result.
    """
    head = read_head(text)
    if any(fault.rule == "frontmatter-missing" for fault in head.faults):
        return None
    errors = [fault for fault in head.faults if fault.severity is Severity.ERROR]
    is_usable = {"name", "description"} <= head.fields.keys()
    fault = next((fault for fault in errors if not is_usable or fault.rule not in _TAKEN), None)
    if fault is not None:
        raise SkillError(fault.sentence, hint=fault.hint)
    return head.fields


def verbatim(text: str) -> dict[str, object]:
    """Return all fields of the frontmatter as JSON has them; a SkillError if there is none, or no client can use it."""
    if read(text) is None:
        raise SkillError(f"{DOCUMENT} has no frontmatter", hint="skillgit lint")
    try:
        # what was read above has no anchors, which could unfold into more than memory holds
        fields = _JsonLoader(inner(frontmatter(text))).get_single_data()
        return dict(json.loads(json.dumps(fields, allow_nan=False)))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise SkillError(f"the frontmatter of {DOCUMENT} holds what JSON cannot", hint="skillgit lint") from error


class _JsonLoader(yaml.SafeLoader):
    """Reads dates as text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as the base class has it
        first: [(tag, form) for tag, form in forms if not tag.endswith(":timestamp")]
        for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_BEFORE = re.compile(r"\A(?:[\s\ufeff\u200b\u2060]|<!--.*?-->)*", re.DOTALL)
"""What people have before a frontmatter and do not see as text: blank lines, marks of byte order, comments."""
_KEY = r"[ \t]*(?:name|description)[ \t]*:"
_FIRST_KEY = re.compile(_KEY)
_STRANGE_FENCE = re.compile(
    rf"(?P<fence>[-=~*_+]{{2,}}|[\u2013\u2014]+|[`~]{{3,}}\w*)[ \t]*\n(?:---[ \t]*\n)?(?={_KEY}|[ \t]*name[ \t]*=)"
)
_LATER_FENCE = re.compile(rf"^[ \t]*---[ \t]*\n(?={_KEY})", re.MULTILINE)
_CODE_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,}).*?(?:^[ \t]*(?P=fence)|\Z)", re.DOTALL | re.MULTILINE)
_FIRST_LINES = 40
"""Lines in which a frontmatter in the wrong place is looked for."""


def with_head_first(text: str) -> str:
    """Return ``text`` with its frontmatter at the very beginning, where every agent looks for it.

    Blank lines and a mark of byte order before it go, comments move behind it, and its indentation goes. A SkillError
    if something else is before it, if it is fenced in another way, or if there are two.
    """
    if not frontmatter(text):
        text = _lifted(text)
    block = frontmatter(text)
    body = text.removeprefix(block)
    gap = _BEFORE.match(body)
    blank = gap.group() if gap is not None else ""
    if block and _LATER_FENCE.match(body, len(blank)):
        line = (block + blank).count("\n") + 1
        raise SkillError(f"{DOCUMENT} has a second frontmatter in line {line}", hint="make one of both")
    if block or text.partition("\n")[0].rstrip() == _FENCE:
        return text
    start = text.lstrip()
    if match := _STRANGE_FENCE.match(start):
        fence = match["fence"]
        raise SkillError(f"the frontmatter of {DOCUMENT} is fenced by '{fence}'", hint="put it between two lines '---'")
    if _FIRST_KEY.match(start):
        raise SkillError(
            f"{DOCUMENT} begins with keys and without a line '---'", hint="put '---' before and after them"
        )
    first = "\n".join(_CODE_FENCE.sub(lambda code: "\n" * code.group().count("\n"), text).split("\n")[:_FIRST_LINES])
    if (match := _LATER_FENCE.search(first)) and match.start():
        line = first.count("\n", 0, match.start()) + 1
        raise SkillError(
            f"text comes before the frontmatter of {DOCUMENT}, which begins in line {line}",
            hint="move the frontmatter to the beginning of the file",
        )
    return text


def _lifted(text: str) -> str:
    before = _BEFORE.match(text)
    blank = before.group() if before is not None else ""
    margin = blank.rpartition("\n")[2]
    indent = margin[len(margin.rstrip(" \t")) :]
    lines = [line.removeprefix(indent) for line in text.removeprefix(blank).split("\n")]
    rest = "\n".join(lines)
    block = frontmatter(rest)
    if not block or has_marker(blank) or not any(map(_FIRST_KEY.match, block.split("\n"))):
        is_open = rest.partition("\n")[0].rstrip() == _FENCE and any(map(_FIRST_KEY.match, lines[1:3]))
        return rest if is_open and not block and not has_marker(blank) else text
    comments = blank.strip("\ufeff\u200b\u2060 \t\n")
    return f"{block}\n{comments}\n{rest.removeprefix(block)}" if comments else rest


def compose(name: str, description: str) -> str:
    """Return a frontmatter block with its fences; a SkillError if name or description cannot be used."""
    line = " ".join(re.sub(r"-{3,}", "-", description).split())[:DESCRIPTION_LENGTH].rstrip()
    body = yaml.safe_dump(
        {"name": name, "description": line}, sort_keys=False, allow_unicode=True, width=10 * DESCRIPTION_LENGTH
    )
    block = f"---\n{body}---\n"
    read(block)
    return block


def with_version(text: str, version: str) -> str:
    """Return the document ``text`` with ``metadata.version`` set to ``version``, quoted; every other byte stays."""
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
    fields = {**before, "metadata": {**metadata_of(before), VERSION: version}}
    if read(release) != fields:
        raise SkillError(
            f"the version cannot be written into the frontmatter of {DOCUMENT} without changing more of it",
            hint=f"write 'metadata:' and below it '  {VERSION}: \"{version}\"' yourself",
        )
    return release


def version_of(text: str) -> str:
    """Return ``metadata.version`` of a document; empty if it has none or its frontmatter breaks a rule."""
    try:
        return metadata_of(read(text) or {}).get(VERSION, "")
    except SkillError:
        return ""


def is_installers(key: str) -> bool:
    """Say whether ``key`` of metadata is one that ``gh skill install`` writes into its copy."""
    return key.startswith("github-") or key == "local-path"


def skill_name(text: str) -> str:
    """Return ``text`` as a skill's name: lower case, digits and single hyphens; ``skill`` if nothing is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:NAME_LENGTH].strip("-") or "skill"


def metadata_of(fields: Fields) -> dict[str, str]:
    metadata = fields.get("metadata")
    return dict(metadata) if isinstance(metadata, dict) else {}


def _insertion(inside: str, node: MappingNode, version: str) -> tuple[int, int, str]:
    """Return where the version goes, how many characters it takes the place of, and what is written there."""
    line = f'{VERSION}: "{version}"\n'
    indent = " " * node.start_mark.column
    metadata = next(((key, value) for key, value in node.value if key.value == "metadata"), None)
    if metadata is None:
        return len(inside), 0, f"{indent}metadata:\n{indent}  {line}"
    key, value = metadata
    if not isinstance(value, yaml.MappingNode):
        # a metadata without anything under it
        return inside.index("\n", key.end_mark.index) + 1, 0, f"{indent}  {line}"
    if value.flow_style:
        raise SkillError(f"'metadata' {_WHERE} uses braces", hint="write one 'key: value' per line below it")
    for name, scalar in value.value:
        if name.value == VERSION and isinstance(scalar, yaml.ScalarNode):
            start, end = scalar.start_mark.index, scalar.end_mark.index
            gap = " " if start == end and inside[start - 1 : start] == ":" else ""
            return start, end - start, f'{gap}"{version}"{chr(10) * (scalar.style in {"|", ">"})}'
    return value.start_mark.index - value.start_mark.column, 0, f"{' ' * value.start_mark.column}{line}"


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
    """What the frontmatter of a document says."""

    fields: Fields  # key to its text as it is written, metadata as keys and texts; what cannot be read is left out
    faults: tuple[Finding, ...]
    lines: dict[str, int]  # key to its line
    present: bool = True


def read_head(text: str) -> Head:
    block = frontmatter(text)
    if not block:
        if text.partition("\n")[0].rstrip() == _FENCE:
            return _unusable("open", 1, "is never closed")
        missing = broken("frontmatter-missing", DOCUMENT, 1, f"the first line of {DOCUMENT} is not '{_FENCE}'")
        return Head(fields={}, faults=(missing,), lines={}, present=False)
    inside = inner(block)
    if len(inside) > _LONGEST:
        return _unusable("length", 1, f"has {len(inside):,} characters")
    position = inside.find(_FENCE)
    if position >= 0:
        return _unusable("fence", inside.count("\n", 0, position) + 2, f"contains '{_FENCE}'")
    try:
        tags = tuple(_tags(inside))
        node = yaml.compose(inside, Loader=yaml.SafeLoader)
    except RecursionError:
        return _unusable("yaml", 2, "is nested too deeply")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or "a character is not allowed")
        return _unusable("yaml", mark.line + 2 if mark is not None else 2, f"is not YAML: {problem}")
    return _of_node(node, tags) if isinstance(node, yaml.MappingNode) else _unusable("keys", 2, "has no keys")


def _unusable(rule: str, line: int, problem: str) -> Head:
    fault = broken(f"frontmatter-{rule}", DOCUMENT, line, f"the frontmatter of {DOCUMENT} {problem}")
    return Head(fields={}, faults=(fault,), lines={}, present=False)


def inner(block: str) -> str:
    """Return what is between the fences of the frontmatter ``block``."""
    return block.partition("\n")[2].rstrip().removesuffix(_FENCE)


def _tags(inside: str) -> Iterator[Finding]:
    for token in yaml.scan(inside, Loader=yaml.SafeLoader):
        if type(token) in _STRANGE:
            kind = _STRANGE[type(token)]
            line = token.start_mark.line + 2
            yield broken("frontmatter-tag", DOCUMENT, line, f"the frontmatter of {DOCUMENT} uses {kind}")


def _of_node(node: yaml.MappingNode, tags: tuple[Finding, ...]) -> Head:
    faults = [*tags, *_shape_faults(node)]
    fields: Fields = {}
    lines: dict[str, int] = {}
    for key_node, value in node.value:
        key = str(key_node.value)
        lines.setdefault(key, _line(key_node))
        if key not in KEYS:
            faults.append(_beyond(key, _line(key_node)))
            continue
        scalar = _scalar(key, value, faults)
        if scalar is not None:
            fields.setdefault(key, scalar)
    return Head(fields=fields, faults=(*faults, *_value_faults(fields, lines)), lines=lines)


def _beyond(key: str, line: int) -> Finding:
    """Return the fault of a key that the specification does not have."""
    if agents := AGENT_KEYS.get(key):
        return broken("key-of-agents", DOCUMENT, line, f"'{key}' {_WHERE} is read by {' and '.join(agents)} alone")
    return broken("key-unknown", DOCUMENT, line, f"'{key}' is not allowed {_WHERE}")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 2


def _shape_faults(node: yaml.MappingNode, *, is_inner: bool = False) -> Iterator[Finding]:
    """Yield what strict YAML refuses about keys, at any depth; keys of agents hold what these read."""
    if node.flow_style and not is_inner:
        yield broken("frontmatter-flow", DOCUMENT, _line(node), f"the frontmatter of {DOCUMENT} uses braces")
    elif node.flow_style:
        yield broken("value-flow", DOCUMENT, _line(node), f"a value {_WHERE} uses braces")
    keys: set[str] = set()
    for key, value in node.value:
        name = str(key.value)
        if name in keys:
            twice = f"the frontmatter of {DOCUMENT} has '{name}' twice"
            yield broken("frontmatter-repeated", DOCUMENT, _line(key), twice)
        keys.add(name)
        if isinstance(value, yaml.MappingNode) and (is_inner or name in KEYS):
            yield from _shape_faults(value, is_inner=True)


def _scalar(key: str, node: yaml.Node, faults: list[Finding]) -> str | dict[str, str] | None:
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
    rule = "value-not-text" if key == "allowed-tools" or key.startswith("metadata.") else "key-not-text"
    faults.append(broken(rule, DOCUMENT, _line(node), f"'{key}' {_WHERE} is not text"))
    return None


def _value_faults(fields: Fields, lines: dict[str, int]) -> Iterator[Finding]:
    yield from _name_faults(fields, lines)
    yield from _length_faults("description", fields, lines, DESCRIPTION_LENGTH)
    if "compatibility" in lines:
        yield from _length_faults("compatibility", fields, lines, COMPATIBILITY_LENGTH)
    if isinstance(fields.get("metadata"), str) and fields["metadata"]:
        yield broken("metadata-keys", DOCUMENT, lines["metadata"], f"'metadata' {_WHERE} is text")


def _name_faults(fields: Fields, lines: dict[str, int]) -> Iterator[Finding]:
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


def _length_faults(key: str, fields: Fields, lines: dict[str, int], limit: int) -> Iterator[Finding]:
    value, line = fields.get(key, ""), lines.get(key, 0)
    if key in lines and key not in fields:
        return  # said already: it is not text
    if not isinstance(value, str) or not value.strip():
        yield broken(f"{key}-missing", DOCUMENT, line or 1, f"the frontmatter of {DOCUMENT} has no {key}")
    elif len(value) > limit:
        yield broken(f"{key}-length", DOCUMENT, line, f"the {key} {_WHERE} has {len(value)} characters")

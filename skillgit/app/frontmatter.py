"""The frontmatter of a ``SKILL.md`` under the rules of Agent Skills: reading, checking, writing."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from skillgit.domain.skill import DOCUMENT, frontmatter
from skillgit.errors import SkillError

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
NAME_LENGTH, DESCRIPTION_LENGTH, COMPATIBILITY_LENGTH = 64, 1024, 500

_KEYS_HINT = f"frontmatter may hold {', '.join(KEYS)} and nothing else; put the rest under metadata"


def read(text: str) -> dict[str, str | dict[str, str]] | None:
    """Return the checked frontmatter of a ``SKILL.md``, or None if it has none.

    Raises:
        SkillError: It breaks a rule of Agent Skills.
    """
    block = frontmatter(text)
    if not block:
        if text.startswith("---") and text.partition("\n")[0].strip() == "---":
            raise SkillError(f"the frontmatter of {DOCUMENT} is never closed", hint="end it with a line '---'")
        return None
    inside = block.partition("\n")[2].rstrip().removesuffix("---")
    if "---" in inside:
        raise SkillError(
            f"the frontmatter of {DOCUMENT} contains '---'", hint="validators split there; write it another way"
        )
    values = _values(inside)
    _check(values)
    return values


def compose(name: str, description: str) -> str:
    """Return a frontmatter block with its fences."""
    import yaml  # noqa: PLC0415 - only needed where a skill is brought in

    line = " ".join(re.sub(r"-{3,}", "-", description).split())[:DESCRIPTION_LENGTH].rstrip()
    fields = {"name": name, "description": line}
    _check(dict(fields))
    body = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=10 * DESCRIPTION_LENGTH)
    return f"---\n{body}---\n"


def skill_name(text: str) -> str:
    """Return ``text`` as a skill's name: lower case, digits and single hyphens; ``skill`` if nothing is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:NAME_LENGTH].strip("-") or "skill"


def _values(inside: str) -> dict[str, str | dict[str, str]]:
    import yaml  # noqa: PLC0415 - only needed where a skill is brought in

    try:
        node = yaml.compose(inside, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise SkillError(
            f"the frontmatter of {DOCUMENT} is not YAML: {problem}", hint="quote values that contain a colon"
        ) from error
    if not isinstance(node, yaml.MappingNode):
        raise SkillError(f"the frontmatter of {DOCUMENT} has no keys", hint="it needs name and description")
    return {key: _value(key, value) for key, value in _pairs(node)}


def _pairs(node: MappingNode) -> list[tuple[str, Node]]:
    """Return keys and values as they are written: validators read every scalar as text."""
    if node.flow_style:
        raise SkillError(f"the frontmatter of {DOCUMENT} uses braces", hint="write one 'key: value' per line")
    pairs = [(str(key.value), value) for key, value in node.value]
    keys = [key for key, _ in pairs]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise SkillError(f"the frontmatter of {DOCUMENT} has '{twice}' twice", hint="keep one of them")
    return pairs


def _value(key: str, node: Node) -> str | dict[str, str]:
    import yaml  # noqa: PLC0415 - only needed where a skill is brought in

    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if key == "metadata" and isinstance(node, yaml.MappingNode):
        pairs = _pairs(node)
        if all(isinstance(value, yaml.ScalarNode) for _, value in pairs):
            return {name: str(value.value) for name, value in pairs}
    raise SkillError(f"'{key}' in the frontmatter of {DOCUMENT} is not text", hint="only metadata may hold keys itself")


def _check(values: dict[str, str | dict[str, str]]) -> None:
    for key in values:
        if key not in KEYS:
            raise SkillError(f"'{key}' is not allowed in the frontmatter of {DOCUMENT}", hint=_KEYS_HINT)
    _check_name(values.get("name"))
    _check_length("description", values.get("description", ""), DESCRIPTION_LENGTH)
    if "compatibility" in values:
        _check_length("compatibility", values["compatibility"], COMPATIBILITY_LENGTH)
    if isinstance(values.get("metadata", {}), str) and values["metadata"]:
        raise SkillError(f"'metadata' in the frontmatter of {DOCUMENT} is text", hint="write keys and values under it")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SkillError(f"the frontmatter of {DOCUMENT} has no name", hint="add 'name: <folder name>'")
    # skills-ref accepts letters of any script; a folder and a branch have to carry the name too, so ASCII it is
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or len(name) > NAME_LENGTH:
        raise SkillError(
            f"'{name}' cannot name a skill",
            hint=f"use lower-case letters, digits and single hyphens, {NAME_LENGTH} characters at most",
        )


def _check_length(key: str, value: object, limit: int) -> None:
    if not isinstance(value, str) or not value.strip():
        raise SkillError(f"the frontmatter of {DOCUMENT} has no {key}", hint=f"add '{key}: …'")
    if len(value) > limit:
        raise SkillError(
            f"the {key} in the frontmatter of {DOCUMENT} has {len(value)} characters",
            hint=f"{limit} are allowed",
        )

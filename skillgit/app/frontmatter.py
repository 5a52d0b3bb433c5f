"""The frontmatter of a ``SKILL.md`` under the rules of Agent Skills: reading, checking, writing."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from skillgit.app.agent_skills.rules import DESCRIPTION_LENGTH, NAME_LENGTH, Severity
from skillgit.domain.skill import DOCUMENT, frontmatter
from skillgit.errors import SkillError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from yaml.nodes import MappingNode, ScalarNode

    from skillgit.app.agent_skills.fields import Fields
    from skillgit.app.agent_skills.rules import Fault

VERSION = "version"
"""The key under ``metadata`` that holds the version of a release."""


def read(text: str) -> Fields | None:
    """Return the checked frontmatter of a ``SKILL.md``, or None if it has none.

    Raises:
        SkillError: It breaks a rule of Agent Skills.
    """
    from skillgit.app.agent_skills.fields import read_head  # noqa: PLC0415 - yaml is needed where a skill is brought in

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

    from skillgit.app.agent_skills.fields import inner  # noqa: PLC0415 - as above

    before = read(text)
    if before is None:
        raise SkillError(f"{DOCUMENT} has no frontmatter to write a version into", hint="skillgit lint")
    block = frontmatter(text)
    inside = inner(block)
    node = yaml.compose(inside, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        raise TypeError("a checked frontmatter is a mapping")
    place, length, written = _insertion(inside, node, version)
    place += block.index("\n") + 1
    released = text[:place] + written + text[place + length :]
    wanted = {**before, "metadata": {**_metadata(before), VERSION: version}}
    if read(released) != wanted:
        raise SkillError(
            f"the version cannot be written into the frontmatter of {DOCUMENT} without changing more of it",
            hint=f"write 'metadata:' and below it '  {VERSION}: \"{version}\"' yourself",
        )
    return released


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
        if fault.severity is Severity.ERROR:
            raise SkillError(fault.sentence, hint=fault.mend)


def _metadata(fields: Fields) -> dict[str, str]:
    found = fields.get("metadata")
    return dict(found) if isinstance(found, dict) else {}


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
    held = next((found for name, found in _texts(value) if name == VERSION), None)
    if held is not None:
        return _replaced(inside, held, version)
    return value.start_mark.index - value.start_mark.column, 0, f"{' ' * value.start_mark.column}{line}"


def _texts(node: MappingNode) -> Iterator[tuple[str, ScalarNode]]:
    import yaml  # noqa: PLC0415 - as above

    for key, value in node.value:
        if isinstance(value, yaml.ScalarNode):
            yield str(key.value), value


def _replaced(inside: str, held: ScalarNode, version: str) -> tuple[int, int, str]:
    """Return the stretch of the value that stands there now, and the new one in its place."""
    start, end = held.start_mark.index, held.end_mark.index
    block = held.style in {"|", ">"}
    gap = " " if start == end and inside[start - 1 : start] == ":" else ""
    return start, end - start, f'{gap}"{version}"{chr(10) * block}'


def _line_end(inside: str, place: int) -> int:
    return inside.index("\n", place) + 1

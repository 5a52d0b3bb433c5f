"""Where a run's first skill comes from: a skill folder, a ``SKILL.md`` or a plain Markdown file, made a valid skill."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.app.skill_format import frontmatter
from skillgit.domain.prose import clean_line
from skillgit.domain.protected_regions import SLOW_END, SLOW_START
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import SkillError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LEFT_OUT = frozenset({".git", "__pycache__", ".DS_Store"})
_EXECUTABLE = 0o111
_PLACEHOLDER = "(No rules yet.)"
_REFERENCE_SLOW = re.compile(r"<!--\s*(SLOW_UPDATE_START|SLOW_UPDATE_END)\s*-->")
_REFERENCE_APPENDIX = re.compile(r"[ \t]*<!--\s*APPENDIX_(?:START|END)\s*-->[ \t]*\n?")


def read_seed(path: Path) -> Skill:
    """Return the skill at ``path`` with whatever it lacks of a valid Agent Skill.

    A folder is taken whole. A ``SKILL.md`` brings its folder along if the folder bears the skill's name; any other
    Markdown file becomes the ``SKILL.md`` of a new skill. A missing frontmatter is written from the text. The markers
    of the reference implementation become those of skillgit.

    Raises:
        SkillError: There is no skill at ``path``, or it breaks a rule of Agent Skills.
    """
    if path.is_dir():
        return _from_folder(path)
    if not path.is_file():
        raise SkillError(f"there is no skill at {path}", hint=f"name a folder with a {DOCUMENT}, or a Markdown file")
    text = _text(path.read_bytes(), path.name)
    if path.name == DOCUMENT and (frontmatter.read(text) or {}).get("name") == path.parent.resolve().name:
        return _from_folder(path.parent)
    stem = path.parent.resolve().name if path.name == DOCUMENT else path.stem
    return normalise(Skill(frontmatter.skill_name(stem), {DOCUMENT: text.encode()}))


def starter(name: str) -> Skill:
    """Return a skill without rules, for a repository that begins with nothing."""
    title = clean_line(name.replace("-", " ")).capitalize()
    return normalise(Skill(frontmatter.skill_name(name), {DOCUMENT: f"# {title}\n\n{_PLACEHOLDER}\n".encode()}))


def normalise(skill: Skill) -> Skill:
    """Return ``skill`` as a valid Agent Skill: frontmatter, our markers, one kind of line end in Markdown.

    Raises:
        SkillError: Its frontmatter breaks a rule of Agent Skills, or a text in it is too long.
    """
    skill.bounded()
    files = {path: _unix(content) if path.endswith(".md") else content for path, content in skill.files.items()}
    text = _our_markers(_text(files[DOCUMENT], DOCUMENT))
    fields = frontmatter.read(text)
    if fields is None:
        name = frontmatter.skill_name(skill.name)
        text = f"{frontmatter.compose(name, described(text, name))}\n{text}"
    else:
        name = str(fields["name"])
    return Skill(name, {**files, DOCUMENT: text.encode()}, skill.executable)


def _from_folder(folder: Path) -> Skill:
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    for path in _walk(folder):
        inside = path.relative_to(folder).as_posix()
        files[inside] = path.read_bytes()
        if path.stat().st_mode & _EXECUTABLE:
            executable.add(inside)
    if DOCUMENT not in files and "skill.md" in files:
        files[DOCUMENT] = files.pop("skill.md")
        executable.discard("skill.md")
    return normalise(Skill(frontmatter.skill_name(folder.resolve().name), files, frozenset(executable)))


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_OUT:
            continue
        if path.is_symlink():
            raise SkillError(f"{path} is a symbolic link", hint="a skill holds plain files; copy the target instead")
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file():
            yield path


def _text(content: bytes, name: str) -> str:
    try:
        return _unix(content).decode()
    except UnicodeDecodeError as error:
        raise SkillError(f"{name} is not UTF-8", hint="save it as UTF-8") from error


def _unix(content: bytes) -> bytes:
    return content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def _our_markers(text: str) -> str:
    """Return ``text`` with the slow region of the reference as ours, and without its appendix markers."""
    ours = {"SLOW_UPDATE_START": SLOW_START, "SLOW_UPDATE_END": SLOW_END}
    text = _REFERENCE_SLOW.sub(lambda match: ours[match.group(1)], text)
    without = _REFERENCE_APPENDIX.sub("", text)
    return text if without == text else f"{without.rstrip()}\n"


def described(text: str, name: str) -> str:
    """Return a description from the first heading and the first sentence of prose; without one, from the headings."""
    lines = [line.strip() for line in text.splitlines()]
    headings = [line.lstrip("#").strip() for line in lines if line.startswith("#")]
    heading = headings[0] if headings else name.replace("-", " ")
    prose = next((paragraph for paragraph in _paragraphs(text) if paragraph != _PLACEHOLDER), "")
    summary = re.split(r"(?<=[.!?])\s", prose, maxsplit=1)[0]
    if not summary and headings[1:]:
        summary = f"Covers: {', '.join(headings[1:])}."
    return clean_line(f"{heading}. {summary}" if summary else f"{heading}.")


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        prose = [
            line for line in paragraph.splitlines() if not re.match(r"\s*(#|[-*+] |\d+[.)] |<!--|---|\||```)", line)
        ]
        prose_text = clean_line(" ".join(prose))
        if prose_text and not prose_text.startswith("("):
            yield prose_text

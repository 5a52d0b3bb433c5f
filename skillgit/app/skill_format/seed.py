"""Where a run's first skill comes from: a skill folder, a ``SKILL.md`` or a plain Markdown file, made a valid skill."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from skillgit.app.skill_format import frontmatter
from skillgit.domain.protected_regions import SLOW_END, SLOW_START
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.model_text import clean_line
from skillgit.errors import SkillError
from skillgit.store.ignore_rules import ignore_rules

_LEFT_OUT = frozenset({".git", "__pycache__", ".DS_Store", "node_modules", ".venv", ".pytest_cache", ".mypy_cache"})
_CREDENTIALS = re.compile(
    r"(?i)\.env(?:rc|\.(?!example$|sample$|template$|dist$).+)?|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.htpasswd"
    r"|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)|.*\.(?:pem|p12|pfx|kdbx|jks)"
)
"""Names of files that hold credentials; a commit of one cannot be taken back once it is pushed."""
_EXECUTABLE = 0o111
_PLACEHOLDER = "(No rules yet.)"
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s+")
_REFERENCE_SLOW = re.compile(r"<!--\s*(SLOW_UPDATE_START|SLOW_UPDATE_END)\s*-->")
_REFERENCE_APPENDIX = re.compile(r"[ \t]*<!--\s*APPENDIX_(?:START|END)\s*-->[ \t]*\n?")


def read_seed(path: Path) -> Skill:
    """Return the skill at ``path`` with everything that it lacks of a valid Agent Skill.

    A folder is taken whole, but for what git ignores there and files that hold credentials. A ``SKILL.md`` brings its
    folder along if the folder bears the skill's name; any other Markdown file becomes the ``SKILL.md`` of a new skill.
    A missing frontmatter is written from the text. The markers of the reference implementation become skillgit's.
    """
    if path.is_dir():
        return _from_folder(path)
    if not path.is_file():
        raise SkillError(f"there is no skill at {path}", hint=f"name a folder with a {DOCUMENT}, or a Markdown file")
    if _brings_folder(path):
        return _from_folder(path.parent)
    text = _text(path.read_bytes(), path.name)
    stem = path.parent.resolve().name if path.name == DOCUMENT else path.stem
    return normalise(Skill(frontmatter.skill_name(stem), {DOCUMENT: text.encode()}))


def starter(name: str) -> Skill:
    """Return a skill without rules, for a repository that begins with nothing."""
    title = clean_line(name.replace("-", " ")).capitalize()
    return normalise(Skill(frontmatter.skill_name(name), {DOCUMENT: f"# {title}\n\n{_PLACEHOLDER}\n".encode()}))


def normalise(skill: Skill) -> Skill:
    """Return ``skill`` as a valid Agent Skill: frontmatter, our markers, one kind of line end in Markdown."""
    skill.bounded()
    files = {path: _unix(content) if path.endswith(".md") else content for path, content in skill.files.items()}
    ours = {"SLOW_UPDATE_START": SLOW_START, "SLOW_UPDATE_END": SLOW_END}
    text = _REFERENCE_SLOW.sub(lambda match: ours[match[1]], _text(files[DOCUMENT], DOCUMENT))
    without = _REFERENCE_APPENDIX.sub("", text)
    text = frontmatter.with_head_first(text if without == text else f"{without.rstrip()}\n")
    fields = frontmatter.read(text)
    if fields is None:
        if not text.strip():
            raise SkillError(
                f"{DOCUMENT} of {skill.name} is empty",
                hint="write what the agent shall do; a heading and a rule are enough",
            )
        name = frontmatter.skill_name(skill.name)
        text = f"{frontmatter.compose(name, described(text, name))}\n{text}"
    else:
        name = str(fields["name"])
    return Skill(name, {**files, DOCUMENT: text.encode()}, skill.executable)


def left_out(path: Path) -> tuple[str, ...]:
    """Return what :func:`read_seed` leaves out of the folder at ``path``, because git ignores it or it holds keys."""
    folder = path if path.is_dir() else path.parent
    is_folder = path.is_dir() or _brings_folder(path)
    return (
        tuple(sorted(_relative(entry, folder) for entry, is_kept in _walk(folder) if not is_kept)) if is_folder else ()
    )


def _from_folder(folder: Path) -> Skill:
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    for path, is_kept in _walk(folder):
        inside = _relative(path, folder)
        if not is_kept:
            continue
        files[inside] = path.read_bytes()
        if path.stat().st_mode & _EXECUTABLE:
            executable.add(inside)
    if DOCUMENT not in files and "skill.md" in files:
        files[DOCUMENT] = files.pop("skill.md")
        executable.discard("skill.md")
    return normalise(Skill(frontmatter.skill_name(folder.resolve().name), files, frozenset(executable)))


def _walk(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files of a seed, and files and folders that are left out of it, which are not entered."""
    with ignore_rules(folder) as rules:
        waiting = [folder.resolve()]
        while waiting:
            for path in sorted(waiting.pop().iterdir()):
                if path.name in _LEFT_OUT:
                    continue
                if rules.ignores(path) or (path.is_file() and _CREDENTIALS.fullmatch(path.name)):
                    yield path, False
                elif path.is_symlink():
                    raise SkillError(
                        f"{path} is a symbolic link", hint="a skill holds plain files; copy the target instead"
                    )
                elif path.is_dir():
                    waiting.append(path)
                elif path.is_file():
                    yield path, True


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder.resolve()).as_posix()


def _brings_folder(path: Path) -> bool:
    """Say whether the ``SKILL.md`` at ``path`` is that of a folder that bears the skill's name."""
    text = frontmatter.with_head_first(_text(path.read_bytes(), path.name))
    return path.name == DOCUMENT and (frontmatter.read(text) or {}).get("name") == path.parent.resolve().name


def _text(content: bytes, name: str) -> str:
    try:
        return _unix(content).decode()
    except UnicodeDecodeError as error:
        raise SkillError(f"{name} is not UTF-8", hint="save it as UTF-8") from error


def _unix(content: bytes) -> bytes:
    return re.sub(rb"\r+\n|\r", b"\n", content.removeprefix(b"\xef\xbb\xbf"))


def described(text: str, name: str) -> str:
    """Return a description from the first heading and the first sentence of prose; without one, from the headings."""
    lines = [line.strip() for line in text.splitlines()]
    headings = [line.lstrip("#").strip() for line in lines if line.startswith("#")]
    heading = headings[0] if headings else name.replace("-", " ")
    prose = next((paragraph for paragraph in _paragraphs(text) if paragraph != _PLACEHOLDER), "")
    summary = re.split(r"(?<=[.!?])\s", prose, maxsplit=1)[0]
    if not summary and headings[1:]:
        summary = f"Covers: {', '.join(headings[1:])}."
    if not summary and not headings:
        heading = next(filter(None, (_ITEM.sub("", line) for line in lines if _ITEM.match(line))), heading).rstrip(".")
    return clean_line(f"{heading}. {summary}" if summary else f"{heading}.")


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        prose = [
            line for line in paragraph.splitlines() if not re.match(r"\s*(#|[-*+] |\d+[.)] |<!--|---|\||```)", line)
        ]
        prose_text = clean_line(" ".join(prose))
        if prose_text and not prose_text.startswith("("):
            yield prose_text

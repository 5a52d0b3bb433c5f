"""What a candidate must not do, found out before it costs a rollout.

It must not break the frame, quote what is held out, repeat what was refused, or change files that steps may not change.
Scripts and data that it changes have to parse; nothing of them is executed for that. What a skill checks of itself
(``optimizer.check``) is executed in the sandbox and nowhere else.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

from rapidfuzz import fuzz

from skillgit.domain.document_rewrite import has_second_frontmatter
from skillgit.domain.edit import QUARANTINED, Edit, EditReport, Op, normalised
from skillgit.domain.evaluation import Split
from skillgit.domain.event import Event
from skillgit.domain.gate_decision import Decision
from skillgit.domain.ids import digest
from skillgit.domain.leaks import Leak, SecretIndex, build_index, find_leak
from skillgit.domain.proposal import Change, Origin, changed_lines
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN
from skillgit.errors import ConfigError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.environment import secrets_of
from skillgit.plugin.shortcuts import cue_texts
from skillgit.plugin.skill_library import changes_description_alone
from skillgit.sandbox import Result

with loaded_on_use():
    import yaml

    from skillgit import sandbox as sandboxes

if TYPE_CHECKING:
    from skillgit.engine.session import Session, Task


ALIKE = 95.0  # likeness of two changes, of 100, from which on the later one is a repetition
_DECISIVE = re.compile(r"\b(?:no|not|never|none|nor|without|only|unless|except|always|\w+n['\u2019]t|\d[\d.,]*)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a candidate is not measured: a title for the commit and the reasons."""

    title: str
    why: str


def refusal(
    session: Session, state: RunState, skill: Skill, candidate: Skill, *, base: int | None = None
) -> Refusal | None:
    """Return why ``candidate`` is not to be measured; ``base`` is the version ``skill``, the current one by default."""
    if unfit := _no_agent_skill(session, skill, candidate) or _excess(candidate):
        return unfit
    changes = changed_lines(skill, candidate)
    return (
        _quoting(session, skill, changes)
        or _too_long(session, skill, candidate)
        or _long_file(session, skill, candidate)
        or _repeated(state, changes, state.version if base is None else base)
    )


def skill_tokens(skill: Skill) -> int:
    """Return about how many tokens the text of ``SKILL.md`` has, regions included and frontmatter left out."""
    return ceil(len(skill.document.removeprefix(frontmatter(skill.document))) / CHARACTERS_PER_TOKEN)


def file_tokens(skill: Skill) -> dict[str, int]:
    """Return about how many tokens each text file except ``SKILL.md`` has."""
    texts = {path: text for path, text in skill.text_files() if path != DOCUMENT}
    return {path: ceil(len(text) / CHARACTERS_PER_TOKEN) for path, text in texts.items()}


def _no_agent_skill(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    """Return the refusal of another frontmatter than the base's, but for a description that may be trained."""
    before, after = frontmatter(skill.document), frontmatter(candidate.document)
    if has_second_frontmatter(candidate.document) and not has_second_frontmatter(skill.document):
        why = "The candidate has a second frontmatter below that of SKILL.md."
        return Refusal(title="invalid: there are two frontmatters", why=why)
    if skill.name == candidate.name and before == after:
        return None
    files = session.settings.optimizer.trainable
    if skill.name == candidate.name and files.description:
        is_body_free = files.covers(DOCUMENT)
        same_body = candidate.document.removeprefix(after) == skill.document.removeprefix(before)
        if changes_description_alone(skill.document, candidate.document) and (is_body_free or same_body):
            return None
    why = "The candidate changes the frontmatter of SKILL.md, which belongs to people."
    return Refusal(title="invalid: the frontmatter is not that of the base", why=why)


def _excess(candidate: Skill) -> Refusal | None:
    """Return the refusal of a text that could not be read in again; no setting allows it."""
    if not candidate.excess:
        return None
    why = f"With the candidate, {candidate.excess}."
    return Refusal(title="too long: a text is beyond what a skill can hold", why=why)


def _quoting(session: Session, skill: Skill, changes: Iterable[Change]) -> Refusal | None:
    leak = leak_in(session, skill, "\n".join(change.text for change in changes if change.sign == "+"))
    return (
        None
        if leak is None
        else Refusal(title=f"the candidate gives {'an item' if leak.item else leak.subject} away", why=f"{leak}.")
    )


def _too_long(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    limit, length, before = session.settings.optimizer.max_skill_tokens, skill_tokens(candidate), skill_tokens(skill)
    if length <= max(limit, before):
        return None
    return Refusal(
        title=f"too long: {length} tokens, {limit} are allowed",
        why=f"The candidate has about {length} tokens where optimizer.max_skill_tokens allows {limit}.",
    )


def _long_file(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    limit, before = session.settings.optimizer.max_file_tokens, dict(skill.text_files())
    for path, text in candidate.text_files():
        if path == DOCUMENT or text == before.get(path):
            continue
        length, old_length = (ceil(len(content) / CHARACTERS_PER_TOKEN) for content in (text, before.get(path, "")))
        if length > max(limit, old_length):
            return Refusal(
                title=f"too long: {path} has {length} tokens, {limit} are allowed",
                why=f"{path} would have about {length} tokens where optimizer.max_file_tokens allows {limit}.",
            )
    return None


def _repeated(state: RunState, changes: Iterable[Change], base: int) -> Refusal | None:
    """Return the refusal of changes that a step on the same version made before, and that the gate rejected."""
    key = comparable(changes)
    for step in reversed(state.memory):
        if step.decision is Decision.REJECT and step.base == base and alike(key, comparable(step.changes)):
            return _repetition(step)
    return None


def _repetition(step: Event) -> Refusal:
    name = f"the reflection on epoch {step.epoch}" if step.origin is Origin.META else f"step {step.step}"
    if step.by_hand:
        name = f"the {step.origin} after step {step.step}"
    verdict, bound = step.verdict, "at most " if step.is_bound else ""
    why = (
        f"The changed lines are those of {name}, or nearly. On the same version they scored"
        f" {bound}{verdict.score:.4f} against {verdict.current:.4f} and were rejected."
    )
    return Refusal(title=f"repeats what {name} tried", why=why)


def comparable(changes: Iterable[Change]) -> list[str]:
    """Return changes as sorted signed lines without case, bullets and surplus space."""
    return sorted(f"{change.sign}{normalised(change.text)}" for change in changes)


def alike(ours: list[str], theirs: list[str]) -> bool:
    """Say whether two changes, as sorted signed lines, are nearly the same; numbers and words like "not" must match."""
    for sign in "+-":
        first, second = ("\n".join(line for line in lines if line.startswith(sign)) for lines in (ours, theirs))
        same_decisive = sorted(_DECISIVE.findall(first)) == sorted(_DECISIVE.findall(second))
        if first != second and not (same_decisive and fuzz.ratio(first, second, score_cutoff=ALIKE) >= ALIKE):
            return False
    return True


class LeakLint:
    """Keeps the index of a session's secrets, which is made when it is first needed."""

    __slots__ = ("_index", "_shown", "_task")

    def __init__(self) -> None:
        self._shown = frozenset[str]()
        self._index: SecretIndex | None = None
        self._task: Task | None = None

    def index(self, session: Session) -> SecretIndex:
        if self._index is None:
            task = self._task or session.task
            secrets = (
                (item.id, split, secrets_of(task.environment, item)) for split in Split for item in task.items[split]
            )
            self._shown = frozenset(item.id for item in task.items[Split.TRAIN])
            self._index = build_index(secrets, cues=cue_texts(task.environment, task.items))
        return self._index

    def find(self, session: Session, text: str, base: str) -> Leak | None:
        """Return what ``text`` gives away and ``base`` does not; an item that steps do not show stays unnamed."""
        leak = find_leak(self.index(session), text, base)
        return leak and replace(leak, is_held_out=bool(leak.item) and leak.item not in self._shown)

    def cover(self, task: Task) -> None:
        """Keep the secrets of all items of ``task``, also where a session with fewer items asks."""
        self._task = task

    def prepare(self, session: Session) -> None:
        if session.settings.evaluation.leak_lint and self._index is None:
            asyncio.get_running_loop().run_in_executor(None, self.index, session)


def leak_in(session: Session, skill: Skill, text: str) -> Leak | None:
    """Return the secret that ``text``, meant for ``skill``, quotes; None without one or without the lint."""
    if not session.settings.evaluation.leak_lint or not text.strip():
        return None
    base = "\n".join([*(content for _, content in skill.text_files()), session.task.environment.taxonomy()])
    return session.leaks.find(session, text, base)


def told(session: Session, skill: Skill, reports: Iterable[EditReport], text: str) -> str:
    """Return ``text`` without paragraphs that give an item away, as those around a quarantined edit usually do."""
    if not any(report.detail.startswith(QUARANTINED) for report in reports):
        return text

    paragraphs = [(paragraph, leak_in(session, skill, paragraph)) for paragraph in text.split("\n\n")]
    return "\n\n".join(
        paragraph if leak is None else f"(left out: it gives {leak.subject} away)" for paragraph, leak in paragraphs
    )


CHECK_SECONDS = 60.0  # what a self-check may take
_BASH_SECONDS = 10.0


async def invalid(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    """Return why ``candidate``, made of ``skill``, is broken; None if nothing speaks against trying it.

    An EnvironmentFaultError if the sandbox failed, which says nothing of the candidate; a SandboxError if there is a
    self-check, and this machine has no sandbox.
    """
    for path, content in candidate.files.items():
        if skill.files.get(path) != content and (fault := fault_in(path, content)):
            return Refusal(title=f"invalid: {path} does not parse", why=f"{path} does not parse: {fault}.")
    complaint = await self_check(session, candidate)
    return None if not complaint else Refusal(title="invalid: the skill fails its self-check", why=complaint)


async def check_seed(session: Session, skill: Skill) -> None:
    """Refuse to train a skill that fails its own self-check, for no candidate could pass it."""
    if complaint := await self_check(session, skill):
        raise ConfigError(
            f"the skill that training starts from fails optimizer.check: {' '.join(complaint.split())}",
            hint="fix the skill or the command; every candidate would fail it too",
        )


async def self_check(session: Session, skill: Skill) -> str:
    """Return what its self-check, of which the ledger keeps the result, says against ``skill``; empty if nothing."""
    command = session.settings.optimizer.check_command
    if not command:
        return ""

    async def produce() -> tuple[object, bool]:
        return {"said": await _checked(command, skill)}, True

    key = digest(["self-check", skill.digest, list(command)])
    row = cast("Mapping[str, object]", await session.calls.rollout(key, produce))
    return str(row["said"])


async def _checked(command: tuple[str, ...], skill: Skill) -> str:

    sandbox = sandboxes.Sandbox()
    limits = sandboxes.Limits(wall_s=CHECK_SECONDS)
    like = sandbox.python_job("", limits=limits)
    program, *arguments = command
    python = program in {"python", "python3"}
    job = sandboxes.Job(
        command=(sandbox.python if python else program, *arguments),
        files=skill.files,
        environment=like.environment if python else {},
        limits=limits,
        collect=(),
    )
    result = await sandbox.run(job)
    return "" if result.ok else _told(command, result)


def _told(command: tuple[str, ...], result: Result) -> str:
    how = {"exit": f"ended with exit code {result.exit_code}", "timeout": f"took longer than {CHECK_SECONDS:g} seconds"}
    output = f"{result.stdout.rstrip()}\n{result.stderr.rstrip()}".strip()[-600:]
    sentence = f"{' '.join(command)} {how.get(result.ended, f'was ended by the sandbox: {result.ended}')}"
    return f"{sentence}: {output}" if output else f"{sentence}."


def fault_in(path: str, content: bytes) -> str:
    """Return why the script or data file at ``path`` does not parse, as a clause; empty if it does or is neither."""
    parse = _PARSERS.get(PurePosixPath(path).suffix.casefold()) or _by_first_line(content)
    if parse is None:
        return ""
    try:
        return parse(content)
    except SyntaxError as error:
        return f"{error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return " ".join(str(error).split()) or type(error).__name__


def _by_first_line(content: bytes) -> Callable[[bytes], str] | None:
    first = content.partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return None
    names = {PurePosixPath(word).name.rstrip("0123456789.") for word in first[2:].decode(errors="replace").split()}
    return _python if "python" in names else _shell if names & {"sh", "bash"} else None


def _python(content: bytes) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(content, "script", "exec", dont_inherit=True)
    return ""


def _shell(content: bytes) -> str:
    bash = shutil.which("bash")
    if bash is None:
        raise ConfigError("a shell script of the skill cannot be checked: bash is not installed", hint="install bash")
    try:
        # -n reads the commands and executes none.
        process = subprocess.run(  # noqa: S603 - a fixed program; the script is its input
            [bash, "--norc", "-n"],
            input=content,
            capture_output=True,
            env={"LC_ALL": "C"},
            timeout=_BASH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"bash did not read it to its end in {_BASH_SECONDS:g} seconds"
    lines = process.stderr.decode(errors="replace").splitlines()
    return "" if process.returncode == 0 else (lines[0].removeprefix(f"{bash}: ") if lines else "bash refuses it")


def _json(content: bytes) -> str:
    json.loads(content)
    return ""


def _toml(content: bytes) -> str:
    tomllib.loads(content.decode())
    return ""


def _yaml(content: bytes) -> str:

    try:
        for _ in yaml.compose_all(content, Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as error:
        return " ".join(str(error).split())
    return ""


_PARSERS: Mapping[str, Callable[[bytes], str]] = {
    ".py": _python,
    ".sh": _shell,
    ".bash": _shell,
    ".json": _json,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}


def edit_lint(session: Session, base: Skill) -> Callable[[Skill, Edit], str]:
    """Return what says why a step may not make an edit (a secret is quoted, the file is off limits), or ""."""
    files = session.settings.optimizer.trainable

    def lint(skill: Skill, edit: Edit) -> str:
        if leak := leak_in(session, base, edit.content):
            return str(leak)
        if files.covers(edit.file):
            return ""
        if edit.file in skill.files:
            return f"optimizer.files does not name '{edit.file}'"
        # Without the setting, there is no talk of files that could be made.
        is_allowed = files.beyond_document and edit.op is Op.APPEND
        advice = f", and optimizer.files lets no step make it: {', '.join(files.patterns)}" if is_allowed else ""
        return f"the skill has no text file '{edit.file}'{advice}"

    return lint


def check_files(session: Session, skill: Skill) -> None:
    files = session.settings.optimizer.trainable
    if not files.beyond_document:
        return
    texts = [path for path, _ in skill.text_files()]
    for path in files.patterns:
        if path in skill.files and path not in texts:
            raise ConfigError(
                f"optimizer.files has '{path}', which is not text in skill '{skill.name}'", hint="only text is trained"
            )
    if not any(files.covers(path) for path in texts):
        raise ConfigError(
            f"optimizer.files names no file of skill '{skill.name}': {', '.join(files.patterns)}",
            hint=f"it has {', '.join(texts[:8])}",
        )

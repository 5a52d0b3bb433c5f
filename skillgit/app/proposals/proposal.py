"""What a proposal is: how it ended for a skill, the pin that it rests on, and the commit message with its evidence.

A stage that history can show is read from history: the run says how far the training is, a trailer of the branch's tip
which version is proposed, the remote's branch and its pull requests what was published. Only the pin is a file: which
commit the skill was taken from, under which name its run goes on, and how the proposal ended.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.errors import ExitCode, SkillgitError
from skillgit.files import read_plain, write_file
from skillgit.plugin.data_rows import read_rows
from skillgit.store.promotion import PROPOSED
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from skillgit.app.measure.pull_request_verdicts import SkillReport

_SHORT = 12
_AGENT = re.compile(r"[a-z]{1,20}")
"""The name of an agent, as a row may have it: what else it says stays out of a message."""
_MOST = 1 << 16  # bytes of a pin that are read


class Upshot(StrEnum):
    """How it ended for a skill."""

    PROPOSED = "proposed"
    """Its branch has a better version now."""
    STANDS = "stands"
    """It was proposed before, and nothing is new since."""
    NOTHING_NEW = "nothing new"
    """It was trained before on the same text and tasks."""
    NO_BETTER = "no better version"
    CANNOT_TELL = "cannot tell"
    """A version scores higher, and that may be chance."""
    BEHIND = "behind"
    """Another proposal of the skill exists, and scores no lower on the same items."""
    UNFINISHED = "unfinished"
    """A cap or Ctrl-C ended the work; the same command goes on."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGain:
    """By how much a text beats the one that it would replace, on items that decided nothing else."""

    split: str
    metric: str
    policy: str
    alpha: float  # the level of the test
    n: int  # items that have a score for both texts
    before: float | None
    after: float | None
    delta: float
    interval: tuple[float, float] | None  # 95 %, paired; None for too few items
    too_few: str = ""  # that no outcome on so few items is more than chance; empty where one is
    p: float  # of the paired test, one-sided
    tokens: str = ""  # tokens of the target an item, after and before; empty where the gate did not count them

    @classmethod
    def of(cls, report: SkillReport, split: str) -> MeasuredGain | None:
        """Return the gain that the gate's report on one skill shows; None without items that have both scores."""
        comparison = report.compared
        if comparison is None or comparison.delta is None:
            return None
        return cls(
            split=split,
            metric=report.metric,
            policy=report.policy,
            alpha=comparison.verdict.terms.alpha,
            n=comparison.n,
            before=report.base.score,
            after=report.head.score,
            delta=comparison.delta,
            interval=comparison.interval,
            too_few=comparison.too_few,
            p=comparison.verdict.p,
            tokens=comparison.verdict.token_words,
        )

    @property
    def text(self) -> str:
        interval = self.too_few if self.interval is None else "95 % {:+.4f} to {:+.4f}".format(*self.interval)
        tokens = f", {self.tokens}" if self.tokens else ""
        return f"{self.delta:+.4f}, {interval}, p {self.p:.4f} one-sided, n {self.n}, {self.split} split{tokens}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillProposal:
    """How it ended for one skill, with what it rests on."""

    skill: str  # its folder, ``skills/<name>``
    answer: Upshot
    sentence: str = ""  # why, without a full stop
    hint: str = ""  # a command that leads on, or out
    base: str = ""  # the commit that the skill was taken from
    run: str = ""
    version: int | None = None  # the best version of the run; absent while there is none
    gain: MeasuredGain | None = None
    is_merged: bool = False  # whether the text is that version put together with what the base has become since
    branch: str = ""
    commit: str = ""  # the commit of the proposal; empty if there is none
    remote: str = ""  # where the branch was pushed to, or is already; empty for nowhere
    url: str = ""  # its pull request; empty for none
    cost: Cost = field(default_factory=Cost)  # what this process spent on it
    error: ExitCode = ExitCode.OK  # the code of the error that ended it

    def message(self, pin: ProposalPin, facts: Mapping[str, str], remark: str, *, is_own: bool) -> str:
        """Return the message of the proposal's commit, in Markdown that is plain text; no word of it is a model's.

        ``facts`` say what else it rests on; ``remark`` what the base has become since, and what that means. A run that
        is not the repository's own has scores of another machine.
        """
        gain, name = self.gain, self.skill.rpartition("/")[2]
        if gain is None:
            raise AssertionError("what is proposed was measured")
        before, after = (f"{score or 0.0:.4f}" for score in (gain.before, gain.after))
        whose = f"Version {self.version} of run {pin.run}, against skills/{name} at {pin.base[:_SHORT]}."
        whose += "" if is_own else " The run was recorded elsewhere, and its scores are as that machine says."
        rows = {"gain": gain.text, "gate": f"{gain.policy} at {gain.alpha:g}", **facts}
        trailers = {PROPOSED: f"{pin.run}/{version_label(self.version)}", "Gain": gain.text}
        paragraphs = (
            f"propose {name}: {gain.metric} {after}, was {before}",
            whose,
            f"{remark}." if remark else "",
            "\n".join(f"- {label}: {text}" for label, text in rows.items() if text),
            "".join(f"Skillgit-{key}: {text}\n" for key, text in trailers.items()),
        )
        return "\n\n".join(filter(None, paragraphs))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeReport:
    base: str
    proposals: tuple[SkillProposal, ...]
    cost: Cost
    exit_code: ExitCode


_CODES = {
    Upshot.NO_BETTER: ExitCode.NO,
    Upshot.BEHIND: ExitCode.NO,
    Upshot.CANNOT_TELL: ExitCode.UNDERPOWERED,
}


def exit_code(proposals: tuple[SkillProposal, ...]) -> ExitCode:
    """Return the first error; without one, OK if something is proposed, else the code of the least negative answer."""
    errors = [proposal.error for proposal in proposals if proposal.error is not ExitCode.OK]
    if errors:
        return ExitCode.INTERRUPTED if ExitCode.INTERRUPTED in errors else errors[0]
    answers = {proposal.answer for proposal in proposals}
    codes = {_CODES[answer] for answer in answers & _CODES.keys()}
    if codes and not answers & {Upshot.PROPOSED, Upshot.STANDS}:
        return ExitCode.UNDERPOWERED if ExitCode.UNDERPOWERED in codes else ExitCode.NO
    return ExitCode.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPin:
    """What one proposal of a skill rests on, and how it ended."""

    run: str
    base: str  # the commit that the skill was taken from
    answer: str = ""  # the :class:`Upshot` that it ended with; empty while it is under way
    commit: str = ""  # the commit of the proposal
    url: str = ""  # its pull request

    @classmethod
    def read(cls, repo: Repo, skill: str) -> ProposalPin | None:
        """Return the pin of a skill; None without one, or if its file is damaged: then history says what it can."""
        try:
            document = json.loads(read_plain(_path(repo, skill), most=_MOST))
            pin = cls(**{name: str(document.get(name, "")) for name in ("run", "base", "answer", "commit", "url")})
            return pin if not pin.answer or Upshot(pin.answer) else None
        except (OSError, ValueError, AttributeError, RecursionError):
            return None

    def write(self, repo: Repo, skill: str) -> None:
        path = _path(repo, skill)
        path.parent.mkdir(exist_ok=True)
        write_file(path, json.dumps(asdict(self), indent=1, sort_keys=True).encode())


def _path(repo: Repo, skill: str) -> Path:
    return repo.private_dir / "proposals" / f"{skill}.json"


def task_counts(file: Path | None) -> str:
    """Return how many reviewed tasks a skill has and whose sessions they are from, in words; counts only."""
    try:
        rows = [row.fields for row in read_rows(file)] if file is not None else []
    except SkillgitError:
        return ""
    origins = [row.get("origin") for row in rows]
    names = [str(origin.get("agent", "")) for origin in origins if isinstance(origin, dict)]
    agents = Counter(name for name in names if _AGENT.fullmatch(name))
    parts = [f"{count} from sessions of {agent}" for agent, count in sorted(agents.items())]
    remainder = len(rows) - agents.total()
    parts += [f"{remainder} written"] if remainder and parts else []
    return ": ".join(filter(None, (f"{len(rows)} reviewed", ", ".join(parts)))) if rows else ""

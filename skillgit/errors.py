"""Every error that a user can meet, and the exit code that it ends the program with.

Each error says what happened in one sentence and carries a hint: the command or the change that helps. What a subclass
does not say of its exit code, the class above it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Protocol


class ExitCode(IntEnum):
    """What the exit status of ``skillgit`` means."""

    OK = 0  # done; for ``diff --exit-code``: no difference
    NO = 1
    """The answer is no: differences with ``--exit-code``, faults that ``fsck``, ``lint`` or ``doctor`` found, no best
    version, no candidate that passed the gate, a changed skill that does not pass, a judge that does not agree with
    itself."""
    USAGE = 2  # the command line, a configuration file, a skill or a data set is not usable as given
    NOT_FOUND = 3  # not a skillgit repository, or no such run, version, item or plug-in
    CONFLICT = 4  # someone else writes this run, or a ref moved
    SERVICE = 5  # an environment, a model backend or another repository failed (network, authentication, quota)
    HISTORY = 6  # history cannot be read (newer format, broken trailer block, contradicting events)
    BUDGET = 7  # a cap on calls, tokens or money was reached; the run can be continued with a larger one
    HANDOFF = 8  # questions were written to files and wait for answers; the run can be continued when they are there
    NOT_LOADED = 9  # ``train``: the agent loaded the skill in no rollout of the baseline, so that no edit can show
    NULL_RESULT = 20  # ``train --exit-code``: candidates were measured, and none is better than the seed
    UNDERPOWERED = 21
    """``train --exit-code``: none is better, and the selection split is too small to tell; ``gate``, ``propose`` and
    ``verify``: it cannot tell."""
    CEILING = 22  # ``train --exit-code``: the seed solves every selection item
    NO_CANDIDATES = 23  # ``train --exit-code``: no step produced a candidate to measure
    NOT_CONFIRMED = 24
    """``train --exit-code``: the best version scores higher on the selection split and lower on the test split."""
    INTERNAL = 70  # a bug in skillgit
    INTERRUPTED = 130  # stopped by Ctrl-C
    BROKEN_PIPE = 141
    """The reader of the output left before all of it was written, so that the answer did not get through."""


class FindingLike(Protocol):
    """A :class:`skillgit.domain.finding.Finding`, which knows this module."""

    @property
    def message(self) -> str: ...

    @property
    def hint(self) -> str: ...


class SkillgitError(Exception):
    """Something that the user should read.

    Attributes:
        message: One sentence without a full stop that says what happened.
        hint: What helps: a command to type or a change to make.
        result: What the work had come to when the error ended it, where a use case can tell; for machine formats.
    """

    exit_code = ExitCode.NO

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.result: object | None = None


class UsageError(SkillgitError):
    """The request cannot be carried out as it was written."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """A configuration file or an override is wrong; ``findings`` are the single faults, where it is one for several."""

    def __init__(self, message: str, *, hint: str = "", findings: Sequence[FindingLike] = ()) -> None:
        super().__init__(message, hint=hint)
        self.findings = tuple(findings)


class SandboxError(UsageError):
    """This machine cannot isolate model-written code in the way that was asked for."""


class SkillError(UsageError):
    """A folder is not a valid Agent Skill."""


class UnsafeNameError(UsageError):
    """A name that someone else gave would be another place, another file or no file on some system."""


class DataError(UsageError):
    """Items or splits are unusable; ``faults`` are the single faults, where it is one error for several."""

    def __init__(self, message: str, *, hint: str = "", faults: tuple[DataError, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.faults = faults


class StrategyError(UsageError):
    """A strategy asks for what it may not see, or returns something that is not a proposal."""


class NotFoundError(SkillgitError):
    """A named thing does not exist."""

    exit_code = ExitCode.NOT_FOUND


class RepositoryNotFoundError(NotFoundError):
    """There is no repository here that skillgit can use."""


class RevisionNotFoundError(NotFoundError):
    """No run, version or commit has that name."""


class ConflictError(SkillgitError):
    """Another writer is, or was, at work."""

    exit_code = ExitCode.CONFLICT


class RunLockedError(ConflictError):
    """A live process already trains this run."""


class ConcurrentWriteError(ConflictError):
    """A ref moved between reading and writing; nothing was changed."""


class ServiceError(SkillgitError):
    """An environment or a backend failed."""

    exit_code = ExitCode.SERVICE


class BackendError(ServiceError):
    """One call to a model failed.

    ``usage`` is what the provider bills for the attempt all the same, as a ``skillgit.plugin.backend.Usage``, and
    ``status_code`` the HTTP status, if the provider gave one.
    """

    def __init__(
        self, message: str, *, hint: str = "", usage: object | None = None, status_code: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage
        self.status_code = status_code


class RetryableBackendError(BackendError):
    """A call failed in a way that may pass: rate limit, server error, broken connection.

    ``retry_after`` are the seconds to wait that the server asked for, if it did; ``sent`` is whether the question may
    have reached the provider, so that the attempt counts as a call.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        retry_after: float | None = None,
        sent: bool = True,
        usage: object | None = None,
        status_code: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint, usage=usage, status_code=status_code)
        self.retry_after = retry_after
        self.sent = sent


class UnusableAnswerError(RetryableBackendError):
    """The provider bills for an answer that cannot be used; after the last attempt the question has no answer."""


class BackendTimeoutError(RetryableBackendError):
    """A call was not answered in time."""


class FatalBackendError(BackendError):
    """A call failed in a way that no repetition helps and that others would meet too: no permission, unknown model."""


class UnanswerableError(FatalBackendError):
    """A question that will never be answered; the cause is in it alone, so it says nothing of other calls.

    Backends raise one of the subclasses, by which the kind of the failure is recorded.
    """


class RefusalError(UnanswerableError):
    """The model declines to answer."""


class ContentFilterError(UnanswerableError):
    """The provider's filter withholds the question or the answer."""


class PromptTooLongError(UnanswerableError):
    """The question does not fit into the model's context."""


class BadRequestError(UnanswerableError):
    """The provider cannot take this question (400, 413, 422), and names no parameter that other calls share."""


class NoAnswerError(UnanswerableError):
    """The model is billed for and says nothing: its length is used up before it speaks, or its answers are empty."""


class RemoteError(ServiceError):
    """Another repository could not be reached, or refused; ``missing`` is whether its host says that there is none."""

    def __init__(self, message: str, *, hint: str = "", missing: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class EnvironmentFaultError(ServiceError):
    """An environment could not do its work on an item."""


class ItemTimeoutError(EnvironmentFaultError):
    """An item took longer than it may."""


class ProviderFailureError(ServiceError):
    """A provider failed systematically, so that the run stopped without scoring anything."""


class HistoryError(SkillgitError):
    """History cannot be read."""

    exit_code = ExitCode.HISTORY


class FormatVersionError(HistoryError):
    """A commit was written by a newer skillgit."""


class TrailerError(HistoryError):
    """A commit's trailer block is missing or cannot be parsed."""


class InvariantError(HistoryError):
    """An event contradicts the events before it."""


class NoBeginningError(HistoryError):
    """The branch of a run does not lead back to an event that began it."""


class BudgetError(SkillgitError):
    """A cap on calls, tokens or money was reached; ``cap`` is its field in ``Caps``, empty for others."""

    exit_code = ExitCode.BUDGET

    def __init__(self, message: str, *, hint: str = "", cap: str = "") -> None:
        super().__init__(message, hint=hint)
        self.cap = cap


class HandoffError(SkillgitError):
    """Questions were handed to someone outside; no model failed, and nothing can go on without the answers."""

    exit_code = ExitCode.HANDOFF


class NotLoadedError(SkillgitError):
    """An agent loaded the skill in no rollout of the baseline, so that no change of its text could be measured."""

    exit_code = ExitCode.NOT_LOADED


class StoppedError(SkillgitError):
    """The user stopped a run; calls in flight were waited for and recorded."""

    exit_code = ExitCode.INTERRUPTED


def behind(error: BaseException) -> Iterator[BaseException]:
    """Yield ``error`` and what led to it, each once: an error that is raised again may lead back to itself."""
    visits: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visits:
        visits.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__

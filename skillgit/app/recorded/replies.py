"""Recorded replies: what a version answered to an item, as evidence has it, ready to be scored again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.workspace.workspace import BRING
from skillgit.domain.credentials.detector import MASK
from skillgit.domain.evaluation import Loading, Scored
from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.environment import Environment, LeavesFiles
from skillgit.store.repo import Repo


class UnrecordedFiles(dict[str, bytes]):
    """The files that a rollout made, which no evidence holds: who asks for them cannot score from evidence."""

    def _refuse(self, *_: object) -> NoReturn:
        raise EnvironmentFaultError("it scores files that the target made", hint=BRING)

    __getitem__ = __contains__ = __iter__ = __len__ = get = items = keys = values = _refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReply:
    item: str
    answer: str
    turns: tuple[Turn, ...]
    outcome: Scored

    @property
    def is_redacted(self) -> bool:
        """Whether something was taken out of the answer, so that it is not what was scored."""
        return MASK in self.answer

    def trajectory(self, environment: Environment) -> Trajectory:
        """Return the reply for the scorer of ``environment``."""
        return rescored_trajectory(environment, self.item, self.answer, self.turns)


def rescored_trajectory(environment: Environment, item: str, answer: str, turns: tuple[Turn, ...] = ()) -> Trajectory:
    """Return a result that was made earlier; its files are refused to a scorer, unless there never are any."""
    has_none = isinstance(environment, LeavesFiles) and not environment.leaves_files
    products = {} if has_none else UnrecordedFiles()
    return Trajectory(item_id=item, turns=turns, answer=answer, products=products)


def recorded_replies(repo: Repo, tree: str, table: str) -> Iterator[RecordedReply]:
    """Yield the replies in the file ``table`` of the evidence in ``tree`` that have a score; damaged rows are not."""
    for row in objects(evidence_file(repo, tree, table)):
        hard, soft = row.get("hard"), row.get("soft")
        if isinstance(hard, int | float) and isinstance(soft, int | float):
            conversation = members(evidence_file(repo, tree, str(row.get("trajectory"))))
            yield RecordedReply(
                item=str(row.get("id")),
                answer=str(row.get("answer")),
                turns=tuple(map(Turn.read, objects(conversation.get("turns")))),
                outcome=Scored(
                    float(hard), float(soft), cut=row.get("cut") is True, loading=Loading.parse(row.get("skill"))
                ),
            )

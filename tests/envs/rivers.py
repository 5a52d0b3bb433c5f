"""Rivers: a whole benchmark of questions with a short answer, as small as one is; ``rivers.yaml`` is its card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from skillgit.plugin.card import read_card
from skillgit_envs.answers import exact_match
from skillgit_envs.questions import RightOrWrong

if TYPE_CHECKING:
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Judge

VERDICTS = {"yes": True, "no": False}


def verdict(reply: str) -> bool:
    if reply.strip().lower() not in VERDICTS:
        raise ValueError("it is neither yes nor no")
    return VERDICTS[reply.strip().lower()]


class Rivers(RightOrWrong):
    """Questions about rivers, scored by words or by a judge."""

    info = read_card(Path(__file__).parent)
    scorers: ClassVar = {"words": "rivers-words/1", "judged": "rivers-judge/1"}
    judges = ("judged",)

    async def is_right(self, item: Item, answer: str, judge: Judge) -> bool:
        gold = str(item.content["answer"])
        if not self.asks_judge:
            return exact_match(answer, gold)
        texts = {"question": item.content["question"], "right-answer": gold, "given-answer": answer}
        return await self._ask(judge, texts, verdict, "yes or no")

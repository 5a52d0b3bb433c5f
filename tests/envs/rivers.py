"""Rivers: a whole environment of questions with a short answer, as small as one is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from skillgit.domain.trajectory import Item
from skillgit.plugin.data_rows import Row, read_each, text_field
from skillgit.plugin.environment import EnvironmentInfo, Judge
from skillgit.plugin.splits import OPTIONS
from skillgit_envs.answers import exact_match
from skillgit_envs.shipped_environment import option, require
from skillgit_envs.short_answers import RightOrWrong

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

VERDICTS = {"yes": True, "no": False}


def item(row: Row) -> Item:
    fields, where = row.fields, row.where
    content = {name: text_field(where, fields, name) for name in ("question", "answer")}
    require(where, "rivers", content)
    return Item(id=text_field(where, fields, "id") or row.name, content=content)


def verdict(reply: str) -> bool:
    if reply.strip().lower() not in VERDICTS:
        raise ValueError("it is neither yes nor no")
    return VERDICTS[reply.strip().lower()]


class Rivers(RightOrWrong):
    """Questions about rivers, scored by words or by a judge."""

    info = EnvironmentInfo(
        name="rivers",
        summary="Answer a question about a river.",
        fields={"question": "what is asked", "answer": "the right words"},
        scorer="hard = soft = whether the answer is right: by its words, or by a judge (judged)",
        source="questions written for this test",
        licence="MIT",
        options=(
            *OPTIONS,
            option("max_turns", 1, "Replies until one holds an answer."),
            option(
                "scorer",
                "words",
                "Who compares: words, or judged.",
                values={"words": "the same words, as MRQA 2019 compares them", "judged": "a judge says yes or no"},
            ),
        ),
    )
    _scorers: ClassVar = {"words": "rivers-words/1", "judged": "rivers-judge/1"}
    _judges = ("judged",)

    def _read(self, files: Sequence[Path]) -> list[Item]:
        return read_each(files, lambda row, _: [item(row)])

    async def _is_right(self, item: Item, answer: str, judge: Judge) -> bool:
        gold = str(item.content["answer"])
        if not self.asks_judge:
            return exact_match(answer, gold)
        texts = {"question": item.content["question"], "right-answer": gold, "given-answer": answer}
        return await self._ask(judge, texts, verdict, "yes or no")

"""MathVerse: problems with diagrams, in five versions that move information from the text into the picture."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.data_rows import read_each, text_field
from skillgit.plugin.environment import CallBounds, EnvironmentInfo, PublicSource, SourceKind
from skillgit_envs.mathverse import scoring
from skillgit_envs.shipped_environment import option
from skillgit_envs.visual_questions import VISUAL_OPTIONS, VisualQuestions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.evaluation import Scored
    from skillgit.domain.trajectory import Trajectory
    from skillgit.plugin.data_rows import Row
    from skillgit.plugin.environment import Judge
    from skillgit.plugin.splits import Splits
    from skillgit_envs.pictures import Pictures

VERSIONS = ("Text Dominant", "Text Lite", "Text Only", "Vision Intensive", "Vision Dominant", "Vision Only")
_KINDS = ("multi-choice", "free-form")
_HINT = "skillgit envs mathverse lists the fields of an item"


def read_items(files: Sequence[Path], *, version: str, pictures: Pictures) -> list[Item]:
    """Return the items of data files, of one version: two versions of a problem would stand on both sides of a split.

    Raises:
        DataError: A row is malformed, a picture is missing, or the rows are of several versions and none is chosen.
    """
    items = read_each(files, lambda row, path: _item(row, version, pictures, path.parent))
    versions = sorted({str(item.content["version"]) for item in items})
    if len(versions) > 1:
        raise DataError(
            f"the data hold {len(versions)} versions of each problem: {', '.join(versions)}",
            hint="choose one with env.problem_version",
        )
    if not items:
        raise DataError(f"the data hold no problem of the version '{version}'", hint="check env.problem_version")
    return items


def _item(row: Row, version: str, pictures: Pictures, folder: Path) -> list[Item]:
    fields, where = row.fields, row.where
    row_version = text_field(where, fields, "problem_version") or "Text Lite"
    if version and row_version != version:
        return []
    identity = text_field(where, fields, "problem_index", "id") or row.name
    question, answer = text_field(where, fields, "question"), text_field(where, fields, "answer")
    image, kind = text_field(where, fields, "image"), text_field(where, fields, "question_type")
    for name, value in (("problem_index", identity), ("answer", answer), ("question or image", question or image)):
        if not value:
            raise DataError(f"{where} has no {name}", hint=_HINT)
    if kind not in _KINDS:
        raise DataError(f"{where} has the question_type '{kind}'", hint=f"it is {' or '.join(_KINDS)}")
    metadata = fields.get("metadata")
    topic = cast("Mapping[str, object]", metadata) if isinstance(metadata, dict) else {}
    content = {
        "question": question,
        "images": [image] if image else [],
        "pictures": [pictures.find(where, image, folder)] if image else [],
        "answer": answer,
        "kind": kind,
        "version": row_version,
        "for_eval": text_field(where, fields, "question_for_eval") or question,
    }
    return [Item(id=identity, content=content, task_type=_category(topic))]


def _category(metadata: Mapping[str, object]) -> str:
    """Return the group that the authors report: subject and subfield."""
    return "/".join(str(metadata[key]) for key in ("subject", "subfield") if metadata.get(key)) or "other"


_UNSEEN = "The problem is in the picture."


class MathVerse(VisualQuestions):
    """Mathematical problems about diagrams, scored by rules or by a judge."""

    info = EnvironmentInfo(
        name="mathverse",
        summary="Solve a mathematical problem about a diagram.",
        fields={
            "question": "the problem with its choices, as the version states it; empty where the picture holds it all",
            "images": "the file of the diagram, as the data name it; none for the version Text Only",
            "pictures": "digest of the diagram's bytes",
            "answer": "the right letter, several of them, or the right value",
            "kind": "multi-choice or free-form",
            "version": "how much of the problem is in the text",
            "for_eval": "the whole problem, for a judge",
        },
        scorer="hard = soft = whether the answer is right: by rules, by a judge as the authors do (official), or by the"
        " reference's rules with a judge for what they leave open (skillopt)",
        source="problems written for skillgit; testmini.json and its pictures are read from env.data_path",
        options=(
            *VISUAL_OPTIONS,
            option("problem_version", "", f"Which version: {', '.join(VERSIONS)}; empty: the one that the data hold."),
            option("scorer", "rules", "Who compares: rules, official (a judge), or skillopt."),
        ),
        task_types=(
            *(f"Plane Geometry/{field}" for field in ("Length", "Area", "Angle", "Analytic", "Applied")),
            *(f"Solid Geometry/{field}" for field in ("Length", "Area", "Volume")),
            *(f"Functions/{field}" for field in ("Coordinate", "Property", "Expression", "Applied")),
        ),
        licence="problems that come with it and the public data: MIT",
        public=PublicSource(
            kind=SourceKind.MANUAL,
            place="https://huggingface.co/datasets/AI4Math/MathVerse",
            revision="96641f2457cd16c28be227a47371e41366d9607e",
            layout=(
                "get testmini.json and images.zip, unpack the pictures beside the file, name it with env.data_path and"
                " one of its five versions with env.problem_version; testmini_text_only.json needs no pictures"
            ),
        ),
    )

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._refuse_unknown(scorer=tuple(scoring.AnswerRule), problem_version=("", *VERSIONS))
        self._rule = scoring.AnswerRule(str(self._options["scorer"]))
        self._version = str(self._options["problem_version"]) if self._brings_data else ""

    @property
    def _scorer(self) -> Sequence[str]:
        return [scoring.SCORERS[self._rule], _UNSEEN, *([self._prompt_file("judge")] if self.asks_judge else [])]

    @property
    def asks_judge(self) -> bool:
        """Whether a model compares: always by the official procedure, for free answers by the reference's."""
        return self._rule is not scoring.AnswerRule.RULES

    def call_bounds(self, item: Item) -> CallBounds:
        """Return how many calls a rollout takes."""
        least, most = scoring.questions(self._rule, str(item.content["kind"]))
        return CallBounds(target=(1, self._turns), judge=(least, most), repairs=most)

    def _load(self) -> Splits:
        return self._load_with(partial(read_items, version=self._version, pictures=self._pictures))

    def secrets(self, item: Item) -> Secrets:
        """Return the answer and the problem; a letter alone is no secret."""
        answer, question = str(item.content["answer"]), str(item.content["for_eval"])
        return Secrets(answers=(answer,) if item.content["kind"] == "free-form" else (), inputs=(question,))

    def question(self, item: Item) -> str:
        """Return the problem as its version states it."""
        return f"<problem>\n{str(item.content['question']).strip() or _UNSEEN}\n</problem>"

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Compare the answer with the right one, and say which that is."""
        instructions = self._prompt_file("judge") if self.asks_judge else ""
        return await scoring.score(item, trajectory.answer, self._rule, judge, instructions)

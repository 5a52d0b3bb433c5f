"""Description: one rewrite of the text by which agents choose the skill, from requests that they decided wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import ClassVar

from skillgit.calls.client import Route
from skillgit.domain.document_rewrite import folder_hunks
from skillgit.domain.edit import Application, EditReport, EditSource, EditStatus
from skillgit.domain.skill import DESCRIPTION, DOCUMENT
from skillgit.domain.trajectory import Item
from skillgit.domain.untrusted.model_text import clean_title
from skillgit.engine.candidate import RewriteResult
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.prompt_sections import environment_section, marked, tagged, trajectories_section
from skillgit.engine.proposals import Draft
from skillgit.engine.replies import Cleaned, ReplyModel, UnusableReplyError, ask
from skillgit.engine.search import Session, Stage, items_of_step
from skillgit.engine.strategy import Proposal, Strategy, TrainSearch
from skillgit.errors import StrategyError
from skillgit.plugin.backend import system, user
from skillgit.plugin.skill_library import description_fault, library_skill, with_description

STAGE = "description"


class DescriptionReply(ReplyModel):
    """A new description; model text, cleaned."""

    reasoning: Cleaned
    title: Cleaned
    description: Cleaned


class DescriptionRewrite(Strategy):
    """One candidate a step: the skill with its description rewritten.

    The optimizer is shown the description and the train requests of the step that were decided wrongly, false positives
    and false negatives alike, and nothing of the other splits. Every other byte of the skill stays.
    """

    name: ClassVar[str] = "description"
    summary: ClassVar[str] = "rewrites the description from the requests on which agents chose wrongly"
    keys: ClassVar[tuple[str, ...]] = ("optimizer.files", "train.batch_size", "gate.no_regression", "gate.pinned")

    def check(self, settings: MethodSettings, optimizer: Route) -> None:
        del optimizer
        if not settings.optimizer.trainable.description:
            raise StrategyError(
                f"the strategy description needs '{DESCRIPTION}' among optimizer.files",
                hint=f"-o optimizer.files='[{DESCRIPTION}]'",
            )

    def certain(self, session: Session, step: int) -> Sequence[Item]:
        return items_of_step(session, step)

    async def propose(self, search: TrainSearch) -> Proposal:
        session, skill, (rollouts, failures) = search.session, search.skill, await search.attempts()
        if not failures:
            return search.propose(Draft(), rollouts)
        session.monitor.stage(Stage.REFLECT, 1)
        parts = [
            environment_section(session.task.environment),
            tagged("description", library_skill(skill.name, skill.document).description, skill=skill.name),
            trajectories_section(failures, "wrong", search.settings.gradient.max_trajectory_tokens),
        ]
        text = (files("skillgit.strategies") / "description.md").read_text(encoding="utf-8")
        messages = [system(text), user(marked("\n\n".join(parts)))]

        def usable(reply: DescriptionReply) -> None:
            if fault := description_fault(skill.document, reply.description):
                raise UnusableReplyError(fault)

        reply = await ask(session, STAGE, messages, DescriptionReply, draw=(search.step,), check=usable)
        session.monitor.tick()
        if reply is None:
            return search.propose(Draft(unusable=("strategy",)), rollouts)
        candidate = skill.with_text(DOCUMENT, with_description(skill.document, " ".join(reply.description.split())))
        edits = folder_hunks(skill, candidate, support=len(failures), source=EditSource.FAILURE)
        reports = tuple(EditReport(edit=edit, status=EditStatus.APPLIED) for edit in edits)
        draft = Draft(proposals=edits, title=clean_title(reply.title), reasoning=reply.reasoning)
        result = RewriteResult(application=Application(skill=candidate, reports=reports))
        return Proposal(rollouts=rollouts, pool=draft, choice=draft, candidate=result, is_folder=True)

"""What each update mode calls things: its prompts, and the shapes of the replies to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.document_rewrite import UpdateMode
from skillgit.engine.reply_schemas import (
    Analysis,
    AnalysisReply,
    DraftReply,
    PatchReply,
    RewriteAnalysis,
    RewriteReply,
    SuggestionAnalysis,
    SuggestionsReply,
)

if TYPE_CHECKING:
    from skillgit.engine.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The prompts and replies of an update mode."""

    failures: str
    successes: str
    merge: str
    rank: str = ""  # prompt of the choice within the budget; empty where nothing is chosen
    merge_and_rank: str = ""  # prompt of a merge and choice in one call; empty where nothing is chosen
    analysis: type[Analysis]
    merged: type[DraftReply]


DIALECTS = {
    UpdateMode.PATCH: Dialect(
        failures="analyse_failures",
        successes="analyse_successes",
        merge="merge",
        rank="rank",
        merge_and_rank="merge_and_rank",
        analysis=AnalysisReply,
        merged=PatchReply,
    ),
    UpdateMode.SUGGESTIONS: Dialect(
        failures="suggest_from_failures",
        successes="suggest_from_successes",
        merge="merge_suggestions",
        rank="rank_suggestions",
        merge_and_rank="merge_and_rank_suggestions",
        analysis=SuggestionAnalysis,
        merged=SuggestionsReply,
    ),
    UpdateMode.FULL: Dialect(
        failures="rewrite_from_failures",
        successes="rewrite_from_successes",
        merge="merge_rewrites",
        analysis=RewriteAnalysis,
        merged=RewriteReply,
    ),
}


def dialect(session: Session) -> Dialect:
    """Return the dialect of the session's update mode."""
    return DIALECTS[session.settings.optimizer.skill_update_mode]

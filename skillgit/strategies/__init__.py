"""How candidates are found: a module per strategy, and what a strategy of your own needs."""

from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.engine.proposals import Draft
from skillgit.engine.strategy import Proposal, Strategy, solved
from skillgit.engine.strategy import TrainSearch as Search

__all__ = ["Draft", "Edit", "EditSource", "Op", "Proposal", "Search", "Strategy", "solved"]

"""The table of commands: what help lists, in its order, and where each command lives. It imports none of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A command.

    Attributes:
        name: What the user types.
        summary: One line for the help of ``skillgit``; the command's own help begins with it.
    """

    name: str
    summary: str

    @property
    def module(self) -> str:
        """The module that defines ``command``."""
        return f"skillgit.cli.commands.{_KEYWORDS.get(self.name) or self.name.replace('-', '_')}"


_KEYWORDS = {"import": "importing"}
"""Commands whose names are words of Python, and the modules that they live in."""


SECTIONS: dict[str, tuple[Entry, ...]] = {
    "Start": (
        Entry(name="init", summary="Create a repository for skills, or prepare an existing one"),
        Entry(name="tasks", summary="Add to a file of tasks, or have tasks drafted"),
        Entry(name="train", summary="Train a skill as CONFIG says, one commit for each decision"),
        Entry(name="import", summary="Turn the output directory of a SkillOpt run into a run"),
        Entry(name="status", summary="Show the default run, its newest and its best version"),
        Entry(name="use", summary="Make RUN the default run"),
    ),
    "Look": (
        Entry(name="tui", summary="Browse runs and their history on the screen"),
        Entry(name="runs", summary="List the runs, newest first"),
        Entry(name="log", summary="Show the events of a run, newest first"),
        Entry(name="show", summary="Show one event: message, scores and diff"),
        Entry(name="diff", summary="Show the difference of two versions"),
        Entry(name="blame", summary="Show where each line of a skill comes from"),
        Entry(name="why", summary="Tell why a rule stands in a skill, from the rollouts that failed to the gate"),
        Entry(name="items", summary="Show which items are solved by which version"),
        Entry(name="bisect", summary="Find the version that fixed or broke an item"),
        Entry(name="matrix", summary="Show what each version scored under each target model"),
        Entry(name="cost", summary="Show what a run has cost, and where it went"),
        Entry(name="report", summary="Write a page that tells a run to people who have no repository"),
    ),
    "Change": (
        Entry(name="note", summary="Say something about a version, for the steps that come"),
        Entry(name="fork", summary="Start a run of its own at a version of another one"),
        Entry(name="revert", summary="Make an older version's text the newest version of its run"),
        Entry(name="cherry-pick", summary="Put the edits of one version on another line, if they pass its gate"),
        Entry(name="merge", summary="Merge another run into RUN, where scores decide what both changed"),
        Entry(name="resurrect", summary="Try rejected candidates again, on what the run has become since"),
        Entry(name="ablate", summary="Leave out each rule of a version and measure what it is worth"),
        Entry(name="prune", summary="Drop the rules that change nothing, if the score does not fall"),
        Entry(name="compress", summary="Say the same in fewer words, if the score does not fall"),
    ),
    "Use": (
        Entry(name="checkout", summary="Put a version in the work tree"),
        Entry(name="adopt", summary="Put the skill of a version where an agent looks for it"),
        Entry(name="export", summary="Write the skill of a version, or the data of a run, elsewhere, without git"),
        Entry(name="best", summary="Print the best version of a run"),
        Entry(name="promote", summary="Bring a version to main with a merge commit"),
        Entry(name="eval", summary="Measure versions side by side and note the scores on their commits"),
        Entry(name="retest", summary="Measure old versions under another target model"),
        Entry(name="verify", summary="Measure a version again and say whether its recorded score holds"),
        Entry(name="gate", summary="Judge the skills that a pull request changes by their scores"),
    ),
    "Share": (
        Entry(name="push", summary="Send runs to another repository"),
        Entry(name="pull", summary="Take in the runs of another repository"),
        Entry(name="fetch", summary="Bring in what another repository has, beside what is here"),
        Entry(name="clone", summary="Copy a repository with its runs, notes and rejected candidates"),
        Entry(name="remote", summary="List the other repositories that this one knows, or change them"),
    ),
    "Keep": (
        Entry(name="fsck", summary="Check that history keeps its rules"),
        Entry(name="lint", summary="Check skill folders by the rules of Agent Skills"),
        Entry(name="scan", summary="Look for secrets, leaked items and large files in what a push would publish"),
        Entry(name="replay", summary="Make a run again from its commits, and compare"),
        Entry(name="gc", summary="Fold the branches of finished runs, or drop old evidence"),
        Entry(name="doctor", summary="Check this machine and the models of CONFIG"),
        Entry(name="config", summary="Show the settings that CONFIG amounts to"),
        Entry(name="data", summary="Check the items of CONFIG, or fetch public ones"),
        Entry(name="envs", summary="List the environments, or describe one"),
        Entry(name="backends", summary="List the model backends, or describe one"),
        Entry(name="completion", summary="Print a script that completes commands in your shell"),
        Entry(name="help", summary="Show the help of a command"),
        Entry(name="version", summary="Print the version of skillgit"),
    ),
    "Plumbing": (
        Entry(name="rev-parse", summary="Print the commit that REV names"),
        Entry(name="events", summary="Print the events of a run as they stand in git, oldest first"),
        Entry(name="trailers", summary="Print the trailers of a commit, as git reads them"),
        Entry(name="cat", summary="Print a file of a version, byte for byte"),
        Entry(name="sql", summary="Answer an SQL query from the index, which it can only read"),
        Entry(name="reindex", summary="Drop the index and rebuild it from git"),
    ),
}

ENTRIES: dict[str, Entry] = {entry.name: entry for entries in SECTIONS.values() for entry in entries}

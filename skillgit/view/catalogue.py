"""The table of commands: what help lists, in its order, and where each command is defined. It imports none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A command.

    Attributes:
        name: What the user types.
        module: The module of ``skillgit.cli.commands`` that defines it, as ``NAME_command``.
        summary: One line for the help of ``skillgit``; the command's own help begins with it.
    """

    name: str
    module: str
    summary: str


SECTIONS: dict[str, tuple[Entry, ...]] = {
    "Start": (
        Entry(name="init", module="start", summary="Create a repository for skills, or prepare an existing one"),
        Entry(name="tasks", module="start", summary="Add to a file of tasks, or have tasks drafted"),
        Entry(name="train", module="training", summary="Train a skill as CONFIG says, one commit for each decision"),
        Entry(name="import", module="start", summary="Turn the output directory of a SkillOpt run into a run"),
        Entry(name="status", module="runs", summary="Show the default run, its newest and its best version"),
        Entry(name="use", module="runs", summary="Make RUN the default run"),
    ),
    "Look": (
        Entry(name="tui", module="tui", summary="Browse runs and their history on the screen"),
        Entry(name="runs", module="runs", summary="List the runs, newest first"),
        Entry(name="log", module="history", summary="Show the events of a run, newest first"),
        Entry(name="show", module="diff", summary="Show one event, or a file of a version"),
        Entry(name="diff", module="diff", summary="Show the difference of two versions"),
        Entry(name="blame", module="rules", summary="Show where each line of a skill comes from"),
        Entry(
            name="why",
            module="rules",
            summary="Tell why a rule stands in a skill, from the rollouts that failed to the gate",
        ),
        Entry(name="items", module="items", summary="Show which items are solved by which version"),
        Entry(name="bisect", module="items", summary="Find the version that fixed or broke an item"),
        Entry(name="matrix", module="items", summary="Show what each version scored under each target model"),
        Entry(name="cost", module="runs", summary="Show what a run has cost, and where it went"),
        Entry(name="report", module="runs", summary="Write a page that tells a run to people who have no repository"),
    ),
    "Change": (
        Entry(name="note", module="training", summary="Say something about a version, for the steps that come"),
        Entry(name="fork", module="training", summary="Start a run of its own at a version of another one"),
        Entry(name="revert", module="change", summary="Take back the edits of one version and keep the later ones"),
        Entry(name="restore", module="change", summary="Make an older version's text the newest version of its run"),
        Entry(
            name="cherry-pick",
            module="change",
            summary="Put the edits of one version on another line, if they pass its gate",
        ),
        Entry(
            name="merge", module="change", summary="Merge another run into RUN, where scores decide what both changed"
        ),
        Entry(name="retry", module="change", summary="Try rejected candidates again, on what the run has become since"),
        Entry(name="ablate", module="rules", summary="Leave out each rule of a version and measure what it is worth"),
        Entry(name="prune", module="rules", summary="Drop the rules that change nothing, if the score does not fall"),
        Entry(name="compress", module="rules", summary="Say the same in fewer words, if the score does not fall"),
    ),
    "Use": (
        Entry(name="checkout", module="deliver", summary="Put a version in the work tree"),
        Entry(name="install", module="deliver", summary="Put the skill of a version where an agent looks for it"),
        Entry(name="uninstall", module="deliver", summary="Bring back what an installed skill took the place of"),
        Entry(
            name="export",
            module="deliver",
            summary="Write the skill of a version, or the data of a run, elsewhere, without git",
        ),
        Entry(name="promote", module="change", summary="Bring a version to main with a merge commit"),
        Entry(
            name="eval", module="measure", summary="Measure versions side by side and note the scores on their commits"
        ),
        Entry(
            name="verify", module="measure", summary="Measure a version again and say whether its recorded score holds"
        ),
        Entry(name="gate", module="measure", summary="Judge the skills that a pull request changes by their scores"),
    ),
    "Share": (
        Entry(name="push", module="exchange", summary="Send runs to another repository"),
        Entry(name="pull", module="exchange", summary="Take in the runs of another repository"),
        Entry(name="fetch", module="exchange", summary="Bring in what another repository has, beside what is here"),
        Entry(
            name="clone", module="exchange", summary="Copy a repository with its runs, notes and rejected candidates"
        ),
        Entry(
            name="remote", module="exchange", summary="List the other repositories that this one knows, or change them"
        ),
    ),
    "Keep": (
        Entry(name="fsck", module="upkeep", summary="Check that history keeps its rules"),
        Entry(name="lint", module="upkeep", summary="Check skill folders by the rules of Agent Skills"),
        Entry(
            name="scan",
            module="upkeep",
            summary="Look for secrets, leaked items and large files in what a push would publish",
        ),
        Entry(name="replay", module="upkeep", summary="Make a run again from its commits, and compare"),
        Entry(name="gc", module="upkeep", summary="Fold the branches of finished runs, or drop old evidence"),
        Entry(name="doctor", module="setup", summary="Check this machine and the models of CONFIG"),
        Entry(name="config", module="setup", summary="Show the settings that CONFIG amounts to"),
        Entry(name="data", module="start", summary="Check the items of CONFIG, or fetch public ones"),
        Entry(name="envs", module="setup", summary="List the environments, or describe one"),
        Entry(name="backends", module="setup", summary="List the model backends, or describe one"),
        Entry(name="completion", module="setup", summary="Print a script that completes commands in your shell"),
        Entry(name="help", module="setup", summary="Show the help of a command"),
    ),
    "Plumbing": (
        Entry(name="rev-parse", module="history", summary="Print the commit that REV names"),
        Entry(name="events", module="history", summary="Print the events of a run as they stand in git, oldest first"),
        Entry(name="sql", module="runs", summary="Answer an SQL query from the index, which it can only read"),
        Entry(name="reindex", module="runs", summary="Drop the index and rebuild it from git"),
    ),
}

DAILY = ("init", "train", "status", "tui", "log", "show", "diff", "why", "eval", "install")
"""The commands that ``skillgit --help`` shows."""
ENTRIES: dict[str, Entry] = {entry.name: entry for entries in SECTIONS.values() for entry in entries}


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """What an old name of a command is now; it works until the next release.

    Attributes:
        now: What to type instead.
        words: The words that take its place; empty where the old command is still there.
        module: The module that still defines the old command, as in :class:`Entry`.
    """

    now: str
    words: tuple[str, ...] = ()
    module: str = ""


RENAMED: dict[str, Renamed] = {
    "adopt": Renamed(now="skillgit install", words=("install",)),
    "adopt --undo": Renamed(now="skillgit uninstall", words=("uninstall",)),
    "best": Renamed(now="skillgit show best", module="history"),
    "cat": Renamed(now="skillgit show REV:PATH", module="history"),
    "resurrect": Renamed(now="skillgit retry", words=("retry",)),
    "retest": Renamed(now="skillgit eval --fresh", words=("eval", "--fresh")),
    "trailers": Renamed(now="git log -1 --format='%(trailers)'", module="history"),
    "version": Renamed(now="skillgit --version", module="setup"),
}
RENAMED_OPTIONS: dict[str, dict[str, str]] = {
    "bisect": {"--of": "--run"},
    "cherry-pick": {"--onto": "--run"},
    "gate": {"-o": "--output"},
    "report": {"-o": "--output"},
    "resurrect": {"-n": "--limit"},
}
"""Command to its old options and what they are now; -o stays what it is where KEY=VALUE follows."""


def current(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return a command line in the names of today, and a sentence for each old name in it.

    Args:
        words: The command line without ``skillgit`` and its own options.
    """
    if not words:
        return [], ()
    name, rest, sentences = words[0], [*words[1:]], []
    options = RENAMED_OPTIONS.get(name, {})
    for place, word in enumerate(rest):
        option, equals, value = word.partition("=")
        if option in options and not (option == "-o" and "=" in "".join(rest[place + 1 : place + 2])):
            rest[place] = f"{options[option]}{equals}{value}"
            sentences.append(f"skillgit {name} {option} is now {options[option]}")
    if name == "adopt" and "--undo" in rest:
        name, rest = "adopt --undo", [word for word in rest if word not in {"--undo", "--skill"}]
    renamed = RENAMED.get(name)
    if renamed is None:
        return [name, *rest], tuple(sentences)
    return [*(renamed.words or (name,)), *rest], (f"skillgit {name} is now {renamed.now}", *sentences)

"""The table of commands: what help lists, in its order, and where each command is defined. It imports none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """A command.

    Attributes:
        module: The module of ``skillgit.cli.commands`` that defines it, as ``NAME_command``.
        summary: One line for the help of ``skillgit``; the command's own help begins with it.
    """

    name: str
    module: str
    summary: str


SECTIONS: dict[str, tuple[CommandEntry, ...]] = {
    "Start": (
        CommandEntry(name="init", module="start", summary="Create a repository for skills, or prepare an existing one"),
        CommandEntry(name="tasks", module="start", summary="Add to a file of tasks, or have tasks drafted"),
        CommandEntry(
            name="train", module="training", summary="Train a skill as CONFIG says, one commit for each decision"
        ),
        CommandEntry(name="import", module="start", summary="Turn the output directory of a SkillOpt run into a run"),
        CommandEntry(name="status", module="runs", summary="Show the default run, its newest and its best version"),
        CommandEntry(name="use", module="runs", summary="Make RUN the default run"),
    ),
    "Look": (
        CommandEntry(name="tui", module="tui", summary="Browse runs and their history on the screen"),
        CommandEntry(name="runs", module="runs", summary="List the runs, newest first"),
        CommandEntry(name="log", module="history", summary="Show the events of a run, newest first"),
        CommandEntry(name="show", module="diff", summary="Show one event, or a file of a version"),
        CommandEntry(name="diff", module="diff", summary="Show the difference of two versions"),
        CommandEntry(name="blame", module="rules", summary="Show where each line of a skill comes from"),
        CommandEntry(
            name="why",
            module="rules",
            summary="Explain why a rule is in a skill, from the rollouts that failed to the gate",
        ),
        CommandEntry(name="items", module="items", summary="Show which items are solved by which version"),
        CommandEntry(name="bisect", module="items", summary="Find the version that fixed or broke an item"),
        CommandEntry(name="matrix", module="items", summary="Show what each version scored under each target model"),
        CommandEntry(name="cost", module="runs", summary="Show what a run has cost, and where it went"),
        CommandEntry(
            name="report", module="runs", summary="Write a page about a run for people without the repository"
        ),
    ),
    "Change": (
        CommandEntry(name="note", module="training", summary="Say something about a version, for the steps that come"),
        CommandEntry(name="fork", module="training", summary="Start a run of its own at a version of another one"),
        CommandEntry(
            name="revert", module="change", summary="Take back the edits of one version and keep the later ones"
        ),
        CommandEntry(
            name="restore", module="change", summary="Make an older version's text the newest version of its run"
        ),
        CommandEntry(
            name="cherry-pick",
            module="change",
            summary="Put the edits of one version on another line, if they pass its gate",
        ),
        CommandEntry(
            name="merge", module="change", summary="Merge another run into RUN, where scores decide what both changed"
        ),
        CommandEntry(
            name="retry", module="change", summary="Try rejected candidates again, on what the run has become since"
        ),
        CommandEntry(
            name="ablate", module="rules", summary="Leave out each rule of a version and measure what it is worth"
        ),
        CommandEntry(
            name="prune", module="rules", summary="Drop the rules that change nothing, if the score does not fall"
        ),
        CommandEntry(
            name="compress", module="rules", summary="Say the same in fewer words, if the score does not fall"
        ),
    ),
    "Use": (
        CommandEntry(name="checkout", module="deliver", summary="Put a version in the work tree"),
        CommandEntry(
            name="install", module="deliver", summary="Put the skill of a version where an agent looks for it"
        ),
        CommandEntry(
            name="uninstall", module="deliver", summary="Bring back what an installed skill took the place of"
        ),
        CommandEntry(
            name="export",
            module="deliver",
            summary="Write the skill of a version, or the data of a run, elsewhere, without git",
        ),
        CommandEntry(name="promote", module="change", summary="Bring a version to main with a merge commit"),
        CommandEntry(
            name="eval", module="measure", summary="Measure versions side by side and note the scores on their commits"
        ),
        CommandEntry(
            name="verify", module="measure", summary="Measure a version again and say whether its recorded score holds"
        ),
        CommandEntry(
            name="gate", module="measure", summary="Judge the skills that a pull request changes by their scores"
        ),
    ),
    "Share": (
        CommandEntry(name="push", module="exchange", summary="Send runs to another repository"),
        CommandEntry(name="pull", module="exchange", summary="Take in the runs of another repository"),
        CommandEntry(
            name="fetch", module="exchange", summary="Bring in what another repository has, beside what is here"
        ),
        CommandEntry(
            name="clone", module="exchange", summary="Copy a repository with its runs, notes and rejected candidates"
        ),
        CommandEntry(
            name="remote", module="exchange", summary="List the other repositories that this one knows, or change them"
        ),
    ),
    "Keep": (
        CommandEntry(name="fsck", module="upkeep", summary="Check that history keeps its rules"),
        CommandEntry(name="lint", module="upkeep", summary="Check skill folders by the rules of Agent Skills"),
        CommandEntry(
            name="scan",
            module="upkeep",
            summary="Look for secrets, leaked items and large files in what a push would publish",
        ),
        CommandEntry(name="replay", module="upkeep", summary="Make a run again from its commits, and compare"),
        CommandEntry(name="gc", module="upkeep", summary="Fold the branches of finished runs, or drop old evidence"),
        CommandEntry(name="doctor", module="setup", summary="Check this machine and the models of CONFIG"),
        CommandEntry(name="config", module="setup", summary="Show the settings that CONFIG amounts to"),
        CommandEntry(name="data", module="start", summary="Check the items of CONFIG, or fetch public ones"),
        CommandEntry(name="envs", module="setup", summary="List the environments, or describe one"),
        CommandEntry(name="backends", module="setup", summary="List the model backends, or describe one"),
        CommandEntry(name="completion", module="setup", summary="Print a script that completes commands in your shell"),
        CommandEntry(name="help", module="setup", summary="Show the help of a command"),
    ),
    "Plumbing": (
        CommandEntry(name="rev-parse", module="history", summary="Print the commit that REV names"),
        CommandEntry(
            name="events", module="history", summary="Print the events of a run as they are in git, oldest first"
        ),
        CommandEntry(name="sql", module="runs", summary="Answer an SQL query from the index, which it can only read"),
        CommandEntry(name="reindex", module="runs", summary="Drop the index and rebuild it from git"),
    ),
}

DAILY = ("init", "train", "status", "tui", "log", "show", "diff", "why", "eval", "install")
"""The commands that ``skillgit --help`` shows."""
ENTRIES: dict[str, CommandEntry] = {entry.name: entry for entries in SECTIONS.values() for entry in entries}


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """What an old name of a command is now; it works until the next release.

    Attributes:
        words: The words that take its place; empty where the old command is still there.
        module: The module that still defines the old command, as in :class:`CommandEntry`.
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
ELSEWHERE = {
    **dict.fromkeys(("resume", "continue"), "train --run NAME"),
    **dict.fromkeys(("list", "ls"), "runs"),
    "history": "log",
    "undo": "revert",
}
"""What other programs call a command."""
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
    for index, word in enumerate(rest):
        option, equals, value = word.partition("=")
        if option in options and not (option == "-o" and "=" in "".join(rest[index + 1 : index + 2])):
            rest[index] = f"{options[option]}{equals}{value}"
            sentences.append(f"skillgit {name} {option} is now {options[option]}")
    if name == "adopt" and "--undo" in rest:
        name, rest = "adopt --undo", [word for word in rest if word not in {"--undo", "--skill"}]
    successor = RENAMED.get(name)
    if successor is None:
        return [name, *rest], tuple(sentences)
    return [*(successor.words or (name,)), *rest], (f"skillgit {name} is now {successor.now}", *sentences)

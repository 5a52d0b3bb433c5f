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
        return f"skillgit.cli.commands.{self.name}"


SECTIONS: dict[str, tuple[Entry, ...]] = {
    "Start": (
        Entry(name="init", summary="Create a repository for skills, or prepare an existing one"),
        Entry(name="tasks", summary="Add to a file of tasks, or have tasks drafted"),
        Entry(name="train", summary="Train a skill as CONFIG says, one commit for each decision"),
        Entry(name="status", summary="Show the default run, its newest and its best version"),
        Entry(name="use", summary="Make RUN the default run"),
    ),
    "Look": (
        Entry(name="runs", summary="List the runs, newest first"),
        Entry(name="log", summary="Show the events of a run, newest first"),
        Entry(name="show", summary="Show one event: message, scores and diff"),
        Entry(name="diff", summary="Show the difference of two versions"),
        Entry(name="cost", summary="Show what a run has cost, and where it went"),
    ),
    "Use": (
        Entry(name="checkout", summary="Put a version in the work tree"),
        Entry(name="best", summary="Print the best version of a run"),
        Entry(name="eval", summary="Measure versions side by side and note the scores on their commits"),
    ),
    "Keep": (
        Entry(name="fsck", summary="Check that history keeps its rules"),
        Entry(name="doctor", summary="Check this machine and the models of CONFIG"),
        Entry(name="config", summary="Show the settings that CONFIG amounts to"),
        Entry(name="data", summary="Check the items of CONFIG, or fetch public ones"),
        Entry(name="envs", summary="List the environments, or describe one"),
        Entry(name="backends", summary="List the model backends, or describe one"),
        Entry(name="completion", summary="Print a script that completes commands in your shell"),
        Entry(name="version", summary="Print the version of skillgit"),
    ),
    "Plumbing": (Entry(name="reindex", summary="Drop the index and rebuild it from git"),),
}

ENTRIES: dict[str, Entry] = {entry.name: entry for entries in SECTIONS.values() for entry in entries}

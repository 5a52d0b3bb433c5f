"""The table of commands: what help lists, in its order, and where each command is defined. It imports none of them."""

from __future__ import annotations

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """A command: ``module`` of ``skillgit.verbs`` holds its verb as ``NAME``; a group of commands has no module."""

    name: str
    module: str
    summary: str


SECTIONS: dict[str, tuple[CommandEntry, ...]] = {
    "Start": (
        CommandEntry("init", "start", "Create a repository for skills, or prepare an existing one"),
        CommandEntry("tasks", "", "Add tasks, have them drafted, and review drafts"),
        CommandEntry("tasks add", "tasks", "Add a task to FILE after checking it"),
        CommandEntry("tasks draft", "tasks", "Draft tasks for SKILL: by a model, from sessions or eval cases"),
        CommandEntry("tasks review", "tasks", "Show drafts of tasks, and accept, edit or drop them"),
        CommandEntry("train", "train", "Train a skill as CONFIG says, one commit for each decision"),
        CommandEntry("import", "start", "Turn the output directory of a SkillOpt run into a run"),
        CommandEntry("status", "runs", "Show the default run, its newest and its best version"),
        CommandEntry("use", "runs", "Make RUN the default run"),
    ),
    "Look": (
        CommandEntry("tui", "tui", "Browse runs and their history on the screen"),
        CommandEntry("serve", "serve", "Show the repository in a browser, and train from there"),
        CommandEntry("mcp", "serve", "Answer agents about the history, by the Model Context Protocol"),
        CommandEntry("runs", "runs", "List the runs, newest first"),
        CommandEntry("log", "log", "Show the events of a run, newest first"),
        CommandEntry("show", "diff", "Show one event, or a file of a version"),
        CommandEntry("diff", "diff", "Show the difference of two versions"),
        CommandEntry("blame", "rules", "Show where each line of a skill comes from"),
        CommandEntry("why", "rules", "Explain why a rule is in a skill, from the rollouts that failed to the gate"),
        CommandEntry("items", "items", "Show which items are solved by which version"),
        CommandEntry("cost", "cost", "Show what a run has cost, and where it went"),
        CommandEntry("report", "report", "Write a page about a run for people without the repository"),
    ),
    "Change": (
        CommandEntry("note", "change", "Leave advice on a version for later steps"),
        CommandEntry("fork", "change", "Start a new run at a version of another one"),
        CommandEntry("revert", "change", "Take back the edits of one version, or go back to the text of one"),
        CommandEntry("cherry-pick", "change", "Put edits of a version or of rejected candidates on a run, by its gate"),
        CommandEntry("merge", "change", "Merge another run into RUN, where scores decide what both changed"),
        CommandEntry("shorten", "change", "Make a version shorter, if its score does not fall"),
        CommandEntry("ablate", "measure", "Leave out each rule of a version and measure what it is worth"),
    ),
    "Use": (
        CommandEntry("checkout", "deliver", "Put a version in the work tree"),
        CommandEntry("install", "deliver", "Put the skill of a version where an agent looks for it"),
        CommandEntry("uninstall", "deliver", "Restore what an installed skill replaced"),
        CommandEntry("export", "deliver", "Write a skill, a plug-in or a run elsewhere, without git"),
        CommandEntry("promote", "change", "Bring a version to the trunk with a merge commit"),
        CommandEntry("propose", "propose", "Train skills on reviewed tasks, and leave what is better as a branch"),
        CommandEntry("eval", "measure", "Measure versions side by side and note the scores on their commits"),
        CommandEntry("claim", "measure", "Sign a version's recorded score so that others can verify it"),
        CommandEntry("verify", "measure", "Check a signed claim of a score, against history and by measuring again"),
        CommandEntry("gate", "measure", "Judge the skills that a pull request changes by their scores"),
    ),
    "Share": (
        CommandEntry("push", "exchange", "Send runs to another repository"),
        CommandEntry("pull", "exchange", "Take in the runs of another repository"),
        CommandEntry("clone", "exchange", "Copy a repository with its runs, notes and rejected candidates"),
    ),
    "Keep": (
        CommandEntry("fsck", "upkeep", "Check that history keeps its rules"),
        CommandEntry("lint", "upkeep", "Check skill folders, or what a push would publish"),
        CommandEntry("gc", "upkeep", "Fold the branches of finished runs, or drop old evidence"),
        CommandEntry("doctor", "setup", "Check this machine, and the models and items of CONFIG"),
        CommandEntry("config", "setup", "Show the settings that CONFIG amounts to"),
        CommandEntry("plugins", "setup", "List environments, backends and strategies, describe one, or fetch its data"),
        CommandEntry("completion", "manual", "Print a script that completes commands in your shell"),
        CommandEntry("help", "manual", "Show the help of a command"),
    ),
    "Plumbing": (
        CommandEntry("rev-parse", "log", "Print the commit that REV names"),
        CommandEntry("sql", "sql", "Answer an SQL query from the index, which it can only read"),
    ),
}

DAILY = ("init", "doctor", "train", "propose", "status", "log", "show", "diff", "why", "eval", "install")
"""The commands that ``skillgit --help`` shows."""
ENTRIES: dict[str, CommandEntry] = {entry.name: entry for entries in SECTIONS.values() for entry in entries}


ELSEWHERE = {
    **dict.fromkeys(("resume", "continue"), "train --run NAME"),
    **dict.fromkeys(("list", "ls"), "runs"),
    "history": "log",
    "events": "log --jsonl",
    "bisect": "items --item ID",
    "fetch": "pull --dry-run",
    "matrix": "items --models",
    "reindex": "fsck --repair",
    "undo": "revert",
    "replay": "fsck --deep",
    "scan": "lint --secrets",
    "data": "plugins NAME --fetch DIR",
    "data check": "doctor CONFIG",
    **dict.fromkeys(("envs", "backends", "strategies"), "plugins"),
    "restore": "revert --to",
    "retry": "cherry-pick --rejected",
    "prune": "shorten",
    **dict.fromkeys(("watch", "recheck", "retire"), "propose --model new"),
    "compress": "shorten --words",
    "harvest": "tasks draft --from sessions",
    "import": "tasks draft --from DIR",  # in tasks
    "whence": "install --list PATH",
    "plugin": "export --as plugin",
    "train --placebo": "-o train.placebo=N",
    "gate --markdown": "--output -",
    "log --rejected": "log",
    "shorten --rules": "shorten",
    "tui --mouse": "tui",
    "gate --library": "lint --library DIR --base REV",
    "export --layout": "--as",
    "export --csv": "--as csv",
    "export --mlflow": "--as mlflow",
    "diff --tui": "tui A..B",
    "mcp --http": "serve --mcp --port N",
    "verify --claim": "verify CLAIM",
}
"""What other programs, or earlier versions of this one, call a command or an option of one."""

"""A run whose every free text wants to act on the terminal that shows it: skill, tasks, answers, messages, names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pygit2
import pytest
import rule_run
import sample_run
from sample_run import RUN

from skillgit.store import history_reader

if TYPE_CHECKING:
    from skillgit.store.repo import Repo

EVIL = "\x1b]0;x\x07\x1b[31mFORGED\x1b[2J\r\u202eleft\u200b\x9b\U000e0041\x7f"
ACTS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def write_hostile_run(repo: Repo) -> None:
    """Write it into ``repo``."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("METRES", "UNITS", "DATES", "TRIED", "DATES_EXACTLY", "TABLES", "PERSON"):
            value = getattr(rule_run, name)
            patch.setattr(rule_run, name, f"{value[:6]}{EVIL.replace(chr(10), '')}{value[6:]}")
        patch.setattr(
            rule_run,
            "_ROLLOUT",
            tuple((item, hard, *(EVIL + text for text in texts)) for item, hard, *texts in rule_run._ROLLOUT),
        )
        text = sample_run.DOCUMENT_TEXT.replace("Always answer in metres.", rule_run.METRES)
        patch.setattr(sample_run, "DOCUMENT_TEXT", text)
        patch.setattr(sample_run, "MODELS", sample_run.Models(target=f"offline/{EVIL}", optimizer=f"offline/{EVIL}"))
        rule_run.write_rule_run(repo)
        forge_messages(repo)


def forge_messages(repo: Repo) -> None:
    """Give every commit a message that the program would not write, as a stranger's tool may."""
    new: dict[str, str] = {}
    for record in history_reader.read_run(repo, RUN):
        commit = repo.commit(record.commit)
        head, blank, rest = commit.message.partition("\n\n")
        person = pygit2.Signature(f"Eve {EVIL}".replace("\n", ""), f"eve{EVIL}@example.com", commit.commit_time, 0)
        parents = [new.get(str(parent), str(parent)) for parent in commit.parent_ids]
        head = head.replace(": ", f": {EVIL}", 1)
        text = f"{head}{blank}Why {EVIL}.\n\n{rest}"
        new[record.commit] = str(repo.raw.create_commit(None, person, person, text, commit.tree_id, parents))
    for name, oid in repo.tips().items():
        if oid in new:
            repo.raw.references[name].set_target(new[oid])

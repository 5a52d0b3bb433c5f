"""Whatever stands in one session, the harvest ends, says so, and drafts the others; it reads no project but its own."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import planted
import pytest
import worlds
from soaking import sampled
from test_harvest import context_of

from skillgit.app.sources.harvest import Harvested, harvest
from skillgit.app.sources.requests import DraftRequest

if TYPE_CHECKING:
    from pathlib import Path

VALUES: tuple[Any, ...] = (
    *(99999999999999999999999, -1, 0, 1e308, float("nan"), float("inf"), True, None, [], {}, [[1]], ""),
    *("http://[", "\ud800", "\x00", "/\x00", "../" * 40, "a" * 9000, "@@ -1,1 +1,1 @@\n-x", "0" * 5000),
)


def damaged(value: Any, chance: random.Random, rate: float) -> Any:
    if chance.random() < rate:
        return chance.choice(VALUES)
    if isinstance(value, dict):
        return {key: damaged(part, chance, rate) for key, part in value.items()}
    return [damaged(part, chance, rate) for part in value] if isinstance(value, list) else value


def harvested(folder: Path, agent: str, state: Path) -> Harvested:
    request = DraftRequest(subject="totals", source=f"sessions:{state}", dry_run=True)
    result = harvest(context_of(folder, agent, state), request)
    assert isinstance(result, Harvested)
    return result


def add_damaged(state: Path, agent: str, chance: random.Random) -> None:
    """Put beside what an agent kept a later copy of it with damage anywhere in it."""
    if agent == "opencode":
        copy = state / "opencode.z.db"
        shutil.copy(state / "opencode.db", copy)
        with closing(sqlite3.connect(copy)) as database, database:
            for table in ("message", "part"):
                for identity, data in database.execute(f"SELECT id, data FROM {table}").fetchall():  # noqa: S608
                    text = json.dumps(damaged(json.loads(data), chance, 0.05))
                    database.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (text, identity))  # noqa: S608
            for column in ("time_created", "directory", "version", "revert"):
                value = chance.choice(VALUES)
                fit = value if isinstance(value, float) or (isinstance(value, str) and value.isascii()) else "x"
                if chance.random() < 0.2:
                    database.execute(f"UPDATE session SET {column} = ?", (fit,))  # noqa: S608
        return
    for file in [path for path in state.rglob("*.jsonl") if "damaged" not in str(path)]:
        lines = [json.dumps(damaged(json.loads(line), chance, 0.03)) for line in file.read_text().splitlines()]
        copy = file.parent.with_name(f"{file.parent.name}-damaged") / file.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text("\n".join(lines))
        os.utime(copy, (1_950_000_000,) * 2)


@pytest.mark.parametrize("agent", worlds.WORLDS)
@pytest.mark.parametrize("seed", sampled(range(12), 12))
def test_damage_in_one_session_leaves_the_others(agent, seed, tmp_path):
    folder, state = planted.lay_out(tmp_path, agent, worlds.SLOTTED)
    state = state.parent if agent == "opencode" else state
    before = {draft.title for draft in harvested(folder, agent, state).drafts}
    chance = random.Random(seed)  # noqa: S311 - it chooses damage
    for _ in range(3):
        add_damaged(state, agent, chance)
        result = harvested(folder, agent, state)
        assert set() < before <= {draft.title for draft in result.drafts}


def test_a_damaged_database_is_named_and_passed_over(tmp_path):
    folder, state = planted.lay_out(tmp_path, "codex", worlds.SLOTTED)
    before = len(harvested(folder, "codex", state).drafts)
    (state / "opencode.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    endless = "WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) SELECT id FROM r"
    with closing(sqlite3.connect(state / "opencode.view.db")) as database:
        database.execute(f"CREATE VIEW session AS {endless}")
    result = harvested(folder, "codex", state)
    assert len(result.drafts) == before > 0
    assert [remark for remark in result.remarks if "opencode.db cannot be read" in remark]
    assert [remark for remark in result.remarks if "has no tables message, part, session" in remark]


def test_another_project_is_not_read_by_a_way_through_this_one(tmp_path):
    folder, state = planted.lay_out(tmp_path, "codex", worlds.SLOTTED)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "link").symlink_to(folder)
    for file in state.rglob("*.jsonl"):
        text = file.read_text()
        for way in ("mine/../shop", "mine/link"):
            copy = file.with_name(f"rollout-{way.replace('/', '-')}.jsonl")
            copy.write_text(text.replace(str(folder), f"{tmp_path}/{way}"))
    request = DraftRequest(subject="totals", source=f"sessions:{state}", projects=(tmp_path / "mine",), dry_run=True)
    result = harvest(context_of(folder, "codex", state), request)
    assert isinstance(result, Harvested)
    assert (result.sessions, len(result.drafts)) == (0, 0)
    assert result.other_projects == 3


@pytest.mark.parametrize(("agent", "key", "value"), [("codex", "cwd", "http://["), ("opencode", "created", 10**23)])
def test_a_value_that_nobody_can_read_ends_no_harvest(agent, key, value, tmp_path):
    folder, state = planted.lay_out(tmp_path, agent, worlds.SLOTTED)

    def altered(part: Any, *, is_inside: bool = False) -> Any:
        if isinstance(part, list):
            return [altered(entry, is_inside=is_inside) for entry in part]
        if not isinstance(part, dict):
            return part
        inner = {name: altered(entry, is_inside=is_inside or name in ("item", "time")) for name, entry in part.items()}
        return inner | ({key: value} if is_inside and key in inner else {})

    if agent == "opencode":
        with closing(sqlite3.connect(state)) as database, database:
            for identity, data in database.execute("SELECT id, data FROM message").fetchall():
                text = json.dumps(altered(json.loads(data)))
                database.execute("UPDATE message SET data = ? WHERE id = ?", (text, identity))
    else:
        for file in state.rglob("*.jsonl"):
            lines = [json.dumps(altered(json.loads(line))) for line in file.read_text().splitlines()]
            file.write_text("\n".join(lines))
    assert len(harvested(folder, agent, state).drafts) == len(worlds.EPISODES[agent])

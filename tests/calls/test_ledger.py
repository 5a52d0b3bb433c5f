from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
from dataclasses import asdict, replace
from typing import get_args

import event_strategies as strategies
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.calls.ledger import Charge, FailedAttempt, KnownRollout, Ledger, PaidReply
from skillgit.domain.cost import Cost, CostSum
from skillgit.domain.evaluation import FailureKind
from skillgit.errors import FormatVersionError, HistoryError
from skillgit.plugin.backend import MOST_TOKENS, FinishReason, Reply, ToolCall, Usage

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
count = st.integers(0, MOST_TOKENS)
amount = st.floats(0, 1e6, allow_nan=False)
usages = st.builds(Usage, tokens_in=count, tokens_out=count, cached=count, cache_written=count, reasoning=count)


def cost_of(usage, usd=0.0, seconds=0.0, unpriced=0):
    """Return what a call with this usage costs."""
    return Cost(calls=1, usd=usd, seconds=seconds, unpriced=unpriced, **asdict(usage))


costs = st.builds(cost_of, usages, usd=amount, seconds=amount, unpriced=st.integers(0, 1))
charges = st.builds(Charge, key=text, role=text, stage=text, cost=costs)
replies = st.builds(
    Reply,
    text=text,
    usage=usages,
    finish_reason=st.sampled_from(get_args(FinishReason)),
    tool_calls=st.lists(st.builds(ToolCall, id=text, name=text, arguments=text), max_size=3).map(tuple),
)


def paid(key="k", scope="run/1", said="hello"):
    usage = Usage(tokens_in=3, tokens_out=2)
    cost = Cost(calls=1, tokens_in=3, tokens_out=2, usd=0.5, seconds=1.5)
    charge = Charge(key=key, role="target", stage="rollout", cost=cost)
    return PaidReply(reply=Reply(text=said, usage=usage), scope=scope, charge=charge)


@given(
    reply=replies,
    scope=text,
    place=st.tuples(text, text),
    request=text,
    paid=st.fixed_dictionaries({"usd": amount, "seconds": amount, "unpriced": st.integers(0, 1)}),
)
def test_a_reply_is_read_as_it_was_recorded(reply, scope, place, request, paid):
    role, stage = place
    cost = cost_of(reply.usage, **paid)
    charge = Charge(key="k", role=role, stage=stage, cost=cost)
    row = PaidReply(reply=reply, scope=scope, charge=charge, request=request)
    with Ledger.in_memory() as ledger:
        assert ledger.record_reply(row) == row
        assert ledger.reply("k") == row


@given(value=text.map(json.dumps), scope=text, paid_for=st.lists(charges, max_size=4).map(tuple))
def test_an_outcome_is_read_as_it_was_recorded(value, scope, paid_for):
    row = KnownRollout(value=value, scope=scope, charges=paid_for)
    with Ledger.in_memory() as ledger:
        assert ledger.record_rollout("k", row) == row
        assert ledger.rollout("k") == row


def test_what_is_not_there_is_none():
    with Ledger.in_memory() as ledger:
        assert ledger.reply("k") is None
        assert ledger.rollout("k") is None


def test_the_first_record_stays_and_is_what_a_second_writer_gets(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as one, Ledger.open(tmp_path / "ledger.db") as two:
        first = one.record_reply(paid(said="first"))
        assert two.record_reply(paid(said="second", scope="run/2")) == first
        outcome = one.record_rollout("k", KnownRollout(value="1", scope="run/1"))
        assert two.record_rollout("k", KnownRollout(value="2", scope="run/2")) == outcome


def test_records_survive_the_connection_and_the_file_may_be_deleted(tmp_path):
    path = tmp_path / "deep" / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.record_reply(paid())
    with Ledger.open(path) as ledger:
        assert ledger.reply("k") == paid()
    path.unlink()
    with Ledger.open(path) as ledger:
        assert ledger.reply("k") is None


def test_the_file_is_written_ahead_and_every_row_is_on_the_disk(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert ledger._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert ledger._connection.in_transaction is False


FORMAT_1 = """
CREATE TABLE reply (
    key TEXT PRIMARY KEY, scope TEXT NOT NULL, role TEXT NOT NULL, stage TEXT NOT NULL, reply TEXT NOT NULL,
    tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, cached INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    usd REAL NOT NULL, seconds REAL NOT NULL
) STRICT;
CREATE TABLE rollout (
    key TEXT PRIMARY KEY, scope TEXT NOT NULL, value TEXT NOT NULL, cost TEXT NOT NULL
) STRICT;
INSERT INTO reply VALUES (
    'k', 'run/1', 'target', 'rollout', '{"text":"hello","finish_reason":"stop","tool_calls":[]}', 3, 2, 0, 0, 0.5, 1.5
);
PRAGMA user_version = 1;
"""


def test_a_ledger_of_an_older_skillgit_keeps_what_was_paid_for(tmp_path):
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.executescript(FORMAT_1)
    connection.close()
    for _ in range(2):
        with Ledger.open(path) as ledger:
            assert ledger.reply("k") == paid()
            new = replace(paid("l"), request="digest")
            assert ledger.record_reply(new) == new
            assert ledger._connection.execute("PRAGMA user_version").fetchone() == (8,)


FORMAT_2 = (
    FORMAT_1.replace("PRAGMA user_version = 1", "PRAGMA user_version = 2")
    + """
ALTER TABLE reply ADD COLUMN request TEXT NOT NULL DEFAULT '';
UPDATE reply SET request = 'digest', cached = 2, reasoning = 1;
INSERT INTO rollout VALUES ('o', 'run/1', '7', '[["k","target","rollout",1,3,2,0.5,1.5]]');
"""
)


def test_a_ledger_of_format_2_is_read_and_written_and_what_it_did_not_count_is_0(tmp_path):
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.executescript(FORMAT_2)
    connection.close()
    old = paid()
    usage = replace(old.reply.usage, cached=2, reasoning=1)
    for _ in range(2):
        with Ledger.open(path) as ledger:
            found = ledger.reply("k")
            assert found.reply.usage == usage
            assert found.charge.cost == cost_of(usage, usd=0.5, seconds=1.5)
            assert ledger.rollout("o") == KnownRollout(value="7", scope="run/1", charges=(old.charge,))
            cost = cost_of(usage, unpriced=1)
            new = replace(found, charge=replace(found.charge, key="new", cost=cost))
            assert ledger.record_reply(new) == new


def test_a_new_ledger_and_an_upgraded_one_have_the_same_columns(tmp_path):
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(FORMAT_1)
    connection.close()

    def columns(name):
        with Ledger.open(tmp_path / name) as ledger:
            return {row[1:] for row in ledger._connection.execute("PRAGMA table_info(reply)")}

    assert columns("old.db") == columns("new.db")


def test_a_ledger_that_is_only_read_is_left_as_it_is(tmp_path):
    path = tmp_path / "ledger.db"
    with Ledger.read(path) as empty:
        assert empty.reply("k") is None
    assert not path.exists()
    with Ledger.open(path) as ledger:
        ledger.record_reply(paid())
    before = path.read_bytes()
    with Ledger.read(path) as ledger:
        assert ledger.reply("k") == paid()
        with pytest.raises(HistoryError):
            ledger.record_reply(paid("other"))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]
    old = tmp_path / "old.db"
    connection = sqlite3.connect(old)
    connection.executescript(FORMAT_1)
    connection.close()
    before = old.read_bytes()
    with Ledger.read(old) as ledger:
        assert ledger.rollout("o") is None
    assert old.read_bytes() == before


def test_a_ledger_of_a_newer_skillgit_is_left_alone(tmp_path):
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(FormatVersionError, match="written by a newer skillgit") as caught:
        Ledger.open(path)
    assert "update skillgit" in caught.value.hint


@pytest.mark.parametrize("make", [lambda path: path.write_bytes(b"not a database" * 100), lambda path: path.mkdir()])
def test_what_is_no_ledger_is_explained(tmp_path, make):
    path = tmp_path / "ledger.db"
    make(path)
    with pytest.raises(HistoryError, match="cannot be used") as caught:
        Ledger.open(path)
    assert "delete the file" in caught.value.hint


def test_a_folder_that_cannot_be_made_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match="cannot be used"):
        Ledger.open(tmp_path / "file" / "ledger.db")


WRITER = """
import sys
from pathlib import Path
from skillgit.calls.ledger import Ledger
from skillgit.calls.ledger import KnownRollout
with Ledger.open(Path(sys.argv[1])) as ledger:
    for number in range(200):
        ledger.record_rollout(f"{sys.argv[2]}-{number % 150}", KnownRollout(value="1", scope="s"))
        ledger.record_rollout(f"shared-{number}", KnownRollout(value=sys.argv[2], scope="s"))
"""


def test_several_processes_may_make_and_write_one_ledger(tmp_path):
    path = tmp_path / "ledger.db"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    with Ledger.open(path) as ledger:
        assert ledger._connection.execute("SELECT count(*) FROM rollout").fetchone() == (4 * 150 + 200,)


@given(st.lists(st.tuples(st.sampled_from(["run/1", "run/10", "run/2"]), costs), max_size=8))
def test_what_a_scope_spent_is_the_sum_of_its_calls(bought):
    with Ledger.in_memory() as ledger:
        sums = {"run/1": CostSum(), "run/10": CostSum(), "run/2": CostSum(), "run/": CostSum()}
        for number, (scope, cost) in enumerate(bought):
            charge = Charge(key=str(number), role="target", stage="rollout", cost=cost)
            usage = Usage(**{name: getattr(cost, name) for name in asdict(Usage(tokens_in=0, tokens_out=0))})
            ledger.record_reply(PaidReply(reply=Reply(text="", usage=usage), scope=scope, charge=charge))
            sums[scope].add(cost)
        for scope, total in sums.items():
            assert ledger.spent(scope) == total.total()


DAMAGE = [
    ("reply", "reply", "{"),
    ("reply", "reply", "[]"),
    ("reply", "reply", '{"text": 1}'),
    ("reply", "reply", "[" * 100_000),
    ("reply", "reply", '{"text": ' + "9" * 5000 + "}"),
    ("reply", "tokens_in", -1),
    ("reply", "tokens_out", 2**63 - 1),
    ("reply", "usd", math.inf),
    ("reply", "usd", -1.0),
    ("reply", "seconds", 1e308),
    ("reply", "unpriced", -(2**63)),
    ("rollout", "value", "{"),
    ("rollout", "value", "[" * 100_000),
    ("rollout", "cost", "{}"),
    ("rollout", "cost", "[1]"),
    ("rollout", "cost", '[["k", "target"]]'),
    ("rollout", "cost", '[["k", "target", "rollout", 1, -3]]'),
    ("rollout", "cost", '[["k", "target", "rollout", 1, 3, 3, NaN]]'),
    ("rollout", "cost", '[["k", "target", "rollout", "1"]]'),
    ("failure", "tokens_in", -1),
    ("failure", "calls", 2**62),
    ("failure", "usd", math.inf),
]


@pytest.mark.parametrize(("table", "column", "value"), DAMAGE)
def test_a_row_that_no_call_can_have_left_is_named_as_such(tmp_path, table, column, value):
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        row = ledger.record_reply(paid())
        ledger.record_rollout("k", KnownRollout(value="1", scope="run/1", charges=(row.charge,)))
        cost = Cost(calls=1, tokens_in=1)
        charge = Charge(key="", role="target", stage="rollout", cost=cost)
        ledger.record_failure(
            FailedAttempt(
                call="k", scope="run/2", kind=FailureKind.TIMEOUT, reason="r", hint="", final=False, charge=charge
            )
        )
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE {table} SET {column} = ?", (value,))  # noqa: S608 - constants
    connection.commit()
    connection.close()
    look = {"reply": Ledger.reply, "rollout": Ledger.rollout, "failure": Ledger.failures}[table]
    with Ledger.open(path) as ledger, pytest.raises(HistoryError, match="a row that cannot be right") as caught:
        look(ledger, "k")
    assert "calls are paid for again" in caught.value.hint
    if column not in ("reply", "value", "cost"):
        with Ledger.open(path) as ledger, pytest.raises(HistoryError):
            ledger.spent("run/1" if table == "reply" else "run/2")


@pytest.mark.parametrize("word", [b"TABLE", b"INTEGER"])
def test_a_schema_that_is_no_text_is_told_in_a_sentence(tmp_path, word):
    path = tmp_path / "ledger.db"
    Ledger.open(path).close()
    path.write_bytes(path.read_bytes().replace(word, b"\xff" * len(word)))
    with pytest.raises(HistoryError, match="cannot be used"):
        Ledger.open(path).close()


@given(strategies.served)
def test_who_answered_is_read_as_it_was_recorded(model):
    named = replace(model, role="", variable="")  # what a run calls it is the run's
    with Ledger.in_memory() as ledger:
        ledger.record_served(named, 1.0)
        assert ledger.served(named.key) == named

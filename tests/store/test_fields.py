"""Records are read and written by what they declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import event_strategies as strategies
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.edit import Op
from skillgit.domain.event import Inherited
from skillgit.errors import TrailerError
from skillgit.store import trailer_table
from skillgit.store.trailer_table import AMOUNT, INTEGER, NEEDED, NUMBER, TEXT, WORD, Field, Record, flag, member

if TYPE_CHECKING:
    from random import Random

RECORDS = {
    trailer_table.EDIT: strategies.edits,
    trailer_table.PATCH: strategies.patches,
    trailer_table.SUMMARY: strategies.summaries,
    trailer_table.GATE: strategies.verdicts(),
    trailer_table.MODELS: strategies.models.filter(lambda models: models.target or models.optimizer),
    trailer_table.COST: strategies.costs.map(lambda cost: cost.whole),
    trailer_table.SPENT: strategies.parts.filter(bool).map(lambda parts: parts[0]),
    trailer_table.INHERITED: st.builds(Inherited, version=strategies.counts),
}
written = st.sampled_from(list(RECORDS)).flatmap(lambda record: st.tuples(st.just(record), RECORDS[record]))


@dataclass(frozen=True, kw_only=True)
class Sample:
    op: Op
    count: int
    share: float = 0.5
    name: str
    late: bool = False


SAMPLE = Record(
    Sample,
    Field(WORD, member(Op), "op"),
    Field("n", INTEGER, "count"),
    Field("share", NUMBER),
    Field("name", TEXT),
    Field("late", flag("yes", means=True)),
)


@given(written)
def test_every_record_comes_back(pair):
    record, whole = pair

    assert record.read(record.write(whole)) == whole


@given(written, st.randoms(use_true_random=False))
def test_the_order_of_fields_and_fields_of_a_newer_skillgit_make_no_difference(pair, random: Random):
    record, whole = pair
    tokens = record.write(whole).split(" ")
    first = [] if "=" in tokens[0] else [tokens.pop(0)]
    tokens.append("invented=1")
    random.shuffle(tokens)

    assert record.read(" ".join([*first, *tokens])) == whole


@given(written.filter(lambda pair: pair[0].inner is None), st.data())
def test_a_record_without_one_of_its_fields_says_its_default_or_nothing(pair, data):
    record, whole = pair
    tokens = record.write(whole).split(" ")
    gone = data.draw(st.sampled_from(tokens))
    key = gone.partition("=")[0] if "=" in gone else WORD
    field = next(field for field in record.fields if field.key == key)
    text = " ".join(token for token in tokens if token != gone)
    if record.absent(field) is NEEDED or not text:
        with pytest.raises(TrailerError):
            record.read(text)
    elif not field.derived:
        assert getattr(record.read(text), field.attribute) == record.absent(field)


def test_a_record_reads_like_this():
    sample = Sample(op=Op.DELETE, count=-3, name="a b")

    assert SAMPLE.write(sample) == "delete n=-3 name=a%20b"
    assert SAMPLE.read("delete late=yes name=a%20b share=1e-3 n=-3") == Sample(
        op=Op.DELETE, count=-3, name="a b", share=0.001, late=True
    )


@pytest.mark.parametrize(
    "text",
    [
        "n=1 name=a",
        "explode n=1",
        "delete",
        "delete n=one",
        "delete n=1.0",
        "delete n=+1",
        "delete n=1000000000000000000",
        "delete n=1 n=1",
        "delete n=1 share=inf",
        "delete n=1 share=nan",
        "delete n=1 share=1e999",
        "delete n=1 share=.5",
        "delete n=1 late=no",
        "delete n=1 name=",
        "delete delete n=1",
        "",
    ],
)
def test_what_does_not_fit_is_refused(text):
    with pytest.raises(TrailerError):
        SAMPLE.read(text)


@pytest.mark.parametrize("token", ["-1", "1000000000000000", "1e3", ""])
def test_amounts_add_up_in_a_database(token):
    record = Record(Inherited, Field("version", AMOUNT))
    assert record.read("version=999999999999999") == Inherited(version=10**15 - 1)
    with pytest.raises(TrailerError):
        record.read(f"version={token}")


def test_a_word_before_a_value_that_has_none_is_refused():
    with pytest.raises(TrailerError, match="begins with a word"):
        trailer_table.MODELS.read("both target=a optimizer=b")

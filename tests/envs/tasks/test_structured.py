from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillgit.errors import DataError
from skillgit_envs.tasks.checks.comparisons import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
    "required": ["name"],
    "$defs": {"line": {"type": "object", "required": ["price"]}},
}
GOOD = {"name": "Oak", "lines": [{"price": 3}, {"price": 4.0}]}


def check(**fields: object) -> dict:
    return {"check": {"type": "json", **fields}}


def test_json_that_fits_the_schema_and_has_the_fields_is_right(graded):
    row = check(schema=SCHEMA, fields={"name": "Oak", "lines.1.price": 4})
    assert graded(row, json.dumps(GOOD)) == (1.0, 1.0, "correct")


def test_the_share_of_right_fields_is_partial_credit(graded):
    row = check(fields={"name": "Oak", "lines.0.price": 9, "lines.7.price": 1, "lines": GOOD["lines"]})
    hard, soft, said = graded(row, json.dumps(GOOD))
    assert (hard, soft) == (0.0, 0.5)
    assert said == "wrong fields: lines.0.price: expected 9; lines.7.price: expected 1"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("{", "the answer is no JSON"),
        ("[" * 100_000, "the answer is no JSON"),
        ('{"lines": []}', "$: 'name' is a required property"),
        ('{"name": 3}', "$.name: 3 is not of type 'string'"),
        ('{"name": "a", "lines": [{}]}', "$.lines[0]: 'price' is a required property"),
    ],
)
def test_what_does_not_fit_is_told(graded, answer: str, said: str):
    hard, soft, feedback = graded(check(schema=SCHEMA), answer)
    assert (hard, soft) == (0.0, 0.0)
    assert said in feedback


def test_true_is_not_one(graded):
    assert graded(check(fields={"a": 1}), '{"a": true}')[0] == 0.0
    assert graded(check(fields={"a": [1, {"b": 2}]}), '{"a": [1.0, {"b": 2}]}')[0] == 1.0


FITTING = {
    "date": st.dates().map(str),
    "date-time": st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.isoformat()),
    "time": st.times().map(lambda moment: f"{moment}Z"),
    "email": st.just("a@b.example"),
    "idn-email": st.just("ä@b.example"),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "regex": st.sampled_from(["a+", "[x]"]),
    "uuid": st.uuids().map(str),
}


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
def test_every_format_that_may_be_asked_for_is_enforced(graded, name: str, data: st.DataObject):
    row = check(schema={"properties": {"a": {"format": name}}})
    assert graded(row, json.dumps({"a": data.draw(FITTING[name])}))[0] == 1.0
    assert graded(row, json.dumps({"a": "("}))[0] == 0.0
    assert graded(row, json.dumps({"a": 7}))[0] == 1.0, "a format is about texts"


@pytest.mark.parametrize(
    "text", ["2026-02-30T10:00:00Z", "2026-02-03 10:00:00Z", "2026-02-03T10:00:00", "2026-02-03T24:00:00Z"]
)
def test_a_moment_is_written_as_rfc_3339_has_it(graded, text: str):
    assert graded(check(schema={"format": "date-time"}), json.dumps(text))[0] == 0.0


def test_a_value_or_a_name_is_no_keyword(graded):
    schema = {
        "properties": {"format": {"const": {"format": "uri"}}, "$ref": True},
        "examples": [{"$ref": "https://example.org"}],
    }
    assert graded(check(schema=schema), '{"format": {"format": "uri"}}')[0] == 1.0


def test_a_schema_may_be_a_file(graded, tmp_path: Path):
    (tmp_path / "form.json").write_text(json.dumps(SCHEMA))
    assert graded(check(schema="form.json"), json.dumps(GOOD))[0] == 1.0


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "needs 'schema' or 'fields'"),
        ({"schema": {"type": "objekt"}}, "has a schema that is none"),
        ({"schema": {"$ref": "https://example.org/form.json"}}, "refers to https://example.org/form.json"),
        ({"schema": "gone.json"}, "there is no file gone.json"),
        ({"schema": {"format": "uri"}}, "has a schema with the format 'uri', which is not checked"),
        ({"schema": {"$defs": {"a": {"prefixItems": [True, {"format": "x"}]}}}}, "the format 'x'"),
        ({"schema": {"anyOf": [{"properties": {"format": {"format": "hostname"}}}]}}, "the format 'hostname'"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(graded, fields: dict, said: str):
    with pytest.raises(DataError, match="the row") as caught:
        graded(check(**fields), "{}")
    assert said in caught.value.message

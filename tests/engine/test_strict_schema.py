"""The schemas that providers are sent: strict modes take them, and what they allow is what the reader reads."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples
from wire.schemas import faults

from skillgit.engine import candidate as candidate_text
from skillgit.engine import reflect
from skillgit.engine import replies as reply_schemas
from skillgit.engine.prompt_sections import prompt
from skillgit.engine.replies import AnalysisReply, ReplyModel, parse, strict_schema

DEEPEST, MOST_KEYS = 5, 100
"""What OpenAI's strict mode takes: levels of objects and lists, and keys in all."""
TEXTS = st.text(st.characters(categories=("L", "N", "P", "Z")), min_size=1, max_size=20).filter(
    lambda text: "<!--" not in text
)


def models(base: type[ReplyModel] = ReplyModel) -> list[type[ReplyModel]]:
    """Return every kind of reply that the engine asks for."""
    modules = {module.__name__ for module in (reply_schemas, reflect, candidate_text)}
    kinds = [inner for kind in base.__subclasses__() for inner in (kind, *models(kind))]
    whole = {kind for kind in kinds if kind.__module__ in modules and not kind.__abstractmethods__}
    return sorted((kind for kind in whole if not kind.__name__.startswith("_")), key=lambda kind: kind.__name__)


def naming_all(model: type[ReplyModel]) -> str:
    """Return a prompt that names every key that there is, in no order of the model's."""
    inner = [reply_schemas.EditReply, reply_schemas.SuggestionReply, reply_schemas.FailurePattern]
    names = {name for kind in (model, *inner) for name in kind.model_fields}
    return "\n## Your answer\n" + " ".join(f"`{name}`" for name in sorted(names - {"source"}))


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    match schema:
        case {"enum": choices}:
            return st.sampled_from(choices)
        case {"properties": fields}:
            return st.fixed_dictionaries({name: values(field) for name, field in fields.items()})
        case {"items": items}:
            return st.lists(values(items), max_size=3)
    return {"string": TEXTS, "integer": st.integers(-3, 10**6)}[schema["type"]]


def depth(schema: dict[str, Any]) -> int:
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return (schema["type"] == "object") + max(map(depth, inner), default=0)


def keys(schema: dict[str, Any]) -> int:
    fields = schema.get("properties", {})
    inner = [*fields.values(), *([schema["items"]] if "items" in schema else [])]
    return len(fields) + sum(map(keys, inner))


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_strict_modes_take_it(model):
    schema = strict_schema(model, naming_all(model))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert list(faults(schema)) == []
    assert schema["title"].isalnum()
    assert depth(schema) <= DEEPEST
    assert keys(schema) <= MOST_KEYS


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
@examples(0.4)
@given(data=st.data())
def test_whatever_it_allows_is_read_and_said_again_fits_it(model, data):
    schema = strict_schema(model, naming_all(model))
    reply = data.draw(values(schema))
    jsonschema.validate(reply, schema)
    answer = parse(json.dumps(reply), model)
    unasked = {"source"} | ({"support", "items", "joins"} if issubclass(model, reply_schemas.RewriteReply) else set())
    assert set(answer.model_dump()) - unasked == set(reply)


def test_a_reply_of_every_key_keeps_what_it_says():
    edit = {
        "support": 2,
        "items": ["a"],
        "joins": [0],
        "op": "append",
        "file": "SKILL.md",
        "anchor": "",
        "content": "c",
    }
    finding = {"pattern": "p", "count": 3, "items": ["a"], "rival": ""}
    said = {"title": "t", "reasoning": "r", "findings": [finding], "notes": [], "edits": [edit]}
    jsonschema.validate(said, strict_schema(AnalysisReply, naming_all(AnalysisReply)))
    answer = parse(json.dumps(said), AnalysisReply)
    assert (answer.title, answer.reasoning, answer.findings[0].count, answer.notes) == ("t", "r", 3, ())
    assert (answer.edits[0].content, answer.edits[0].source, answer.edits[0].joins) == ("c", None, (0,))


ASKED = {
    "analyse_failures": AnalysisReply,
    "analyse_successes": AnalysisReply,
    "merge_and_rank": reply_schemas.PatchReply,
    "merge": reply_schemas.PatchReply,
    "meta_reflect": reply_schemas.PatchReply,
    "rank": reply_schemas.RankReply,
    "budget": reply_schemas.BudgetReply,
    "suggest_from_failures": reply_schemas.SuggestionAnalysis,
    "rewrite_from_failures": reply_schemas.RewriteAnalysis,
    "slow_update": reply_schemas.GuidanceReply,
    "meta_skill": reply_schemas.MemoryReply,
}


@pytest.mark.parametrize("name", ASKED)
def test_a_reply_has_the_keys_that_its_prompt_asks_for(name):
    text = prompt(name)
    keys_asked = strict_schema(ASKED[name], text)["required"]
    example = json.loads(text.rpartition("```json")[2].partition("```")[0])
    assert set(example) <= set(keys_asked) <= {*example, "items"}, "findings have items too"
    assert keys_asked.index("reasoning") < len(keys_asked) - 1, "what is decided comes last"


def test_an_analyst_says_what_it_saw_before_what_to_do_and_no_key_that_only_a_merge_has():
    schema = strict_schema(AnalysisReply, prompt("analyse_failures"))
    assert schema["required"].index("findings") < schema["required"].index("edits")
    assert not {"joins", "support", "notes"} & set(json.dumps(schema).replace('"', " ").split())


def test_a_field_that_strict_modes_do_not_have_is_an_error():
    class Free(ReplyModel):
        tasks: list[dict[str, object]]

    with pytest.raises(ValueError, match="no such field"):
        strict_schema(Free, "`tasks`")


ALL_ASKED = {
    **{name: words.analysis for words in reply_schemas.DIALECTS.values() for name in (words.failures, words.successes)},
    **{name: words.merge_reply for words in reply_schemas.DIALECTS.values() for name in (words.merge,)},
    **{name: reply for name, reply in ASKED.items() if name not in {"slow_update", "meta_skill"}},
    "rewrite": reply_schemas.RewriteReply,
}


@pytest.mark.parametrize("name", ALL_ASKED)
def test_each_required_key_is_named_where_the_answer_is_described_and_none_is_called_optional(name):
    text = prompt(name)
    prose = text[text.rfind("\n## Your answer") : text.rfind("\nExample:")]
    assert "if there is one" not in prose
    bullets = re.findall(r"^- `(\w+)`(.*(?:\n +.*)*)", prose, re.MULTILINE)
    schema = strict_schema(ALL_ASKED[name], text)
    assert schema["required"] == [key for key, _ in bullets]
    for key, words in bullets:
        entry = schema["properties"][key]
        if entry.get("items", {}).get("type") == "object":
            assert set(entry["items"]["required"]) <= set(re.findall(r"`(\w+)`", words)), key

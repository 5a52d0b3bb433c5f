from __future__ import annotations

from dataclasses import replace

import pytest

from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import Image, Message, Request, Text, Tool, ToolCall, assistant, system, user
from skillgit_backends.claude_chat import LARGE, read_settings, write_body

BASE = Request(model="claude-opus-5", messages=(system("skill"), user("question")))
TOOL = Tool(name="look", description="", parameters={"type": "object"})
LONG = "x" * LARGE


def asked(request=BASE, **settings):
    return write_body(request, read_settings(settings))


def marked(document):
    """Return the places of the cache marks."""
    turns = [block for turn in document["messages"] for block in turn["content"]]
    parts = {"tools": document.get("tools", []), "system": document.get("system", []), "turns": turns}
    return [
        f"{name} {n}" for name, blocks in parts.items() for n, block in enumerate(blocks) if "cache_control" in block
    ]


@pytest.mark.parametrize(
    ("model", "effort", "setting", "thinking", "said_effort"),
    [
        ("claude-opus-5", "", "auto", None, None),
        ("claude-opus-5", "", "off", {"type": "disabled"}, None),
        ("claude-opus-5", "high", "off", {"type": "disabled"}, None),
        ("claude-opus-5", "high", "auto", {"type": "adaptive"}, "high"),
        ("claude-sonnet-4-6", "max", "auto", {"type": "adaptive"}, "max"),
        ("claude-haiku-5-5", "xhigh", "auto", {"type": "adaptive"}, "xhigh"),
        ("my-own-proxy", "low", "auto", {"type": "adaptive"}, "low"),
        ("claude-opus-5", "low", "budget", {"type": "enabled", "budget_tokens": 1024}, None),
        ("claude-3-7-sonnet-20250219", "medium", "auto", {"type": "enabled", "budget_tokens": 4096}, None),
        ("claude-opus-4", "medium", "auto", {"type": "enabled", "budget_tokens": 4096}, None),
        ("claude-sonnet-4-20250514", "medium", "auto", {"type": "enabled", "budget_tokens": 4096}, None),
        ("claude-opus-4-1", "low", "auto", {"type": "enabled", "budget_tokens": 1024}, None),
        ("claude-haiku-4-5-20251001", "high", "auto", {"type": "enabled", "budget_tokens": 8192}, None),
        ("claude-haiku-4-5", "max", "adaptive", {"type": "adaptive"}, "max"),
    ],
)
def test_reasoning_effort_is_asked_for_as_the_model_knows_it(model, effort, setting, thinking, said_effort):
    document = asked(replace(BASE, model=model, reasoning_effort=effort), thinking=setting)
    assert document.get("thinking") == thinking
    assert document.get("output_config", {}).get("effort") == said_effort


def test_a_budget_grows_with_the_room_and_leaves_half_of_it_for_the_answer():
    efforts = ("low", "medium", "high", "xhigh", "max")
    for limit in (2048, 16384, 200_000):
        budgets = [
            asked(replace(BASE, reasoning_effort=effort, max_output_tokens=limit), thinking="budget")["thinking"]
            for effort in efforts
        ]
        sizes = [budget["budget_tokens"] for budget in budgets]
        assert sizes == sorted(sizes)
        assert all(1024 <= size <= limit // 2 for size in sizes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"reasoning_effort": "low", "temperature": 0.0}, "no temperature"),
        ({"reasoning_effort": "low", "max_output_tokens": 2000, "model": "claude-opus-4-5"}, "within 2000 tokens"),
        ({"messages": (system("alone"),)}, "asked nothing"),
        ({"messages": (Message(role="user", parts=(Image(media_type="image/tiff", data=""),)),)}, "image/tiff"),
    ],
)
def test_what_the_api_does_not_take_is_said_before_it_is_asked(change, said):
    with pytest.raises(FatalBackendError, match=said) as caught:
        asked(replace(BASE, **change))
    assert caught.value.hint


def test_a_temperature_is_handed_on():
    assert asked(replace(BASE, temperature=0.0))["temperature"] == 0.0


def test_after_a_tool_a_model_with_a_budget_does_not_think_on():
    call = Message(role="assistant", parts=(), tool_calls=(ToolCall(id="1", name="look", arguments="{}"),))
    result = Message(role="tool", parts=(Text(text="seen"),), tool_call_id="1")
    request = replace(BASE, messages=(*BASE.messages, call, result), tools=(TOOL,), reasoning_effort="low")
    assert "thinking" not in asked(request, thinking="budget")
    assert asked(request, thinking="adaptive")["thinking"] == {"type": "adaptive"}


def test_results_of_several_tools_are_one_turn_in_front_of_what_the_user_adds():
    calls = tuple(ToolCall(id=name, name="look", arguments='{"at": "x"}') for name in "ab")
    results = tuple(Message(role="tool", parts=(Text(text=name),), tool_call_id=name) for name in "ab")
    said = Message(role="assistant", parts=(Text(text="I look."),), tool_calls=calls)
    turns = asked(replace(BASE, messages=(*BASE.messages, said, *results, user("go on"))))["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [block["type"] for block in turns[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert turns[1]["content"][1]["input"] == {"at": "x"}
    assert [block["type"] for block in turns[2]["content"]] == ["tool_result", "tool_result", "text"]


def test_broken_arguments_are_shown_to_the_model_as_it_wrote_them():
    call = Message(role="assistant", parts=(), tool_calls=(ToolCall(id="1", name="look", arguments="{oops"),))
    turns = asked(replace(BASE, messages=(user("q"), call)))["messages"]
    assert turns[1]["content"][0]["input"] == {"arguments": "{oops"}


def test_empty_texts_which_the_api_refuses_are_left_out():
    document = asked(replace(BASE, messages=(system(""), user(""), user("question"))))
    assert "system" not in document
    assert document["messages"] == [{"role": "user", "content": [{"type": "text", "text": "question"}]}]


@pytest.mark.parametrize(
    ("messages", "tools", "places"),
    [
        ((system("s"), user("q")), (), ["system 0"]),
        ((system("s"), user("q")), (TOOL, TOOL), ["system 0"]),
        ((user("q"),), (TOOL, TOOL), ["tools 1"]),
        ((system("s"), user(LONG)), (), ["system 0"]),
        ((system("s"), user(LONG)), (TOOL,), ["system 0", "turns 0"]),
        ((system("s"), user("q"), assistant("a"), user(LONG), user("more")), (), ["system 0", "turns 2"]),
        ((system("s"), user(LONG), assistant("a"), user(LONG)), (), ["system 0", "turns 0"]),
        ((user("q"),), (), []),
    ],
)
def test_prefixes_that_can_be_read_again_are_marked(messages, tools, places):
    request = replace(BASE, messages=messages, tools=tools)
    assert marked(asked(request)) == places
    assert marked(asked(request, cache="system")) == [place for place in places if not place.startswith("turns")]
    assert marked(asked(request, cache="off")) == []


def test_asking_changes_nothing_of_the_request():
    request = replace(BASE, tools=(TOOL,))
    asked(request)
    assert request.tools[0].parameters == {"type": "object"}

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from skillgit.calls import route
from skillgit.calls.route import answerer_fingerprint
from skillgit.plugin.backend import Image, Message, Request, Text, Tool, ToolCall, assistant, system, user
from skillgit.plugin.call_records import request_digest


def reply_key(backend: str, request: Request, draw: tuple[str | int, ...]) -> str:
    return route.reply_key(backend, request_digest(request), draw)


BASE = Request(model="small", messages=(system("s"), user("u")))


def test_equal_calls_have_equal_keys():
    again = Request(model="small", messages=(system("s"), user("u")))
    assert reply_key("b", BASE, ("a", 1)) == reply_key("b", again, ("a", 1))


@pytest.mark.parametrize(
    ("backend", "request_", "draw"),
    [
        ("c", BASE, ("a", 1)),
        ("b", replace(BASE, model="large"), ("a", 1)),
        ("b", replace(BASE, max_output_tokens=1), ("a", 1)),
        ("b", replace(BASE, temperature=0.0), ("a", 1)),
        ("b", replace(BASE, reasoning_effort="low"), ("a", 1)),
        ("b", replace(BASE, tools=(Tool(name="t", description="", parameters={}),)), ("a", 1)),
        ("b", replace(BASE, messages=(system("s"), assistant("u"))), ("a", 1)),
        ("b", replace(BASE, messages=(system("su"), user(""))), ("a", 1)),
        ("b", replace(BASE, messages=(system("s"), Message(role="user", parts=(Text(text="u"),) * 2))), ("a", 1)),
        (
            "b",
            replace(BASE, messages=(system("s"), Message(role="user", parts=(Text(text="u"),), tool_call_id="1"))),
            ("a", 1),
        ),
        ("b", BASE, ("a", "1")),
        ("b", BASE, ("a", 1, 1)),
    ],
)
def test_whatever_may_change_a_reply_changes_its_key(backend, request_, draw):
    assert reply_key(backend, request_, draw) != reply_key("b", BASE, ("a", 1))


def test_pictures_and_tool_calls_are_part_of_the_key():
    def key(data, arguments):
        picture = Message(role="user", parts=(Image(media_type="image/png", data=data),))
        wish = Message(role="assistant", parts=(), tool_calls=(ToolCall(id="1", name="f", arguments=arguments),))
        return reply_key("b", replace(BASE, messages=(picture, wish)), ())

    assert len({key("AA", "{}"), key("AB", "{}"), key("AA", "[]")}) == 3


def test_any_mapping_serves_as_the_schema_of_a_tool():
    tools = [Tool(name="t", description="", parameters=kind({"type": "object"})) for kind in (dict, MappingProxyType)]
    assert len({reply_key("b", replace(BASE, tools=(tool,)), ()) for tool in tools}) == 1


def test_the_answerer_does_not_depend_on_the_question():
    other = replace(BASE, messages=(user("another"),))
    assert answerer_fingerprint("b", BASE) == answerer_fingerprint("b", other)
    assert answerer_fingerprint("b", BASE) != answerer_fingerprint("b", replace(BASE, temperature=1.0))
    assert answerer_fingerprint("b", replace(BASE, temperature=1)) == answerer_fingerprint(
        "b", replace(BASE, temperature=1.0)
    )

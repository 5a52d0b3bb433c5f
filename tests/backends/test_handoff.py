from __future__ import annotations

import asyncio
import json
import os

import pytest

from skillgit.errors import ConfigError, ExitCode, HandoffError
from skillgit.plugin.backend import Image, Message, Request, Text, Tool, ToolCall, Usage, system, user
from skillgit.plugin.call_records import request_digest
from skillgit_backends.handoff import HandoffBackend

TOOL = Tool(name="look", description="Looks.", parameters={"type": "object"})


def asking(text, **more):
    return Request(**({"model": "small", "messages": (system("Be short."), user(text))} | more))


def name_of(request):
    return request_digest(request)[:16]


def ask(folder, *requests, settle=0.02):
    """Ask all at once; return replies and errors."""

    async def work():
        backend = HandoffBackend({"dir": str(folder), "settle_s": settle})
        done = await asyncio.gather(*(backend.complete(request) for request in requests), return_exceptions=True)
        await backend.aclose()
        return done

    return asyncio.run(work())


def answer(folder, request, text):
    (folder / f"{name_of(request)}.answer.md").write_text(text)


def pending(folder):
    return [row["digest"] for row in json.loads((folder / "pending.json").read_text())["pending"]]


def test_all_prompts_of_a_wave_are_written_before_any_call_fails(tmp_path):
    folder = tmp_path / "deep" / "handoff"
    requests = [asking(f"question {number}") for number in range(5)]
    errors = ask(folder, *requests)
    assert {str(error) for error in errors} == {f"5 prompts wait for their answers; {folder}/PROMPTS.md says where"}
    assert {error.exit_code for error in errors} == {ExitCode.HANDOFF}
    assert pending(folder) == sorted(name_of(request) for request in requests)
    overview = (folder / "PROMPTS.md").read_text()
    for request in requests:
        assert f"| [{name_of(request)}.prompt.md]" in overview
        prompt = (folder / f"{name_of(request)}.prompt.md").read_text()
        assert "# system\n\nBe short.\n\n# user\n\nquestion" in prompt
    assert (folder / ".gitignore").read_text() == "*\n"


def test_answers_are_picked_up_and_only_the_rest_waits(tmp_path):
    one, two = asking("one"), asking("two")
    ask(tmp_path, one, two)
    answer(tmp_path, one, "first\nline \n")
    reply, error = ask(tmp_path, one, two)
    assert reply.text == "first\nline "
    assert reply.usage == Usage(tokens_in=7, tokens_out=3)
    assert str(error).startswith("1 prompt waits for its answer;")
    assert pending(tmp_path) == [name_of(two)]
    answer(tmp_path, two, "second")
    assert [reply.text for reply in ask(tmp_path, one, two)] == ["first\nline ", "second"]
    assert pending(tmp_path) == []
    assert "Nothing waits" in (tmp_path / "PROMPTS.md").read_text()


@pytest.mark.parametrize("text", ["", "\n", "  \n\n"])
def test_an_empty_file_is_no_answer(tmp_path, text):
    ask(tmp_path, asking("one"))
    answer(tmp_path, asking("one"), text)
    assert isinstance(ask(tmp_path, asking("one"))[0], HandoffError)


def test_a_file_that_is_no_text_stops_the_run_and_is_named(tmp_path):
    ask(tmp_path, asking("one"))
    path = tmp_path / f"{name_of(asking('one'))}.answer.md"
    path.write_bytes(b"\xff\xfe\x00")
    (error,) = ask(tmp_path, asking("one"))
    assert isinstance(error, HandoffError)
    assert str(path) in error.message
    assert "UTF-8" in error.hint


def test_a_mark_at_the_beginning_and_line_ends_of_other_systems_do_not_matter(tmp_path):
    ask(tmp_path, asking("one"))
    (tmp_path / f"{name_of(asking('one'))}.answer.md").write_bytes(b"\xef\xbb\xbffirst\r\nsecond\r\n")
    assert ask(tmp_path, asking("one"))[0].text == "first\nsecond"


def test_a_call_that_comes_late_belongs_to_the_wave(tmp_path):
    async def work():
        backend = HandoffBackend({"dir": str(tmp_path), "settle_s": 0.3})
        first = asyncio.ensure_future(backend.complete(asking("first")))
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(backend.complete(asking("second")))
        return await asyncio.gather(first, second, return_exceptions=True)

    errors = asyncio.run(work())
    assert [str(error)[:2] for error in errors] == ["2 ", "2 "]


def test_pictures_and_conversations_are_written(tmp_path):
    picture = Image(media_type="image/png", data="QUJD")
    call = ToolCall(id="7", name="look", arguments='{"at": 1}')
    messages = (
        Message(role="user", parts=(Text(text="see "), picture)),
        Message(role="assistant", parts=(Text(text="I look"),), tool_calls=(call,)),
        Message(role="tool", parts=(Text(text="a cat"),), tool_call_id="7"),
    )
    request = asking("", messages=messages)
    ask(tmp_path, request)
    name = name_of(request)
    assert (tmp_path / f"{name}.picture-1.png").read_bytes() == b"ABC"
    prompt = (tmp_path / f"{name}.prompt.md").read_text()
    assert f"see ![picture]({name}.picture-1.png)" in prompt
    assert 'called 7: `look` with `{"at": 1}`' in prompt
    assert "# tool (result of 7)\n\na cat" in prompt


def test_an_answer_may_call_tools(tmp_path):
    request = asking("one", tools=(TOOL,))
    ask(tmp_path, request)
    assert "`look`: Looks." in (tmp_path / f"{name_of(request)}.prompt.md").read_text()
    block = '```tool_calls\n[{"name": "look", "arguments": {"at": "x"}}]\n```\n'
    answer(tmp_path, request, f"I look.\n\n{block}")
    (reply,) = ask(tmp_path, request)
    assert (reply.text, reply.finish_reason) == ("I look.", "tool_calls")
    assert reply.tool_calls == (ToolCall(id=f"{name_of(request)}-1", name="look", arguments='{"at": "x"}'),)
    without = asking("one")
    answer(tmp_path, without, block)
    assert ask(tmp_path, without)[0].text == block.removesuffix("\n"), "no tools were on offer"


@pytest.mark.parametrize("calls", ["oops", "[]", "{}", '[{"name": "look"}]', '[{"name": "look", "arguments": "x"}]'])
def test_calls_of_tools_that_cannot_be_read_stop_the_run(tmp_path, calls):
    request = asking("one", tools=(TOOL,))
    ask(tmp_path, request)
    answer(tmp_path, request, f"```tool_calls\n{calls}\n```\n")
    (error,) = ask(tmp_path, request)
    assert isinstance(error, HandoffError)
    assert "cannot be read" in error.message


def test_a_folder_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    (error,) = ask(tmp_path / "file" / "folder", asking("one"))
    assert isinstance(error, HandoffError)
    assert "model.handoff_dir" in error.hint


@pytest.mark.parametrize("settings", [{"dir": ""}, {"settle_s": -1}, {"settle_s": "soon"}, {"directory": "x"}])
def test_settings_are_checked(settings):
    with pytest.raises(ConfigError):
        HandoffBackend(settings)


def test_making_a_backend_touches_nothing(tmp_path):
    asyncio.run(HandoffBackend({"dir": str(tmp_path / "handoff")}).aclose())
    assert list(tmp_path.iterdir()) == []


def test_what_is_shaped_like_a_credential_is_in_no_file_and_the_answer_is_found_all_the_same(tmp_path):
    key = "sk-proj-0123456789abcdefghijklmnop"
    request = asking(f"my key is {key}", tools=(TOOL,))
    ask(tmp_path, request)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 4
    assert [path.name for path in written if key.encode() in path.read_bytes()] == []
    assert "[redacted]" in (tmp_path / f"{name_of(request)}.prompt.md").read_text()
    answer(tmp_path, request, "mine too")
    assert [reply.text for reply in ask(tmp_path, request)] == ["mine too"]


def test_backends_of_two_roles_keep_one_list_of_what_waits(tmp_path):
    async def work():
        target, optimizer = (HandoffBackend({"dir": str(tmp_path), "settle_s": 0.02}) for _ in range(2))
        asked = (target.complete(asking("one")), optimizer.complete(asking("two")))
        errors = await asyncio.gather(*asked, return_exceptions=True)
        await target.aclose()
        await optimizer.aclose()
        return errors

    errors = asyncio.run(work())
    assert {str(error).partition(";")[0] for error in errors} == {"2 prompts wait for their answers"}
    assert pending(tmp_path) == sorted(name_of(asking(text)) for text in ("one", "two"))


def _pipe(path):
    os.mkfifo(path)


def _link(path):
    (path.parent / "secret").write_text("of another")
    path.symlink_to(path.parent / "secret")


def _sparse(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (_pipe, "it is not a plain file"),
        (_link, "it is a link, and not a plain file"),
        (lambda path: path.mkdir(), "it is not a plain file"),
        (_sparse, "it is larger than 32 MiB"),
        (lambda path: path.write_bytes(b"\xff"), "can't decode"),
    ],
)
def test_an_answer_that_is_no_plain_file_is_told_at_once(tmp_path, write, why):
    request = asking("question")
    write(tmp_path / f"{name_of(request)}.answer.md")
    (error,) = ask(tmp_path, request)
    assert isinstance(error, HandoffError)
    assert why in error.message


@pytest.mark.parametrize("calls", ["[" * 100_000, "9" * 5000, '[{"name": "look", "arguments": {"a": ' + "9" * 5000])
def test_calls_of_tools_beyond_measure_are_told(tmp_path, calls):
    request = asking("question", tools=(TOOL,))
    answer(tmp_path, request, f"```tool_calls\n{calls}\n```\n")
    (error,) = ask(tmp_path, request)
    assert isinstance(error, HandoffError)
    assert "cannot be read" in error.message

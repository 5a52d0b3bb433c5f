from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillgit.domain.ids import digest, text_digest
from skillgit.domain.untrusted.model_text import (
    SkillText,
    aligned,
    clean,
    clean_json,
    clean_line,
    clean_paragraphs,
    clean_title,
    escaped_json,
    hidden_in,
    removed_from,
    storable,
    storable_json,
    unstorable_place,
    verbatim,
    visible,
    visible_characters,
)

ROOT = Path(__file__).parents[3]
REPLIES = Path(os.environ.get("SKILLGIT_REAL_DATA", ROOT.parent / "shared" / "data")) / "replies"

NEVER = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)
"""What must stand in no text of a model, wherever it stands."""
ODD = st.sampled_from(
    "\x00\x07\x0b\r\n\t\x1b\x7f\x85\x9b\u061c\u180e\u200b\u200c\u200d\u200e\u2028\u202e\u2060\u2066\ufe0f\ufeff"
    "\ufffb\ud83d\ude00\U000e0041\U000e0100 a1[]m\u0646\u0915\u0e01❤🏳👩💻\ufffd"
)
anything = st.text(st.characters(codec=None, categories=None) | ODD, max_size=60)
odd = st.text(ODD, max_size=30)
texts = odd | anything


@given(texts)
@example("\x1b\x1b[m[m")
@example("A\ufe0f\u200d")
@example("1\u200c\ufe0f")
@example("\u0646\x00\u200c\u200c")
@example("\ud83d\ude00\ud83d")
def test_cleaning_removes_what_hides_and_cleaning_again_changes_nothing(text) -> None:
    cleaned = clean(text)

    assert NEVER.search(cleaned) is None
    assert clean(cleaned) == cleaned
    assert clean(cleaned).removed == 0
    assert hidden_in(cleaned) == []
    assert visible(cleaned) == cleaned
    assert cleaned.encode().decode() == cleaned


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E) | st.sampled_from("\n\t"), max_size=200))
def test_clean_text_stays_as_it_is(text) -> None:
    assert (clean(text), clean(text).removed) == (text, 0)


@pytest.mark.parametrize(
    "text",
    [
        "👩\u200d💻 👩🏽\u200d🚀 👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3",
        "©\ufe0f 🙂\u200d\u2194\ufe0f 🇩🇪",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: a joiner parts two letters
        "\u0915\u094d\u200d\u0937 \u0d28\u0d4d\u200d",  # Indic conjuncts
        "\u0e01\u200b\u0e02",  # Thai: a line may break here
        "\u845b\U000e0100 \u2268\ufe00",  # variants of an ideograph and of a sign
        "naïve e\u0301 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 no\u00a0break",
        "def run():\n\treturn 1\n",
    ],
)
def test_what_scripts_and_emoji_need_stays(text) -> None:
    assert (clean(text), clean(text).removed) == (text, 0)
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "cleaned", "removed"),
    [
        ("a\x00b\x07", "ab", 2),
        ("a\r\nb\rc\x0cd\u2028e", "a\nb\nc\nd\ne", 0),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07!", "red !", 19),
        ("\x1b]0;never ends\nnext", "]0;never ends\nnext", 1),
        ("pass\u202eword\u2066", "password", 2),
        ("\ufeffa\u2060b\u200bc", "abc", 3),
        ("see\U000e0069\U000e0067 this", "see this", 2),
        ("a\ufe00\ufe01\u200d b", "a b", 3),
        ("cut \ud83d", "cut \ufffd", 1),
        ("two halves \ud83d\ude00", "two halves 😀", 0),
    ],
)
def test_what_is_removed_is_counted(text, cleaned, removed) -> None:
    assert (clean(text), clean(text).removed) == (cleaned, removed)


def test_the_type_cannot_be_made_without_cleaning() -> None:
    assert SkillText("a\x00b") == "ab"
    assert verbatim("a\x00b") == "a\x00b"
    assert clean("a\x00").reworded("b\x07c") == "bc"
    assert clean("a\x00").reworded("b\x07c").removed == 2


def test_only_what_people_wrote_or_history_holds_enters_unchanged() -> None:
    """Whoever calls ``verbatim`` is listed: none of them handles the text of a model."""
    callers = set()
    for path in (*ROOT.glob("skillgit/**/*.py"), *ROOT.glob("envs/**/*.py"), *ROOT.glob("backends/**/*.py")):
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if any(isinstance(function, ast.Name) and function.id == "verbatim" for function in calls):
            callers.add(path.relative_to(ROOT).as_posix())
    assert callers == {
        "skillgit/app/sources/skillopt/outputs.py",  # of a candidate that was cleaned when it was read
        "skillgit/domain/placebo.py",  # a sentence of ours
        "skillgit/domain/document_rewrite.py",  # lines of two versions
        "skillgit/domain/protected_regions.py",  # regions of a document
        "skillgit/domain/untrusted/model_text.py",
        "skillgit/store/commit_message.py",  # trees of commits
        "skillgit/app/upkeep/run_checks.py",  # evidence, which is checked as it stands
        "skillgit/store/event_writer.py",  # an event's guidance, which is clean
        "skillgit/strategies/refine.py",  # no text, and the body of a candidate, which is clean
    }


@given(texts)
def test_positions_of_cleaned_text_lead_back(text) -> None:
    shown, starts = aligned(text)

    assert shown == clean(text) or unstorable_place(text) is not None
    assert len(starts) == len(shown) + 1
    assert starts == sorted(starts)
    assert all(text[start] == sign or sign == "\n" for sign, start in zip(shown, starts, strict=False))


@given(texts)
def test_what_is_shown_has_nothing_that_acts(text) -> None:
    assert NEVER.search(visible(text)) is None
    assert "".join(visible_characters(text)) == visible(text)
    assert len(visible_characters(text)) == len(text)


@given(texts)
def test_json_escapes_what_hides(text) -> None:
    written = escaped_json(json.dumps({"a": [text]}, ensure_ascii=False))

    assert NEVER.search(written) is None
    assert json.loads(written) == json.loads(json.dumps({"a": [text]}))


@given(texts)
def test_every_text_can_be_stored_and_has_a_digest(text) -> None:
    assert storable(text).encode().decode() == storable(storable(text))
    assert storable(text) == text or unstorable_place(text) == ""
    assert len(text_digest(text)) == 12
    assert digest({text: [text]}) == digest({text: [text]})
    for line in (clean_line(text), clean_title(text), clean_paragraphs(text)):
        assert NEVER.search(line) is None
    assert clean_line(clean_line(text)) == clean_line(text)
    assert clean_title(clean_title(text)) == clean_title(text)


@given(st.recursive(texts | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_every_text_in_a_json_value_is_reached(value) -> None:
    assert unstorable_place(storable_json(value)) is None
    cleaned = clean_json(value)
    assert NEVER.search(json.dumps(cleaned, ensure_ascii=False)) is None
    assert clean_json(cleaned) == cleaned
    assert removed_from(clean_json(cleaned)) == 0


def test_the_place_of_half_a_character_is_named() -> None:
    assert unstorable_place({"id": "a", "answers": ["x", "\ud83d"]}) == "answers.2"
    assert unstorable_place({"\ud83d": 1}) == "the name of a key"
    assert unstorable_place("\udcff") == ""
    assert unstorable_place({"a": [1, None, "😀"]}) is None


@pytest.mark.skipif(not REPLIES.is_dir(), reason=f"no recorded replies at {REPLIES}")
@pytest.mark.parametrize("path", sorted(REPLIES.glob("*.answer.md")), ids=lambda path: path.stem.partition(".")[0])
def test_replies_of_a_capable_model_pass_unchanged(path) -> None:
    text = path.read_text(encoding="utf-8")
    assert (clean(text), clean(text).removed) == (text, 0)
    fields = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert clean_json(fields) == fields
    assert removed_from(clean_json(fields)) == 0

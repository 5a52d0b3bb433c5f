"""What a model wrote is repaired where one reading is possible; all else is refused, so that it is asked again."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillgit.domain.untrusted.json_limits import object_in
from skillgit.engine.replies import AnalysisReply, RewriteReply, UnusableReplyError, parse, restored_escapes

DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
REPLIES = sorted(DATA.glob("replies/*.answer.md")) + sorted(DATA.glob("archive_sections/replies/*/*.answer.md"))


def reply(content):
    """Return a reply with ``content`` as a model wrote it between quotation marks."""
    return f'{{"findings": [], "edits": [{{"op": "append", "content": "{content}"}}]}}'


def content_of(text):
    (edit,) = parse(text, AnalysisReply).edits
    return edit.content


@pytest.mark.parametrize(
    "written",
    [
        r"- Write \frac{a}{b} and \beta; a year matches \b\d{4}\b.",
        r"$\forall x$",
        r"\b",
        r"- The form is \d+(\.\d+)?\s*(?:kg|g)\b",
        r"$\nabla \times F = 0$ and \rho",
        r"\right) \Rightarrow \rangle",
        r"$\theta$, \tfrac{1}{2}, \textbf{x}, \text{m}",
        r"\underline{a} \url{b} \upsilon",
        r"$\frac{\nu}{\tau}$",
        r"\( x \ne y \) \[ z \]",
        r"C:\temp\files\new",
        r"costs \$5 \_each\_",
    ],
)
def test_single_backslashes_are_what_the_model_wrote(written):
    assert content_of(reply(written)) == written


@pytest.mark.parametrize(
    ("written", "content"),
    [
        (r"- one\n- two\tthree\r\n- four", "- one\n- two\tthree\n- four"),
        (r"- one\nnew rule\nnot\nebula", "- one\nnew rule\nnot\nebula"),
        (r"A or C:\nthe best", "A or C:\nthe best"),
        (r"a\nless than b", "a\nless than b"),
        (r"\\frac{a}{b} \\nu\nu", "\\frac{a}{b} \\nu\nu"),
        (r"\u00e9t\u00e9 \ud83d\ude00", "été 😀"),
        (r"it\'s \`code\`", "it's `code`"),
        (r"say \"yes\"", 'say "yes"'),
        (r"either\/or", "either/or"),
        ('say "yes", or "no".', 'say "yes", or "no".'),
        ("two\nlines", "two\nlines"),
    ],
)
def test_escapes_of_json_stay_what_they_are(written, content):
    assert content_of(reply(written)) == content


@pytest.mark.parametrize("written", [r"$\nu$ alone", r"(\ne 0)", r"$\tau$ and \\frac{a}{b}, \beta"])
def test_a_backslash_with_two_readings_is_asked_about(written):
    with pytest.raises(UnusableReplyError, match="write each backslash"):
        parse(reply(written), AnalysisReply)


PIECES = st.lists(
    st.sampled_from(
        [
            r"\frac{a}{b}",
            r"\beta",
            r"\nabla",
            r"\theta",
            r"\rho",
            r"\d+",
            r"\b",
            r"\(",
            r"\url",
            "\n",
            "\n- ",
            " ",
            " a rule",  # a letter right behind a command would make it another one, which nobody knows
        ]
    ),
    min_size=1,
    max_size=8,
).map("".join)


@given(PIECES)
@example("\n- \\(\nno")
def test_no_letter_of_a_text_is_lost_to_single_backslashes(text):
    written = text.replace("\n", "\\n")
    assert content_of(reply(written)) == text


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)) | st.sampled_from("\n\t\\\"'{}[],:"), max_size=40)
)
def test_json_that_is_right_is_not_repaired(text):
    written = json.dumps({"body": text}, ensure_ascii=False)
    try:
        restored = restored_escapes(written)
    except ValueError:
        return
    if all(f"\\{command}" not in written.replace("\\\\", "") for command in ("n", "t")):
        assert restored == written
    assert json.loads(restored)["body"].replace("\\", "").replace("\n", "n").replace("\t", "t") == text.replace(
        "\\", ""
    ).replace("\n", "n").replace("\t", "t")


WHOLE = json.dumps(
    {
        "findings": [{"pattern": "units {are} [left] out", "count": 2}],
        "title": "units",
        "edits": [
            {"op": "append", "content": '- Write "kg", not "g".\n- Keep it.', "items": ["a", "b"]},
            {"op": "append", "content": "- Another rule"},
        ],
    }
)


@given(st.integers(1, len(WHOLE) - 1), st.sampled_from(["", "```json\n", "Here it is:\n"]))
def test_no_part_of_a_reply_that_was_cut_is_used(length, lead):
    for mend in (True, False):
        with pytest.raises(UnusableReplyError):
            parse(lead + WHOLE[:length], AnalysisReply, mend=mend)


@pytest.mark.parametrize(
    "damaged",
    [
        '{"edits": [{"op": "append", "content": "- a"}]',
        '{"edits": [{"op": "append", "content": "- a',
        '{"edits": [{"op": "append", "content": "- a" /* why */}]}',
        '{"edits": [{"op": "append", "content": "say "x": "y" here"}]} and "more": [',
        '{"edits": [{"op": "append", content: - a}]}',
        '{"edits": [{"op": "append", "content": "- a", ...}]}',
    ],
)
def test_what_would_have_to_be_guessed_is_refused(damaged):
    with pytest.raises(UnusableReplyError):
        parse(damaged, AnalysisReply)


@pytest.mark.parametrize(
    "damaged",
    [
        '{"title": "t", "body": "# Rules\n\n- a",}',
        "{'title': 't', 'body': '# Rules\\n\\n- a'}",
        '{"title": "t" "body": "# Rules\\n\\n- a"}',
        '{"title": "t", "summary": null, "body": "# Rules\n\n- a"}',
        '{"title": "a "t" b", "body": "# Rules\\n\\n- a"}',
    ],
)
def test_damage_with_one_reading_is_repaired(damaged):
    assert parse(damaged, RewriteReply).body == "# Rules\n\n- a"


@pytest.mark.skipif(not REPLIES, reason=f"no recorded replies at {DATA}; SKILLGIT_REAL_DATA names its folder")
@pytest.mark.parametrize("path", REPLIES, ids=lambda path: path.name[:8])
def test_recorded_replies_are_read_as_they_are(path):
    text = path.read_text(encoding="utf-8")
    assert object_in(restored_escapes(text)) == object_in(text)

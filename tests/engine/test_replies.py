from __future__ import annotations

import pytest

from skillgit.domain.edit import EditSource, Op
from skillgit.engine.reflect import joined
from skillgit.engine.replies import AnalysisReply, FailurePattern, GuidanceReply, RankReply, UnusableReplyError, parse


@pytest.mark.parametrize(
    "text",
    [
        '{"edits": [{"op": "append", "content": "- a"}]}',
        'Here it is:\n```json\n{"edits": [{"op": "append", "content": "- a"}]}\n```\nDone.',
        'Sure. {"edits": [{"op": "append", "content": "- a"}]} Hope it helps.',
        '{"edits": [{"op": "append", "content": "- a",}],}',
    ],
)
def test_json_is_found_in_a_fence_in_prose_and_when_it_is_almost_json(text):
    draft = parse(text, AnalysisReply).draft(EditSource.FAILURE, ())
    assert [(edit.op, edit.content, edit.source) for edit in draft.edits] == [(Op.APPEND, "- a", EditSource.FAILURE)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I cannot help with that.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"edits": "none"}', "edits"),
        ('{"edits": [{"op": "move", "content": "x"}]}', "edits.0.op"),
        ("{}", "no JSON object"),
    ],
)
def test_a_reply_of_the_wrong_shape_is_unusable_and_says_why(text, reason):
    with pytest.raises(UnusableReplyError, match=reason):
        parse(text, AnalysisReply)


@pytest.mark.parametrize(
    ("written", "support"), [('"3 trajectories"', 3), ("2.0", 2), ("-1", 1), ("null", 1), ('"?"', 1)]
)
def test_support_is_read_tolerantly_and_is_at_least_one(written, support):
    text = f'{{"edits": [{{"op": "append", "content": "a", "support": {written}, "anchor": null}}]}}'
    assert parse(text, AnalysisReply).edits[0].support == support


def test_a_truth_value_is_no_index():
    with pytest.raises(UnusableReplyError):
        parse('{"selected": [true]}', RankReply)


def test_guidance_with_a_region_marker_is_unusable():
    with pytest.raises(UnusableReplyError, match="markers"):
        parse('{"guidance": "<!-- /skillgit:slow --> free"}', GuidanceReply)


@pytest.mark.parametrize("between", ["\n", " or rather ", "\n```\nno:\n```json\n"])
def test_of_several_objects_none_is_chosen_and_of_equal_ones_either(between):
    one, other = '{"selected": [1]}', '{"selected": [2]}'
    with pytest.raises(UnusableReplyError, match="several JSON objects"):
        parse(f"```json\n{one}{between}{other}\n```", RankReply)
    assert parse(f"```json\n{one}\n```\nThat is:\n```json\n{one}\n```", RankReply).selected == (1,)


def test_equal_findings_of_several_analysts_are_put_together():
    found = joined(
        [
            FailurePattern(pattern="- Keeps the unit.", count=1, items=("a",)),
            FailurePattern(pattern="other", count=2, items=("x", "y")),
            FailurePattern(pattern="keeps the unit", count=2, items=("b", "a")),
            FailurePattern(pattern="unnamed", count=3),
            FailurePattern(pattern="unnamed", count=3),
        ],
        trajectories=5,
    )
    assert [(finding.count, finding.items) for finding in found] == [(5, ()), (2, ("a", "b")), (2, ("x", "y"))]


@pytest.mark.parametrize("count", [-5, 0, 1, 3, 999_999, "many", True, 1e300])
@pytest.mark.parametrize("items", [(), ("no such item",), ("a", "a"), ("b", "a\n\nfixed: b"), ("a", "b", "c")])
def test_a_finding_is_about_trajectories_that_its_analyst_was_shown(count, items):
    shown = ("a", "b")
    finding = FailurePattern.model_validate({"pattern": "p", "count": count, "items": items}).grounded(shown)
    assert set(finding.items) == set(items) & set(shown)
    assert 1 <= finding.count <= len(shown)
    assert not finding.items or finding.count == len(finding.items)


@pytest.mark.parametrize(
    "written",
    ['{"edits": [' + "[" * 100_000, '{"a":' * 20_000, '{"a": "' + 'x" ' * 1_000_000 + '"}', "{" + "9" * 5000],
    ids=["lists", "objects", "quotes", "digits"],
)
def test_a_reply_beyond_measure_cannot_be_used(written):
    with pytest.raises(UnusableReplyError):
        parse(written, RankReply)

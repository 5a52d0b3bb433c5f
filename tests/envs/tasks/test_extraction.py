from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.tasks.checks.catalogue import EXTRACTORS

REPLY = """First:
```json
{"a": 1}
```
then:
```python
print("x")
```
So it is 7.
"""


@pytest.mark.parametrize(
    ("how", "reply", "result"),
    [
        ("whole", "  all of it\n", "all of it"),
        ("tag", "no <answer>one</answer> but <ANSWER> two </answer>", "two"),
        ("tag", "thinking\n7", "7"),
        ("last_line", "thinking\n 7 \n\n", "7"),
        ("json", REPLY, '{"a": 1}\n'),
        ("json", 'It is {"a": [1]} and then {"b": 2}.', '{"b": 2}'),
        ("json", "use {braces} and then [1, 2]", "use {braces} and then [1, 2]"),
        ("json", "as said in [1]", "as said in [1]"),
        ("json", 'it is {"a": 1}, see [1]', '{"a": 1}'),
        ("json", 'all of these: [{"a": 1}]', 'all of these: [{"a": 1}]'),
        ("json", "as [1] says\n```json\n[1, 2]\n```", "[1, 2]\n"),
        ("json", " [1, 2]\n", "[1, 2]"),
        ("json", '"```"', '"```"'),
        ("json", "none at all", "none at all"),
        ("code", REPLY, 'print("x")'),
        ("code", "````\n```\ninner\n```\n````", "```\ninner\n```"),
        ("code", "no block", "no block"),
    ],
)
def test_the_result_is_taken_out_of_the_reply(how: str, reply: str, result: str):
    assert EXTRACTORS[how](reply) == result


@given(st.text(max_size=200))
def test_any_reply_can_be_read(reply: str):
    for extract in EXTRACTORS.values():
        assert isinstance(extract(reply), str)


VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda part: st.lists(part, max_size=3))


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.sampled_from(["", "Here: ", "see [x] {y} "]))
def test_an_object_is_found_among_words(value: object, before: str):
    text = f"{before}{json.dumps(value)} so far"
    assert json.loads(EXTRACTORS["json"](text)) == value


@given(VALUES, st.sampled_from(["{}", "\n{}\n", "See [1]:\n```json\n{}\n```\n", "{{}} and\n````\n{}\n````"]))
def test_any_value_alone_or_in_a_block_is_found(value: object, form: str):
    assert json.loads(EXTRACTORS["json"](form.format(json.dumps(value)))) == value


@given(st.lists(VALUES, max_size=3), st.sampled_from(["see ", "[", "x: {y} "]))
def test_no_array_is_found_among_words(value: object, before: str):
    text = f"{before}{json.dumps(value)}. Done"
    assert EXTRACTORS["json"](text) == text


def test_deeply_nested_brackets_do_no_harm():
    reply = "[" * 5000
    assert EXTRACTORS["json"](reply) == reply


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is A.\nThe answer is B.", ""),
        ("Answer: 12\n\nFinal answer: 13", ""),
        ("The answer is 12. The answer is 13.", ""),
        ("**Answer:** A\nso the answer = B", ""),
        ("The answer is A.\nThe answer is a.", "The answer is a."),
        ("The answer is A.\nWait, no. The answer is B.", "Wait, no. The answer is B."),
        ("The answer is A.\nThat is a mistake.\nThe answer is B.", "The answer is B."),
        ("Let me see.\nThe answer is B.", "The answer is B."),
        ("The answer is A.\n<answer>B</answer>", "B"),
        ("Paris\nRome", "Rome"),
    ],
)
def test_a_reply_without_a_tag_that_gives_two_answers_gives_none(reply: str, answer: str):
    assert EXTRACTORS["tag"](reply) == answer


@given(st.lists(st.sampled_from(["A", "B", "12", "Rome"]), min_size=1, max_size=4), st.sampled_from([".", "", "!"]))
def test_only_one_stated_answer_is_an_answer(values: list[str], end: str):
    reply = "\n".join(f"The answer is {value}{end}" for value in values)
    assert bool(EXTRACTORS["tag"](reply)) is (len(set(values)) == 1)

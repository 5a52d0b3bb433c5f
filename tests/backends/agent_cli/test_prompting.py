from __future__ import annotations

import base64

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import SKILL, trivia

from skillgit.domain.protected_regions import frontmatter
from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import Image, Message, Request, Text, ToolCall, assistant, system, user
from skillgit_backends.agent_cli.prompting import assignment


def skills(*texts: str):
    return assignment(Request(model="m", messages=(*map(system, texts), user("go")))).skills


def test_a_skill_leaves_the_system_message_and_a_sentence_takes_its_place():
    made = assignment(trivia())
    (skill,) = made.skills
    assert skill.name == "searchqa"
    assert skill.document.endswith(f"---\n\n{SKILL}\n")
    assert SKILL not in made.instructions
    assert made.instructions.startswith("You answer trivia.")
    assert "The skill searchqa is installed here." in made.instructions
    assert made.instructions.endswith("End with <answer>.")
    assert made.task == "Which river runs through Paris?"


@given(st.text(), st.text(st.characters(exclude_characters='"', exclude_categories=("Cs", "Cc", "Zl", "Zp"))))
def test_every_skill_gets_valid_frontmatter_and_a_name_that_is_one_folder(body: str, name: str):
    for skill in skills(f'<skill name="{name}">\n{body}\n</skill>\n'):
        read = yaml.safe_load("\n".join(frontmatter(skill.document).splitlines()[1:-1]))
        assert read["name"] == skill.name
        assert 0 < len(skill.name) <= 64
        assert set(skill.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert read["description"]


def test_the_description_of_a_skill_with_frontmatter_is_kept_and_its_name_is_not_trusted():
    (skill,) = skills('<skill name="../../evil">\n---\nname: x\ndescription: "Says: a-b"\n---\nBody\n</skill>')
    assert skill.document == '---\nname: "evil"\ndescription: "Says: a-b"\n---\n\nBody\n'


def test_a_skill_may_speak_of_its_own_end():
    (skill,) = skills('<skill name="a">\none\n</skill>\ntwo\n</skill>\nrest')
    assert "one\n</skill>\ntwo" in skill.document


def test_two_skills_of_one_name_are_two_folders():
    text = '<skill name="a">\none\n</skill>\n<skill name="A">\ntwo\n</skill>'
    assert [skill.name for skill in skills(text)] == ["a", "a-2"]


def test_a_skill_in_a_user_message_stays_there():
    quoted = '<skill name="a">\none\n</skill>'
    made = assignment(Request(model="m", messages=(system("Improve it."), user(quoted))))
    assert made.skills == ()
    assert made.task == quoted


def test_a_conversation_is_told_in_turns():
    call = ToolCall(id="c1", name="look", arguments="{}")
    made = assignment(
        Request(
            model="m",
            messages=(
                user("first"),
                Message(role="assistant", parts=(Text(text="hm"),), tool_calls=(call,)),
                Message(role="tool", parts=(Text(text="seen"),), tool_call_id="c1"),
                assistant("so"),
                user("second"),
            ),
        )
    )
    assert '<turn role="assistant">\nhm\n[calls look as c1: {}]\n</turn>' in made.task
    assert '<turn role="tool" answers="c1">\nseen\n</turn>' in made.task
    assert made.task.index("first") < made.task.index("seen") < made.task.index("second")


def test_pictures_become_files_that_the_task_names():
    image = Image(media_type="image/png", data=base64.b64encode(b"png").decode())
    made = assignment(Request(model="m", messages=(Message(role="user", parts=(Text(text="see"), image)),)))
    assert [(picture.name, picture.data) for picture in made.pictures] == [("pictures/01.png", b"png")]
    assert "[picture: pictures/01.png]" in made.task


@pytest.mark.parametrize("image", [Image(media_type="image/png", data="%"), Image(media_type="a/b", data="")])
def test_a_picture_that_is_none_is_refused(image: Image):
    with pytest.raises(FatalBackendError):
        assignment(Request(model="m", messages=(Message(role="user", parts=(image,)),)))

from __future__ import annotations

from skillgit.domain.skill import Skill
from skillgit_envs.alfworld import REPLY_CHARACTERS, ALFWorld, conversation, shortened

SKILL = Skill(
    "home", {"SKILL.md": b"---\nname: home\ndescription: Does chores. Use at home.\n---\n\n# Home\n\nOpen drawers.\n"}
)


def test_the_skill_stands_once_in_the_system_prompt_without_its_frontmatter(tmp_path):
    environment = ALFWorld({}, tmp_path)
    text = environment._system(SKILL)
    assert text.count("Open drawers.") == 1
    assert "description:" not in text
    assert "after 50 commands" in text
    assert "<skill" not in environment._system(Skill("home", {"SKILL.md": b"---\nname: home\n---\n"}))


def test_only_the_last_message_lists_what_is_possible():
    messages = conversation("rules", ["room", "desk", "lamp"], ["a", "b"], ("look", "go to bed 1"), 0)
    assert [message.role for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [("<commands>" in message.text) for message in messages] == [False] * 5 + [True]
    assert messages[-1].text.endswith("<commands>\nlook\ngo to bed 1\n</commands>")
    assert sum("rules" in message.text for message in messages) == 1


def test_a_window_keeps_the_task_and_says_what_is_left_out():
    observations = ["room. Your task is to: dust.", *(f"seen {number}" for number in range(1, 6))]
    messages = conversation("rules", observations, ["1", "2", "3", "4", "5"], ("look",), 2)
    assert [message.role for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "Your task is to: dust." in messages[1].text
    assert "3 commands left out" in messages[1].text
    assert "seen 3" in messages[1].text
    assert "seen 2" not in "".join(message.text for message in messages)
    assert messages[-1].text.startswith("<observation>\nseen 5")


def test_long_thoughts_are_shortened_in_the_open():
    kept = shortened("x" * 9000 + "<action>look</action>")
    assert len(kept) < REPLY_CHARACTERS + 60
    assert "characters left out" in kept
    assert kept.endswith("<action>look</action>")
    assert shortened("short") == "short"

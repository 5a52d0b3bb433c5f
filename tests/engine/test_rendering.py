from __future__ import annotations

from skillgit.domain.skill import Skill
from skillgit.engine.prompt_sections import template_section


def test_the_writer_sees_the_editable_text_and_placeholders_for_what_is_protected():
    text = "---\nname: s\n---\n\n# T\n\n<!-- skillgit:keep -->\nk\n<!-- /skillgit:keep -->\n- rule\n"
    shown = template_section(Skill("s", {"SKILL.md": text.encode(), "run.sh": b"echo"}))
    body = shown[shown.index("<body") : shown.index("</body")]
    assert "skillgit:keep" not in body
    assert "name: s" not in body
    assert "[[protected:1]]" in body
    assert 'owner="keep" placeholder="[[protected:1]]"' in shown
    assert "run.sh" in shown

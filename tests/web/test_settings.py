from __future__ import annotations

import json

import yaml
from program import skillgit
from read_page import parsed, rows, text
from trained_runs import RUN


def test_the_settings_are_those_of_the_command(served, repository):
    settings = json.loads(skillgit("show", f"{RUN}/v0", "--settings", "--json", cwd=repository).out)["settings"]
    with served.visit() as client:
        content = client.get(f"/run/{RUN}/settings").text
    page = parsed(content)
    usual = [setting["chosen"] == "default" for setting in settings]
    order = [setting for setting, last in zip(settings, usual, strict=True) if not last]
    order += [setting for setting, last in zip(settings, usual, strict=True) if last]
    assert [row[0] for row in rows(page)] == [setting["key"] for setting in order]
    file = yaml.safe_load(next("".join(element.itertext()) for element in page.iter("pre")))
    assert file["train"]["num_epochs"] == 2
    assert f'href="/new?from={RUN}"' in content


def test_a_viewer_is_offered_no_new_run(served):
    with served.visit(served.invite()) as client:
        answer = client.get(f"/run/{RUN}/settings")
        assert answer.is_success
        assert "/new?from=" not in answer.text
        assert "num_epochs" in text(parsed(answer.text))

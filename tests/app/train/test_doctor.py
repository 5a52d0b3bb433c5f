from __future__ import annotations

from dataclasses import replace

import pytest
from asking import ask

from skillgit.app.train.doctor import doctor
from skillgit.errors import ConfigError, ExitCode

AGENT = """\
#!/bin/sh
case "$1" in
--version) echo "codex-cli 0.169.0" ;;
*) exit 1 ;;
esac
"""


def test_without_a_configuration_the_machine_and_the_repository_are_looked_at(context, records):
    found = ask(doctor, context, None)
    assert records
    assert (found.roles, found.config, found.exit_code) == ((), "", ExitCode.OK)
    assert found.repository is not None
    assert found.repository.runs == 1
    assert found.machine.git[:1].isdigit()
    assert [program.name for program in found.machine.programs] == ["bubblewrap", "libreoffice"]


def test_programs_are_looked_for_on_the_path_of_the_user(empty, tmp_path):
    program = tmp_path / "soffice"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    here = ask(doctor, replace(empty, environ={"PATH": str(tmp_path)}), None).machine.programs
    assert {one.name: one.path for one in here} == {"bubblewrap": "", "libreoffice": str(program)}


def test_outside_a_repository_there_is_none_and_the_models_are_looked_at_all_the_same(empty):
    found = ask(doctor, empty, "demo")
    assert found.repository is None
    assert [(role.role, role.backend, role.is_local, role.answers, role.fault) for role in found.roles] == [
        ("target", "offline", True, None, None),
        ("optimizer", "offline", True, None, None),
    ]
    assert {role.price_source for role in found.roles} == {"backend"}
    assert found.exit_code == ExitCode.OK


def test_an_agent_is_asked_for_its_version_and_its_login_and_nothing_else(empty, tmp_path, monkeypatch):
    for name in ("CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "codex"
    program.write_text(AGENT)
    program.chmod(0o755)
    agent = ("model.target=m", "model.target_backend=codex_exec", f"model.target_path={program}")
    target = ask(doctor, empty, "demo", agent, call=False).roles[0]
    assert (target.fault.sentence, target.answers) == ("codex_exec is not ready to call its model", None)
    assert "codex login" in target.fault.hint
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefghij")
    found = ask(doctor, empty, "demo", agent, call=False)
    assert (found.roles[0].version, found.roles[0].credential) == ("0.169.0", "the key in OPENAI_API_KEY")
    assert "sk-proj" not in str(found)
    gone = ask(doctor, empty, "demo", (*agent, "model.target_path=/no/such"), call=False)
    assert "cannot be started" in gone.roles[0].fault.sentence
    assert gone.exit_code == ExitCode.SERVICE


@pytest.mark.parametrize(
    ("override", "source", "usd"),
    [("model.prices={gpt-5-mini: [1, 2]}", "configuration", 1.0), ("train.seed=1", "table", 0.25)],
)
def test_it_is_told_who_says_what_a_model_costs(empty, monkeypatch, override, source, usd):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefghij")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    options = ("model.target_backend=openai_chat", "model.target=gpt-5-mini", override)
    target = ask(doctor, empty, "demo", options, call=False).roles[0]
    assert target.price is not None
    assert (target.price_source, target.price.usd_in) == (source, usd)
    assert target.room is not None
    assert (target.room.context, target.room.source, target.fit) == (400_000, "table", "fits")
    assert 100 < target.room.prompt < 5000


def test_a_configuration_that_is_wrong_is_an_error_as_everywhere(empty):
    with pytest.raises(ConfigError, match="there is no key"):
        ask(doctor, empty, "demo", ("train.sed=1",))

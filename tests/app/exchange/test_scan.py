"""What a push would publish: planted secrets, leaked items, large files and licences are found, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from asking import ask
from detect_secrets.core.potential_secret import PotentialSecret
from hypothesis import given
from hypothesis import strategies as st
from real_git import git
from sample_run import PATH

from skillgit.app.exchange import push_check
from skillgit.app.exchange.push_check import check, scan, scan_commits
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.finding import Severity
from skillgit.errors import ConfigError, RevisionNotFoundError, SkillgitError, UsageError
from skillgit.plugin.redaction import credentials, redact

AWS = "AKIA" + "IOSFODNN7ABCDEFG"
GITHUB = "ghp_" + "a1B2" * 9
SEED = "---\nname: demo\ndescription: Use it.\n---\n\n# Demo\n\n- Be brief.\n"


@pytest.fixture
def home(context):
    """A work tree with a skill on ``main`` that a remote has."""
    folder = context.directory
    git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    commit(folder, "the skill", **{f"{PATH}/SKILL.md": SEED})
    git(folder, "update-ref", "refs/remotes/origin/main", "main")
    return folder


def commit(home, message: str, **files: str | bytes) -> str:
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(home, "add", "-A")
    git(home, "commit", "-qm", message)
    return git(home, "rev-parse", "HEAD")


def kinds(result) -> list[tuple[str, str, int]]:
    return [(found.rule.value, found.path, found.line) for found in result.findings]


def test_a_planted_secret_is_found_where_it_came_in_though_a_later_commit_took_it_out(context, home):
    commit(home, "a rule", **{f"{PATH}/SKILL.md": f"{SEED}- Ask politely.\n"})
    planted = commit(home, "a key", **{f"{PATH}/SKILL.md": f"{SEED}- Ask politely.\n- Use {AWS} there.\n"})
    commit(home, "more", **{f"{PATH}/SKILL.md": f"{SEED}- Use {AWS} there.\n- And so on.\n"})
    commit(home, "taken out", **{f"{PATH}/SKILL.md": SEED})
    result = ask(scan, context)
    assert [(found.commit, found.path, found.line) for found in result.stops] == [(planted, f"{PATH}/SKILL.md", 10)]
    assert result.commits == 4
    assert (result.stops[0].sentence, result.stops[0].excerpt) == ("AWS token", "- Use [redacted] there.")
    with pytest.raises(
        SkillgitError, match=f"{planted[:12]} holds what must not leave, in {PATH}/SKILL.md:10"
    ) as caught:
        check(result)
    assert caught.value.exit_code == 1
    assert AWS not in f"{caught.value}{caught.value.hint}{result}"


SEVEN = (
    *("hvs." + "Q7mX2kR9vL4pT8wZ1cN6bH3jF5gD", "ntn_12345678901" + "a1B2c" * 7, "glsa_" + "a1B2" * 8 + "_0123abcd"),
    *("GOCSPX-" + "a1B2c3D" * 4, "tvly-" + "a1B2" * 8, "NRAK-" + "A1B2C3D4E" * 3, "dp.pt." + "a1B2c3D4" * 5 + "abc"),
)


@pytest.mark.parametrize("token", SEVEN)
def test_what_is_masked_in_a_log_stops_a_push_and_is_no_task_either(context, home, token):
    commit(home, "x", **{"notes.txt": f"use {token} there\n"})
    assert [finding.excerpt for finding in ask(scan, context).stops] == ["use [redacted] there"]
    assert redact(f"use {token} there") == "use [redacted] there"


def test_a_push_stops_at_notes_that_hold_a_secret(context, home):
    git(home, "notes", "--ref=skillgit/evals", "add", "-m", f"use {SEVEN[0]}", "HEAD")
    found = ask(scan, context)
    assert [finding.rule.value for finding in found.stops] == ["secret"]
    with pytest.raises(SkillgitError, match="holds what must not leave"):
        check(found)


def test_a_value_on_a_new_line_behind_a_name_on_an_old_one_is_found(context, home):
    commit(home, "x", **{f"{PATH}/SKILL.md": f"{SEED}- name: DB_PASSWORD\n"})
    git(home, "update-ref", "refs/remotes/origin/main", "main")
    commit(home, "y", **{f"{PATH}/SKILL.md": f"{SEED}- name: DB_PASSWORD\n  value: Gr4nite-77-moss\n"})
    assert kinds(ask(scan, context)) == [("secret", f"{PATH}/SKILL.md", 10)]


def test_messages_companions_and_binary_files_are_looked_at_too(context, home):
    files = {
        f"{PATH}/scripts/run.py": f'token = "{GITHUB}"\n',
        f"{PATH}/assets/cache.bin": b"\0\xff" + GITHUB[:-1].encode() + b"9\0",
        "notes.txt": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n",
    }
    commit(home, f"with {AWS} in it\n\nand more", **files)
    found = {(one.path, one.line): one.rule.value for one in ask(scan, context).findings}
    assert found == {
        ("", 1): "secret",
        (f"{PATH}/scripts/run.py", 1): "secret",
        (f"{PATH}/assets/cache.bin", 0): "secret",
        ("notes.txt", 1): "secret",
    }


def test_a_random_text_is_told_and_stops_nothing(context, home):
    commit(home, "x", **{f"{PATH}/SKILL.md": f'{SEED}- Pass "c3VwZXJsb25nc3RyaW5nMTIzNDU2Nzg5MGFiY2RlZg==" on.\n'})
    result = ask(scan, context)
    assert kinds(result) == [("secret-like", f"{PATH}/SKILL.md", 9)]
    assert result.warnings[0].severity is Severity.WARNING
    check(result)


def test_prose_about_keys_and_what_is_masked_already_is_no_secret(context, home):
    lines = ["- Never show a password.", 'api_key = "${API_KEY}"', "- token: [redacted]", "- See 10.1.2.3, v1.2.3.4."]
    commit(home, "x", **{f"{PATH}/SKILL.md": SEED + "\n".join(lines) + "\n"})
    assert ask(scan, context).findings == ()


def test_what_a_remote_has_is_not_looked_at_again_even_where_its_file_changes(context, home):
    commit(home, "a key", **{f"{PATH}/SKILL.md": f"{SEED}- Use {AWS}.\n"})
    git(home, "update-ref", "refs/remotes/origin/main", "main")
    commit(home, "more", **{f"{PATH}/SKILL.md": f"{SEED}- Use {AWS}.\n- And so on.\n"})
    assert ask(scan, context).findings == ()
    assert kinds(ask(scan, context, "main")) == [("secret", f"{PATH}/SKILL.md", 9)]
    assert ask(scan, context, "main~1..main").findings == ()


def test_a_remark_in_the_line_or_above_it_allows_a_secret(context, home):
    lines = f"- {AWS} <!-- pragma: allowlist secret -->\n<!-- pragma: allowlist nextline secret -->\n- {GITHUB}\n"
    commit(home, "x", **{f"{PATH}/SKILL.md": SEED + lines})
    result = ask(scan, context)
    assert (result.findings, result.allowed) == ((), 2)


def test_a_fingerprint_in_the_allow_list_allows_a_finding_in_every_commit(context, home):
    commit(home, "x", **{f"{PATH}/SKILL.md": f"{SEED}- {AWS}\n"})
    mark = ask(scan, context).stops[0].fingerprint
    (home / ".skillgit-allow").write_text(f"# looked at\n{mark}  # an example\n")
    assert (ask(scan, context).findings, ask(scan, context).allowed) == ((), 1)
    (home / ".skillgit-allow").write_text("everything\n")
    with pytest.raises(ConfigError, match=r"line 1 of \.skillgit-allow is not a fingerprint"):
        ask(scan, context)


def test_the_allow_list_of_main_holds_in_a_bare_repository(context, home, tmp_path):
    commit(home, "x", **{f"{PATH}/SKILL.md": f"{SEED}- {AWS}\n"})
    commit(home, "allow", **{".skillgit-allow": f"{ask(scan, context).stops[0].fingerprint}\n"})
    git(tmp_path, "clone", "-q", "--bare", str(home), str(tmp_path / "bare"))
    bare = replace(context, directory=tmp_path / "bare")
    assert (ask(scan, bare).findings, ask(scan, bare).allowed) == ((), 1)


def test_a_baseline_of_detect_secrets_is_understood(context, home):
    path = f"{PATH}/SKILL.md"
    commit(home, "x", **{path: f"{SEED}- {AWS}\n"})
    entry = {"type": "AWS Access Key", "hashed_secret": PotentialSecret.hash_secret(AWS), "filename": path}
    baseline = home / ".secrets.baseline"
    baseline.write_text(json.dumps({"version": "1.5.0", "results": {path: [entry]}}))
    assert (ask(scan, context).findings, ask(scan, context).allowed) == ((), 1)
    baseline.write_text(json.dumps({"results": {path: [{**entry, "is_secret": True}]}}))
    assert len(ask(scan, context).stops) == 1, "an audit found it to be real"
    baseline.write_text("[]")
    with pytest.raises(ConfigError, match="is not a baseline"):
        ask(scan, context)


def test_sizes_are_those_that_a_host_warns_of_and_refuses(context, home, monkeypatch):
    monkeypatch.setattr(push_check, "HUGE", 2000)
    monkeypatch.setattr(push_check, "LARGE", 1000)
    commit(home, "x", **{"a.bin": b"\0" * 1001, "b.bin": b"\0" * 2001, "c.bin": b"\0" * 1000})
    assert kinds(ask(scan, context)) == [("large-file", "a.bin", 0), ("huge-file", "b.bin", 0)]
    assert [found.path for found in ask(scan, context).stops] == ["b.bin"]


def test_a_link_out_of_a_skill_stops_a_push(context, home):
    (home / PATH / "notes.md").symlink_to("../../notes.md")
    (home / PATH / "copy.md").symlink_to("SKILL.md")
    commit(home, "links")
    assert kinds(ask(scan, context)) == [("link-out", f"{PATH}/notes.md", 0)]
    assert ask(scan, context).stops


def test_licences_are_looked_at_as_the_tips_have_them(context, home):
    named = SEED.replace("Use it.\n", "Use it.\nlicense: See LICENSE.txt\n")
    commit(home, "x", **{f"{PATH}/SKILL.md": named, f"{PATH}/vendor/lib.js": "x\n", f"{PATH}/assets/a.ttf": b"\0"})
    assert kinds(ask(scan, context)) == [
        ("licence-file", f"{PATH}/SKILL.md", 4),
        ("licence-bundled", f"{PATH}/assets/a.ttf", 0),
        ("licence-bundled", f"{PATH}/vendor/lib.js", 0),
    ]
    commit(home, "their licences", **{f"{PATH}/LICENSE.txt": "All of it.\n"})
    assert ask(scan, context).findings == ()


def test_tips_may_be_tags_and_unknown_ids_of_the_other_side_are_passed_over(context, home):
    planted = commit(home, "x", **{f"{PATH}/SKILL.md": f"{SEED}- {AWS}\n"})
    git(home, "tag", "-am", "a tag", "release")
    with Workspace(context) as workspace:
        tag = git(home, "rev-parse", "release")
        assert [found.commit for found in scan_commits(workspace, [tag], ["0" * 40]).stops] == [planted]
        assert scan_commits(workspace, [tag], [planted]).commits == 0


@pytest.mark.usefixtures("home")
def test_words_that_name_nothing_are_refused(context):
    with pytest.raises(RevisionNotFoundError):
        ask(scan, context, "nothing")
    with pytest.raises(UsageError, match="three dots"):
        ask(scan, context, "a...b")


@given(
    st.text(max_size=80), st.sampled_from([AWS, GITHUB, "https://me:s3cretpass@host", "Bearer abcdefghij0123456789xyz"])
)
def test_credentials_are_what_redaction_takes_out(text, secret):
    line = f"{text} {secret}"
    found = credentials(line)
    shown = redact(line)
    assert found
    assert shown != line
    for value in found:
        assert value in line
        assert value not in shown

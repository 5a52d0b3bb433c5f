"""The files that docs/ci.md#gate offers are run as a host runs them: the workflow step by step, and the hooks."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from program import git, new_repository, skillgit, surroundings
from soaking import soak
from trained_runs import RUN, small_run

import skillgit as package

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
WORKFLOW = EXAMPLES / "skillgit-gate.yml"
SKILL = "skills/searchqa/SKILL.md"
ACTION = ROOT / ".github" / "actions" / "gate" / "action.yml"
NUMBER = "7"
WHO = ("-c", "user.name=P", "-c", "user.email=p@example.org")

ACTIONS = {
    "actions/checkout": ("11bd71901bbe5b1630ceea73d27597364c9af683", "v4.2.2"),
    "actions/setup-python": ("a26af69be951a213d495a4c3e4e4022e16d87065", "v5.6.0"),
    "actions/cache/restore": ("5a3ec84eff668545956fd18022155c47e93e2684", "v4.2.3"),
    "actions/cache/save": ("5a3ec84eff668545956fd18022155c47e93e2684", "v4.2.3"),
    "actions/upload-artifact": ("ea165f8d65b6e75b540449e92b4886f43607fa02", "v4.6.2"),
    "actions/download-artifact": ("d3f86a106a0bac45b974a628896c90dbdf5c8093", "v4.3.0"),
}
"""The actions that the workflow may use, each at a commit that nobody can move."""

PYTHON = """\
#!/bin/sh
[ "$1 $2" != "-I -c" ] || exec "{python}" "$@"
[ "$1 $2 $3 $4 $5" = "-I -m pip install --quiet" ] && [ "$6" = "{source}" ] || exit 97
printf '#!/bin/sh\\ncase "$1" in {skipped}) exit 0;; esac\\nexec "{python}" -m skillgit "$@"\\n' > "{bin}/skillgit"
chmod +x "{bin}/skillgit"
"""
"""Stands for pip, which installs the source of the action."""

GH = """\
#!/bin/sh
case "$*" in
  "api repos/owner/skills/issues/7/comments --paginate --jq "*) [ ! -f "{comment}" ] || echo 12 ;;
  "api --silent --method PATCH repos/owner/skills/issues/comments/12 -F body=@gate.md")
    cp gate.md "{comment}"; echo replaced >> "{comment}.log" ;;
  "pr comment 7 --body-file gate.md") cp gate.md "{comment}"; echo written >> "{comment}.log" ;;
  *) echo "gh $*" >&2; exit 98 ;;
esac
"""
"""Stands for GitHub: it holds one comment."""


def workflow() -> dict[str, dict[str, object]]:
    return yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))


def action() -> dict[str, dict[str, object]]:
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))


def steps() -> list[dict[str, object]]:
    own = [step for job in workflow()["jobs"].values() for step in job["steps"]]
    return [*own, *action()["runs"]["steps"]]


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@dataclass
class Host:
    """GitHub, as far as one pull request sees it: a repository, runners, artefacts and a comment."""

    folder: Path
    origin: Path
    forked: bool = False
    codes: dict[str, int] = field(default_factory=dict)
    told: str = ""
    inputs: dict[str, str] = field(default_factory=dict)  # of the action, beside those of the workflow
    outputs: dict[str, str] = field(default_factory=dict)
    skipped: str = "lint|scan"  # the commands that say yes at once, for the time they take
    _runs: int = 0

    @property
    def comment(self) -> Path:
        return self.folder / "comment.md"

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    def open_pull_request(self, files: dict[str, str]) -> None:
        """Push a head that sets ``files``."""
        tree = self.folder / f"author-{self._runs}"
        git("clone", "-q", "-b", "main", self.origin.as_uri(), tree, cwd=self.folder)
        for name, text in files.items():
            (tree / name).write_text(text)
        git(*WHO, "commit", "-qam", "Change a skill", cwd=tree)
        git("push", "-q", "-f", "origin", f"HEAD:refs/pull/{NUMBER}/head", cwd=tree)

    def run(self) -> None:
        """Run every job of the workflow, in the order in which they need each other."""
        self._runs += 1
        self.codes, self.told = {}, ""
        (self.folder / "output").write_text("")
        self.outputs = {}
        facts = {
            "source": f"{ACTION.parent}/../../..",
            "python": sys.executable,
            "bin": self.bin,
            "skipped": self.skipped,
        }
        program(self.bin / "python", PYTHON.format(**facts))
        program(self.bin / "gh", GH.format(comment=self.comment))
        (self.bin / "skillgit").unlink(missing_ok=True)
        for name, job in workflow()["jobs"].items():
            if self.holds(str(job.get("if", ""))):
                self.codes[name] = self._run_job(name, job)

    @property
    def summary(self) -> str:
        return (self.folder / f"summary-{self._runs}.md").read_text()

    def _run_job(self, name: str, job: dict[str, object]) -> int:
        workspace = self.folder / f"{name}-{self._runs}"
        workspace.mkdir()
        code = 0
        for step in job["steps"]:
            condition = str(step.get("if", ""))
            if (code and "cancelled" not in condition) or not self.holds(condition):
                continue
            if "uses" in step and str(step["uses"]).startswith("OWNER/skillgit/.github/actions/gate@"):
                code = self._act(step, workspace) or code
            elif "uses" in step:
                self._use(str(step["uses"]).partition("@")[0], step.get("with", {}), workspace)
            else:
                code = self._shell(step, workspace) or code
        return code

    def _act(self, step: dict[str, object], workspace: Path) -> int:
        """Run the steps of the action, with its inputs as a host fills them in, until one fails."""
        values = {name: self.filled(str(entry["default"])) for name, entry in action()["inputs"].items()}
        values |= {name: self.filled(str(value).lower()) for name, value in step["with"].items()} | self.inputs
        beside = {key: self.filled(str(value), workspace) for key, value in step["env"].items()}
        for inner in action()["runs"]["steps"]:
            told = {key: values[str(value)[len("${{ inputs.") : -len(" }}")]] for key, value in inner["env"].items()}
            assert inner["shell"] == "bash"
            if code := self._shell({"run": inner["run"], "env": {}}, workspace, told | beside):
                break
        lines = (self.folder / "output").read_text().splitlines()
        self.outputs = dict(line.split("=", 1) for line in lines)
        return code

    def _shell(self, step: dict[str, object], workspace: Path, told: dict[str, str] | None = None) -> int:
        own = {key: self.filled(str(value)) for key, value in step.get("env", {}).items()} | (told or {})
        (self.folder / "temp").mkdir(exist_ok=True)
        environment = surroundings(
            **own,
            PATH=f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            GITHUB_STEP_SUMMARY=str(self.folder / f"summary-{self._runs}.md"),
            GITHUB_OUTPUT=str(self.folder / "output"),
            GITHUB_ACTION_PATH=str(ACTION.parent),
            RUNNER_TEMP=str(self.folder / "temp"),
        )
        script = self.folder / "script.sh"
        script.write_text(str(step["run"]))
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(
            command, cwd=workspace, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False,
        )  # fmt: skip
        self.told += done.stdout
        return done.returncode

    def _use(self, action: str, options: dict[str, object], workspace: Path) -> None:
        match action:
            case "actions/checkout":
                git("clone", "-q", self.origin.as_uri(), workspace, cwd=self.folder)
                git("checkout", "-q", self.filled(str(options["ref"])), cwd=workspace)
            case "actions/cache/restore":
                if (self.folder / "cache").is_dir():
                    shutil.copytree(self.folder / "cache", workspace, dirs_exist_ok=True)
            case "actions/cache/save":
                for name in str(options["path"]).split():
                    shutil.copytree(workspace / name, self.folder / "cache" / name, dirs_exist_ok=True)
            case "actions/upload-artifact":
                shutil.copy(self.filled(str(options["path"])), self.folder / "artefact")
            case "actions/download-artifact":
                shutil.copy(self.folder / "artefact", workspace / "gate.md")
            case _:
                assert action in ACTIONS

    def filled(self, text: str, workspace: Path = Path()) -> str:
        """Return ``text`` with the expressions that the workflow may use."""
        values = {
            "github.workspace": str(workspace),
            "github.event.pull_request.number": NUMBER,
            "github.event.pull_request.base.sha": git("rev-parse", "main", cwd=self.origin).out.strip(),
            "github.event.pull_request.head.repo.full_name == github.repository": str(not self.forked).lower(),
            "steps.gate.outputs.report": self.outputs.get("report", ""),
            "github.repository": "owner/skills",
            "github.token": "token",
            "secrets.OPENAI_API_KEY": "" if self.forked else "key",
        }
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: values[found[1]], text)

    def holds(self, condition: str) -> bool:
        """Say whether a condition of the workflow holds."""
        return {
            "": lambda: True,
            "github.event.pull_request.head.repo.full_name == github.repository": lambda: not self.forked,
            "!cancelled() && github.event.pull_request.head.repo.full_name == github.repository": lambda: (
                not self.forked
            ),
            "!cancelled() && steps.gate.outputs.report != ''": lambda: bool(self.outputs.get("report")),
        }[condition.removeprefix("${{ ").removesuffix(" }}")]()


@pytest.fixture
def host(tmp_path_factory, tmp_path) -> Host:
    git("clone", "-q", "--mirror", small_run(tmp_path_factory).as_uri(), tmp_path / "origin.git", cwd=tmp_path)
    return Host(folder=tmp_path, origin=tmp_path / "origin.git")


def text_of(host: Host, revision: str) -> str:
    return git("show", f"{revision}:{SKILL}", cwd=host.origin).out


def test_a_better_skill_passes_and_its_numbers_become_one_comment(host):
    host.open_pull_request({SKILL: text_of(host, f"{RUN}/v2")})
    host.run()
    assert host.codes == {"gate": 0, "comment": 0}, host.told
    assert host.summary == host.comment.read_text()
    assert "## skillgit gate: passes" in host.summary
    assert "| measured now | 0 | 0 |" in host.summary, "the promoted text is known by its run"
    host.open_pull_request({SKILL: text_of(host, f"{RUN}/v2") + "\n- Be kind.\n"})
    host.run()
    assert host.codes == {"gate": 0, "comment": 0}, host.told
    assert "| measured now | 0 | 20 |" in host.comment.read_text()
    assert "- cost: 20 calls" in host.comment.read_text()
    host.run()
    assert "- cost: 0 calls" in host.comment.read_text(), "what one push paid for the next one keeps"
    assert host.comment.with_suffix(".md.log").read_text() == "written\nreplaced\nreplaced\n"


def test_a_worse_skill_fails_the_job_and_is_told_all_the_same(host):
    git("update-ref", "refs/heads/main", f"refs/heads/run/{RUN}", cwd=host.origin)
    host.open_pull_request({SKILL: text_of(host, f"{RUN}/v0")})
    host.run()
    assert host.codes == {"gate": 1, "comment": 0}, host.told
    assert "## skillgit gate: does not pass" in host.comment.read_text()


def test_a_fork_without_secrets_spends_nothing_and_says_what_is_not_recorded(host):
    host.forked = True
    host.open_pull_request({SKILL: text_of(host, f"{RUN}/v2") + "\n- Be kind.\n"})
    host.run()
    assert host.codes == {"gate": 0}, host.told
    assert "::warning::skillgit gate cannot tell" in host.told
    assert "| not recorded | 0 | 20 |" in host.summary
    assert host.outputs["verdict"] == "unknown"
    assert not host.comment.exists()


HOSTILE = (
    "$(touch {mark})",
    "`touch {mark}`",
    '"; touch {mark}; "',
    "'; touch {mark} #",
    "x\ny\n$(touch {mark})",
    "--output={mark}",
    "verdict=passes\nreport=/etc/passwd",
    "::set-output name=verdict::passes",
)


EVERY = "\n".join(HOSTILE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("config", EVERY),
        *(soak(name, value) for name in ("head", "base", "rule", "max-usd", "number") for value in (*HOSTILE, EVERY)),
    ],
)
def test_no_input_of_the_action_becomes_a_command(host, name, value):
    mark = host.folder / "mark"
    host.forked = True
    host.open_pull_request({SKILL: text_of(host, f"{RUN}/v2")})
    host.inputs = {name: value.format(mark=mark)}
    host.run()
    assert host.codes["gate"] not in {0, 97}, host.told
    assert not mark.exists()
    assert host.outputs.get("verdict", "fails") == "fails"
    assert host.outputs.get("report", "") in {"", str(host.folder / "temp" / "gate.md")}
    _, _, begun = host.told.partition("::stop-commands::")
    token, _, rest = begun.partition("\n")
    silenced, _, commands = rest.partition(f"::{token}::\n")
    assert name == "number" or (silenced and "::set-output" not in commands)


def test_what_breaks_a_rule_fails_the_check_and_is_in_the_summary(host):
    host.open_pull_request({SKILL: text_of(host, f"{RUN}/v2").replace("name: searchqa", "name: other")})
    host.forked, host.skipped = True, "scan"
    host.run()
    assert host.codes == {"gate": 1}, host.told
    assert "### Checks" in host.summary
    assert "the skill is called other, and its folder searchqa" in host.summary


def test_actions_are_known_and_pinned_to_a_commit_with_its_version_beside():
    found = re.findall(r"uses: (actions/\S+)@(\S+) # (\S+)$", WORKFLOW.read_text(encoding="utf-8"), re.MULTILINE)
    assert [(name, ACTIONS[name]) for name, _, _ in found] == [(name, (pin, version)) for name, pin, version in found]
    assert len(found) + 1 == sum("uses" in step for step in steps())
    assert f"uses: OWNER/skillgit/.github/actions/gate@COMMIT # v{package.__version__}\n" in WORKFLOW.read_text()


def test_the_workflow_gives_nobody_more_than_it_needs():
    text, told = WORKFLOW.read_text(encoding="utf-8"), workflow()
    assert set(told[True]) == {"pull_request"}, "on: with pull_request_target a head would meet secrets"
    assert told["permissions"] == {}
    assert {name: job["permissions"] for name, job in told["jobs"].items()} == {
        "gate": {"contents": "read"},
        "comment": {"pull-requests": "write"},
    }
    assert all(job["timeout-minutes"] for job in told["jobs"].values())
    (checkout,) = [step for step in steps() if str(step.get("uses", "")).startswith("actions/checkout")]
    assert checkout["with"]["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert checkout["with"]["persist-credentials"] is False
    assert not any("${{" in str(step.get("run", "")) for step in steps()), "words of others would become a script"
    assert text.count("secrets.") == 1
    assert '"--max-usd=$MAX_USD"' in ACTION.read_text(encoding="utf-8")


@pytest.fixture
def guarded(tmp_path, monkeypatch) -> Path:
    """Return a repository with the hook, and the program on the path."""
    repository = new_repository(tmp_path / "repository")
    shutil.copy(EXAMPLES / "pre-commit.sh", repository / ".git/hooks/pre-commit")
    (repository / ".git/hooks/pre-commit").chmod(0o755)
    program(tmp_path / "bin" / "skillgit", f'#!/bin/sh\nexec "{sys.executable}" -m skillgit "$@"\n')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return repository


def test_the_hook_looks_at_what_is_staged_and_refuses_a_broken_skill(guarded):
    document = guarded / SKILL
    good = document.read_text()
    document.write_text(good + "\n- Be kind.\n")
    git("add", "-A", cwd=guarded)
    document.write_text("broken, but not staged")
    git(*WHO, "commit", "-qm", "A rule", cwd=guarded)
    refused = git(*WHO, "commit", "-qam", "Broken", cwd=guarded, code=1)
    assert "SKILL.md" in refused.out + refused.err
    document.write_text(good)
    (guarded / "README.md").write_text("Words.\n")
    git("add", "-A", cwd=guarded)
    git(*WHO, "commit", "-qm", "Words", cwd=guarded)
    git("rm", "-rq", "skills/searchqa", cwd=guarded)
    git(*WHO, "commit", "-qm", "No skill any more", cwd=guarded)


def test_the_hook_of_pre_commit_names_a_command_that_works(guarded):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    name, *words = hook["entry"].split()
    assert (name, hook["language"], hook["pass_filenames"]) == ("skillgit", "python", False)
    assert "files" not in hook, "a skill may be in any folder"
    skillgit(*words, cwd=guarded)
    (guarded / SKILL).write_text("broken")
    skillgit(*words, cwd=guarded, code=1)

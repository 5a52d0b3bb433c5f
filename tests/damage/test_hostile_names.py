"""A history whose trees hold names that lead elsewhere: it can be read, fsck names them, and nobody writes them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from forgery import forge
from hostile_names import literal_tree, replaced, with_entries
from program import attempt, skillgit
from pygit2.enums import FileMode
from sample_run import PATH, RUN

from skillgit.app.upkeep.fsck import fsck
from skillgit.domain.untrusted.file_names import entry_name, shown
from skillgit.errors import ExitCode
from skillgit.store.history_reader import read_run

NAMES = (
    b"/abs",
    b"../../x",
    b".git/hooks/post-checkout",
    b".git",
    b"CON",
    b"a\xffb",
    b"a\x1b[31mb",
    b"skill.md",
    b"b\\c",
)
BESIDE = (b"..", b"../y")


@pytest.fixture
def hostile(patient):
    """The run whose version 3 has such files in its skill folder and beside it."""
    repo = patient.repo

    def content(root):
        inner = with_entries(repo, root[PATH], NAMES)
        return with_entries(repo, replaced(repo, root, PATH, inner), BESIDE)

    forge(patient, 6, content=content)
    return patient


def everything(folder) -> dict[str, object]:
    """Return all that is there but for git's own files, which reading adds an index to."""
    paths = (path for path in folder.rglob("*") if ".git" not in path.relative_to(folder).parts)
    return {str(path): path.read_bytes() if path.is_file() else path.is_dir() for path in paths}


@pytest.mark.usefixtures("hostile")
def test_fsck_names_each_of_them_once(context):
    told = [problem.sentence for problem in fsck(context, None).problems]

    for name in NAMES:
        assert sum(shown(f"{PATH}/{entry_name(name)}") in sentence for sentence in told) == 1, name
    for name in BESIDE:
        assert sum(shown(entry_name(name)) in sentence and "tree has the name" in sentence for sentence in told) >= 1
    assert all(sentence.isprintable() for sentence in told)


def test_fsck_names_those_of_evidence(patient, context):
    old = patient.history[1].evidence
    new = with_entries(patient.repo, patient.repo.raw[old], [b"../../evil.json"])
    forge(patient, 1, message=lambda text: text.replace(old, str(new.id)))

    told = [problem.sentence for problem in fsck(context, None).problems]

    assert sum("its evidence has the name '..\\x2f..\\x2fevil.json'" in sentence for sentence in told) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("log", RUN),
        ("log", "-p", RUN),
        ("show", "v3"),
        ("diff", "v2", "v3"),
        ("diff", "v2", "v3", "--rules"),
        ("diff", "v2", "v3", "--json"),
        ("blame", "v3"),
        ("show", "v3:SKILL.md"),
        ("export", "v3", "--json"),
        ("report", RUN, "--output", "-"),
        ("runs",),
        ("status",),
    ],
    ids=" ".join,
)
def test_it_can_be_read(hostile, command):
    done = attempt(*command, cwd=hostile.repo.workdir)

    assert done.code in {ExitCode.OK, ExitCode.NO}, done.err
    assert "\x1b" not in done.out
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "command",
    [
        ("export", "v3", "{}/out"),
        ("export", "v3", "{}/out.zip"),
        ("export", "v3", "{}/out", "--as", "mlflow"),
        ("export", "v3", "{}/out", "--as", "skillopt"),
        ("install", "v3", "--to", "{}/skills"),
        ("install", "v3", "--to", "{}/skills", "--dry-run"),
        ("checkout", "v3"),
        ("checkout", "v3", "--", PATH),
        ("checkout", "v3", "--", "."),
    ],
    ids=" ".join,
)
def test_nobody_writes_it(hostile, tmp_path, command):
    before = everything(tmp_path)

    done = attempt(*(word.format(tmp_path) for word in command), cwd=hostile.repo.workdir)

    assert done.code == ExitCode.USAGE, done.out + done.err
    assert done.err.count("\n") <= 3
    assert "hint:" in done.err
    assert "Traceback" not in done.err
    assert everything(tmp_path) == before


def test_an_earlier_version_without_them_can_be_taken_out(hostile, tmp_path):
    skillgit("export", "v2", str(tmp_path / "out"), cwd=hostile.repo.workdir)

    assert (tmp_path / "out" / "SKILL.md").is_file()


@pytest.mark.parametrize("skill", ["skills/..", "..", "/abs", "skills/demo/", "", "skills/.git"])
def test_a_skill_folder_that_is_no_path_is_installed_nowhere(patient, tmp_path, skill):
    """Its last part becomes the name of the folder: '..' would replace all other skills."""

    def content(root):
        last = skill.rpartition("/")[2].encode()
        skills = [(entry.raw_name, entry.id, entry.filemode) for entry in root["skills"]]
        named = [(last, root[PATH].id, FileMode.TREE)] if last else []
        return replaced(patient.repo, root, "skills", literal_tree(patient.repo, [*named, *skills]))

    line = "Skillgit-Skill: "
    for place in range(len(patient.history)):
        forge(patient, place, message=lambda text: text.replace(f"{line}{PATH}", f"{line}{skill}"), content=content)
        patient = replace(patient, history=read_run(patient.repo, RUN))
    (tmp_path / "skills" / "precious").mkdir(parents=True)

    done = attempt("install", f"{RUN}/v0", "--to", f"{tmp_path}/skills", "--yes", cwd=patient.repo.workdir)

    assert done.code != ExitCode.OK
    assert "Traceback" not in done.err
    assert [path.name for path in (tmp_path / "skills").iterdir()] == ["precious"]

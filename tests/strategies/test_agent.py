"""The strategy agent: what a program changes in its folder is a candidate, and it sees and reaches nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from agent_program import WORK, program
from soaking import sampled
from toy import SEED, History, ToyBackend, run_to_end, trainer

from skillgit.calls.client import Route
from skillgit.domain.cost import Caps
from skillgit.domain.event import ATTEMPTS
from skillgit.domain.event_kinds import EventKind
from skillgit.engine.method_settings import MethodSettings
from skillgit.errors import BudgetError, StrategyError
from skillgit.plugin.backend import Price, Reply, Usage
from skillgit.plugin.work_folder import FolderChanges, WorkFolder, changes_in
from skillgit.strategies.agent import CodingAgent
from skillgit_backends.agent_cli.seal import seal_problem
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend

if TYPE_CHECKING:
    from collections.abc import Mapping


sealed = pytest.mark.usefixtures("seal")
FILES = ("SKILL.md", "scripts/*.py")


@pytest.fixture(scope="module")
def seal() -> None:
    if problem := seal_problem():
        pytest.skip(f"no seal here: {problem}")


class Model(ToyBackend):
    """The toy's target, and what answers an agent."""

    def _optimizer(self, messages: object) -> Reply:  # type: ignore[override]
        del messages
        return Reply(text="They are words.", usage=Usage(tokens_in=100, tokens_out=10))


def route(path: Path, model: Model) -> Route:
    backend = ClaudeCodeExecBackend({"path": str(path), "allow_root": True})
    price = Price(usd_in=1, usd_out=1)
    behind = Route(backend=model, backend_name="toy", model="behind", price=price)  # type: ignore[arg-type]
    return Route(backend=backend, backend_name="claude_code_exec", model="m", inner=behind)


def trained(
    folder: Path,
    work: str,
    *,
    caps: Caps | None = None,
    files: tuple[str, ...] = FILES,
    model: Model | None = None,
    **sections: Mapping[str, object],
) -> tuple[History, Model]:
    model, history = model or Model(), History()
    options: dict[str, Mapping[str, object]] = {"train": {"num_epochs": 1, "batch_size": 4, "seed": 1}, **sections}
    options["optimizer"] = {"files": list(files), **options.get("optimizer", {})}
    made = trainer(
        model, history, strategy=CodingAgent(), agent=route(program(folder, work), model), caps=caps, **options
    )

    async def whole() -> None:
        try:
            await run_to_end(made, history)
        finally:
            await made.session.aclose()

    asyncio.run(whole())
    return history, model


def first_step(history: History) -> tuple[object, Mapping[str, bytes]]:
    return history[1].event, history[1].evidence


@sealed
def test_a_folder_becomes_a_version_with_its_script(tmp_path):
    history, model = trained(tmp_path, WORK)
    event, evidence = first_step(history)
    assert event.kind is EventKind.ACCEPTED
    assert event.title == "Name amber"
    assert "The target lacked it." in event.why
    skill = history[1].skill
    assert skill is not None
    assert skill.document == SEED.document + "- amber\n"
    assert skill.executable == {"scripts/x.py"}
    patch = json.loads(evidence["patch.json"])
    assert patch["lines"] is True, "an executable file comes of no edit"
    assert {edit["file"] for edit in patch["edits"]} == set(FILES[:1]) | {"scripts/x.py"}
    assert sum(request.model == "behind" for request in model.requests) == 2


@sealed
def test_changes_that_edits_can_tell_are_edits(tmp_path):
    history, _ = trained(tmp_path, 'skill.write_text(skill.read_text() + f"- {words[0]}\\n")\n', files=("SKILL.md",))
    event, evidence = first_step(history)
    assert event.kind is EventKind.ACCEPTED
    patch = json.loads(evidence["patch.json"])
    assert "lines" not in patch
    assert [edit["content"] for edit in patch["edits"]] == ["- amber"]
    assert event.title == "Done", "without notes, the last words of the program are the title"


LEFT = {
    "nothing": ("", "the agent changed nothing", "Done"),
    "blank lines": ('skill.write_text(skill.read_text() + "\\n\\n")', "the agent changed nothing", "Done"),
    "a link": ('Path("skill/a.md").symlink_to("/etc/hostname")', "can be taken", "it is a link"),
    "a linked folder": ('Path("skill/scripts").symlink_to("/usr")', "can be taken", "it is a link"),
    "a link for the document": (
        'skill.unlink(); skill.symlink_to("/etc/passwd")',
        "can be taken",
        "SKILL.md (invalid): it is a link",
    ),
    "a link for the folder": (
        'import shutil; shutil.rmtree("skill"); Path("skill").symlink_to("/usr")',
        "can be taken",
        "it is not a folder any more",
    ),
    "a pipe": ('os.mkfifo("skill/pipe.md")', "can be taken", "not a plain file"),
    "a binary file": ('Path("skill/a.md").write_bytes(b"\\0\\1")', "can be taken", "it is not text"),
    "10 MB": ('skill.write_text("a" * 10_000_000)', "can be taken", "larger than 1 MiB"),
    "many files": (
        '[Path(f"skill/{n}.md").write_text("x") for n in range(2000)]',
        "can be taken",
        "more than 1,000 files",
    ),
    "a name that leads elsewhere": ('Path("skill/C:x.md").write_text("x")', "can be taken", "it has a colon"),
    "a file off limits": (
        'Path("skill/data").mkdir(); Path("skill/data/x.csv").write_text("1")',
        "can be taken",
        "optimizer.files lets no step make it",
    ),
    "a deep file": (
        'os.makedirs("skill/scripts/y"); Path("skill/scripts/y/x.py").write_text("1")',
        "can be taken",
        "lets no step make it",
    ),
    "no document": ("skill.unlink()", "can be taken", "a skill has a SKILL.md"),
    "no text": (
        'skill.write_text("---\\nname: toy\\ndescription: Toy.\\n---\\n")',
        "can be taken",
        "nothing of its text",
    ),
    "a region": (
        'skill.write_text(skill.read_text() + "<!-- skillgit:keep -->\\nx\\n<!-- /skillgit:keep -->\\n")',
        "can be taken",
        "what is protected in it is not as it was",
    ),
    "no frontmatter": ('skill.write_text("# Toy\\n\\n- amber\\n")', "can be taken", "what is protected in it"),
    "a secret": (
        'skill.write_text(skill.read_text() + "- use sk-ant-api03-" + "aB3" * 20 + "\\n")',
        "can be taken",
        "something like a secret",
    ),
}


@sealed
@pytest.mark.parametrize("left", sampled(LEFT.values(), 2), ids=LEFT)
def test_what_cannot_be_taken_is_dropped_and_said(left, tmp_path):
    work, title, reason = left
    history, _ = trained(tmp_path, work, train={"num_epochs": 1, "batch_size": 8, "seed": 1})
    event, _ = first_step(history)
    assert event.kind is EventKind.SKIPPED
    assert title in event.title
    assert reason in event.why


@sealed
def test_another_frontmatter_is_put_back_and_the_rest_is_taken(tmp_path):
    work = 'skill.write_text(skill.read_text().replace("Toy.", "Better.") + "- amber\\n")\n'
    history, _ = trained(tmp_path, work)
    event, _ = first_step(history)
    assert event.kind is EventKind.ACCEPTED
    assert history[1].skill is not None
    assert history[1].skill.document == SEED.document + "- amber\n"
    assert "the frontmatter belongs to people and stays" in event.why


@sealed
def test_an_agent_that_fails_leaves_a_step_without_a_candidate(tmp_path):
    history, _ = trained(tmp_path, 'print(json.dumps({"type": "result", "result": ""})); sys.exit(0)\n')
    event, _ = first_step(history)
    assert event.kind is EventKind.SKIPPED
    assert event.title == "the agent came to no end"
    assert "A call (agent) will never be answered" in event.why


@sealed
@pytest.mark.parametrize("caps", [Caps(max_calls=40), Caps(max_tokens=2_000)])
def test_a_cap_stops_the_agent_and_the_run(caps, tmp_path):
    model = Model()
    with pytest.raises(BudgetError):
        trained(tmp_path, "for number in range(100):\n    ask(str(number))\n", caps=caps, model=model)
    assert 1 < sum(request.model == "behind" for request in model.requests) < 40


LOOK = """
import subprocess
def seen(*places):
    found = []
    for place in places:
        try:
            found.append([place, os.listdir(place) if os.path.isdir(place) else Path(place).read_bytes().hex()])
        except OSError:
            pass
    return found

def reached(port):
    import socket
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True

texts = {str(path): path.read_text() for path in Path().rglob("*") if path.is_file()}
Path("notes.md").write_text("SEEN\\n\\n" + json.dumps({
    "places": seen(*PLACES), "processes": [name for name in os.listdir("/proc") if name.isdecimal()],
    "port": reached(PORT), "texts": texts, "etc": sorted(os.listdir("/etc")), "user": os.environ.get("HOME"),
    "variables": sorted(os.environ),
}))
"""


@sealed
def test_the_program_sees_and_reaches_nothing_but_its_folder_and_its_model(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    secret = tmp_path / "data.json"
    secret.write_text("CANARY")
    root = Path(__file__).parents[2]
    places = [str(secret), str(tmp_path), str(root), f"{root}/pyproject.toml", "/etc/shadow", str(Path.home())]

    async def whole() -> tuple[History, Model]:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            work = f"PLACES, PORT = {places!r}, {port}\n{LOOK}"
            return await asyncio.to_thread(trained, tmp_path, work)
        finally:
            server.close()

    history, _ = asyncio.run(whole())
    _, evidence = first_step(history)
    notes = json.loads(evidence["agent.json"])["notes"]
    seen = json.loads(notes.partition("\n\n")[2])
    texts = seen["texts"]
    # folders that lead to the program and to Python are there, with nothing else in them
    assert all(names in (["agent"], [".venv"], []) for _, names in seen["places"]), seen["places"]
    assert str(secret) not in dict(seen["places"])
    assert seen["port"] is False
    assert len(seen["processes"]) <= 4
    assert not {"shadow", "skillgit"} & set(seen["etc"])
    assert not {"OPENAI_API_KEY", "GIT_DIR"} & set(seen["variables"])
    for text in texts.values():
        assert "selection" not in text.replace("selection items", "")
        assert "test0" not in text
    index = json.loads(texts["evidence/index.json"])
    assert {row["id"] for row in index} <= {f"train{number}" for number in range(8)}
    for row in index:
        assert json.loads(texts[f"evidence/{row['file']}"])["turns"]
    assert "`SKILL.md`, `scripts/*.py`" in texts["TASK.md"]


@sealed
def test_history_is_there_as_files(tmp_path):
    work = f"""{WORK}
Path("notes.md").write_text("x\\n\\n" + json.dumps(
    {{str(path): json.loads(path.read_text()) for path in Path("history").glob("*.json")}}))
"""
    history, _ = trained(tmp_path, work)
    notes = json.loads(history[2].evidence["agent.json"])["notes"]
    seen = json.loads(notes.partition("\n\n")[2])
    step = seen["history/001.json"]
    assert step["decision"].startswith("accept")
    assert step["changes"] == ["+ - amber", "+ print(4)"] or "+ - amber" in step["changes"]
    assert step["score"] > step["against"]
    assert [row["version"] for row in seen["history/versions.json"]] == [0, 1]


@sealed
@pytest.mark.parametrize("helps", [True, False])
def test_it_is_screened_on_all_failing_items(helps, tmp_path):
    work = WORK if helps else 'skill.write_text(skill.read_text() + "- zebra\\n")\n'
    history, _ = trained(tmp_path, work, gate={"screening": 1})
    event, _ = first_step(history)
    assert event.kind is (EventKind.ACCEPTED if helps else EventKind.SKIPPED)
    assert event.kind in ATTEMPTS
    assert event.screening is not None
    assert event.screening.failing == 4


def test_what_is_no_agent_is_refused_before_the_run(tmp_path):
    model = Model()
    plain = Route(backend=model, backend_name="toy", model="m")  # type: ignore[arg-type]
    with pytest.raises(StrategyError, match="needs a coding agent as optimizer, and toy is none"):
        CodingAgent().check(MethodSettings(), plain)
    agent = ClaudeCodeExecBackend({"path": str(tmp_path)})
    with pytest.raises(StrategyError, match="metered"):
        CodingAgent().check(MethodSettings(), Route(backend=agent, backend_name="claude_code_exec", model="m"))


def test_without_a_seal_it_is_refused_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("skillgit_backends.agent_cli.backend.seal_problem", lambda: "bubblewrap is not installed")
    with pytest.raises(StrategyError, match="cannot be sealed off from the items here: bubblewrap is not installed"):
        CodingAgent().check(MethodSettings(), route(program(tmp_path, ""), Model()))


def test_changes_come_through_the_reply_as_they_are(tmp_path):
    given = WorkFolder(
        files={"skill/SKILL.md": b"a", "skill/b.png": b"\0", "skill/c.md": b"c", "TASK.md": b"t"}, part="skill"
    )
    for path, content in given.files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    assert changes_in(tmp_path, given, "said") == FolderChanges(notes="said")
    (tmp_path / "skill/c.md").unlink()
    (tmp_path / "skill/.cache").mkdir()
    (tmp_path / "skill/.cache/x").write_text("x")
    (tmp_path / "skill/SKILL.md").write_text("größer")
    changes = changes_in(tmp_path, given)
    assert changes == FolderChanges(texts={"SKILL.md": "größer"}, removed=("c.md",))
    assert FolderChanges.read(changes.reply) == changes
    for text in ("", "[]", "{}", '{"notes": 1}'):
        with pytest.raises(ValueError, match=r"."):
            FolderChanges.read(text)

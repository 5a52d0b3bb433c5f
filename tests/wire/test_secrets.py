"""No credential that comes near a run is ever written: keys of all providers are planted wherever one could turn up."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from string import ascii_letters, ascii_uppercase, digits

import pytest
from program import QUICK, attempt, new_repository
from soaking import soak

from wire import Faults, wire_server
from wire.training import over

ROOT = Path(__file__).parents[2]
CHANCE = Random(11)  # noqa: S311 - the keys only look like keys
WORD = ascii_letters + digits
HEX = "0123456789abcdef"


def some(length: int, characters: str = WORD) -> str:
    """Return characters by chance, the last two a digit and a letter as every long key has them."""
    return "".join(CHANCE.choices(characters, k=length - 2)) + ("7f" if characters == HEX else "7F")


KEYS = {
    "OPENAI_API_KEY": f"sk-proj-{some(48)}_{some(40)}",
    "OPENAI_LEGACY_API_KEY": f"sk-{some(48)}",
    "ANTHROPIC_API_KEY": f"sk-ant-api03-{some(40)}-{some(40)}AA",
    "AZURE_OPENAI_API_KEY": some(32, HEX),
    "AZURE_FOUNDRY_API_KEY": some(84),
    "GOOGLE_API_KEY": f"AIza{some(35)}",
    "AWS_ACCESS_KEY": f"AKIA{some(14, ascii_uppercase + digits)}Q2",
    "AWS_SECRET_ACCESS_KEY": f"{some(20)}/{some(12)}+{some(6)}",
    "GITHUB_TOKEN": f"ghp_{some(36)}",
    "GITHUB_FINE_TOKEN": f"github_pat_{some(22)}_{some(59)}",
    "HF_TOKEN": f"hf_{some(34)}",
    "SLACK_TOKEN": f"xoxb-{some(12, digits)}-{some(24)}",
    "GITLAB_TOKEN": f"glpat-{some(20)}",
    "NPM_TOKEN": f"npm_{some(36)}",
    "STRIPE_SECRET": f"sk_live_{some(24)}",
    "JWT_TOKEN": f"eyJ{some(20)}.eyJ{some(40)}.{some(43)}",
    "DASHSCOPE_API_KEY": f"sk-{some(32, HEX)}",
    "MINIMAX_API_KEY": f"eyJ{some(33)}.eyJ{some(120)}.{some(86)}",
}
BEARER = f"Bearer {some(44)}"
ALL = " ".join([*KEYS.values(), BEARER])
SECRETS = [*KEYS.values(), BEARER.removeprefix("Bearer ")]
QUIET = dict.fromkeys(("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "ANTHROPIC_BASE_URL"), "")
SHORT = ("-o", "train.num_epochs=1", *QUICK[2:])
PIECE = 16
"""So many characters of the middle of a key are as bad as the whole of it: it may have been cut."""

pytestmark = pytest.mark.slow


def train(repository: Path, *options: str, flags: tuple[str, ...] = ()) -> tuple[int, bytes]:
    """Train with all keys in the environment and return exit code and everything that was printed."""
    command = (*flags, "train", "demo", "--run", "demo", *SHORT, *options)
    done = attempt(*command, cwd=repository, env={**KEYS, **QUIET})
    return done.code, done.bytes + done.err.encode()


def written(repository: Path) -> dict[str, bytes]:
    """Return everything that stands in a repository's folder, compressed or not."""
    packed = ("git", "cat-file", "--batch-all-objects", "--batch", "--unordered")
    found = {"objects": subprocess.run(packed, cwd=repository, check=True, capture_output=True).stdout}
    for path in sorted(path for path in repository.rglob("*") if path.is_file()):
        found[str(path.relative_to(repository))] = path.read_bytes()
        if path.suffix == ".db":
            with closing(sqlite3.connect(path)) as database:
                found[f"{path.name}, row by row"] = "\n".join(database.iterdump()).encode()
    return found


def leaks(places: dict[str, bytes]) -> list[tuple[str, str]]:
    """Return which of the keys stand where, in full or in large part."""
    found = []
    for place, content in places.items():
        for secret in SECRETS:
            body = secret.split("-", 2)[-1] if secret.startswith("sk-") else secret[4:]
            pieces = {secret, body[:PIECE], body[-PIECE:]}
            found += [(place, secret) for piece in pieces if piece.encode() in content]
    return sorted(set(found))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


@pytest.fixture
def poisoned_items(tmp_path: Path) -> Path:
    """The items that come with skillgit, with every key in the texts of some of them."""
    here = ROOT / "envs" / "skillgit_envs" / "searchqa" / "data"
    for split in ("train", "val", "test"):
        items = json.loads((here / split / "items.json").read_text())
        for number, item in enumerate(items[:36:2]):
            item["context"] += f" [DOC] [TLE] Notes [PAR] {ALL}"
            item["question"] += f" ({SECRETS[number]})"
        folder = tmp_path / "items" / split
        folder.mkdir(parents=True)
        (folder / "items.json").write_text(json.dumps(items))
    return tmp_path / "items"


def test_what_leaks_is_found(tmp_path):
    """The search itself: a key that is written is seen, also the part of it that a cut leaves."""
    repository = new_repository(tmp_path / "repository")
    assert leaks(written(repository)) == []
    (repository / "notes").write_text(SECRETS[3][:30])
    assert leaks(written(repository)) == [("notes", SECRETS[3])]


@pytest.mark.parametrize("dialect", ["chat", soak("messages")])
def test_keys_in_items_answers_edits_and_errors_are_nowhere_in_what_a_run_writes_and_says(
    dialect, repository, poisoned_items
):
    said = (
        ("</answer>", f"</answer> By the way: {ALL}"),
        ('"reasoning": "', f'"reasoning": "{ALL} '),
        ('"content": "- Give', f'"content": "- Use {ALL}. Give'),
    )
    kinds = ("server_error", "rate_limit", "content_filter", "context_length")
    faults = Faults(rate=0.06, row=99, kinds=kinds, seed=4, model="reader")
    with wire_server(said=said, quote=f": you sent {ALL}", faults=faults, keep=True) as wire:
        items = ("-o", "env.split_mode=split_dir", "-o", f"env.split_dir={poisoned_items}")
        code, told = train(repository, *items, *over(wire, dialect), "-o", "calls.max_retries=1")
        asked = json.dumps([entry.document for entry in wire.log()])
        assert any(entry.fault in kinds for entry in wire.log())
    assert code == 0, told.decode()
    assert SECRETS[0] in asked, "an item is sent as it is"
    assert leaks({**written(repository), "the terminal": told}) == []


@pytest.mark.parametrize(
    ("kind", "dialect"),
    [
        ("server_error", "messages"),
        *(soak(kind, "chat") for kind in ("unauthorized", "server_error", "unknown_model")),
        *(soak(kind, "messages") for kind in ("unauthorized", "unknown_model")),
    ],
)
def test_a_provider_that_quotes_keys_in_its_last_words_is_not_repeated(kind, dialect, repository):
    for place, key in enumerate((ALL, " ".join([BEARER, *reversed(KEYS.values())]))):
        with wire_server(quote=f": you sent {key}", faults=Faults(rate=1.0, kinds=(kind,))) as wire:
            code, told = train(repository, *over(wire, dialect), "-o", "calls.max_retries=0", flags=("--debug",))
        assert code == 5, told.decode()
        assert leaks({**written(repository), f"the terminal, {place}": told}) == []


BROKEN = """
from skillgit.plugin.backend import BackendInfo

class Broken:
    info = BackendInfo(name="broken", summary="Fails with a key in its message")

    def __init__(self, settings):
        if "{where}" == "making":
            raise RuntimeError("cannot sign in with {keys}")

    async def complete(self, request):
        raise RuntimeError("cannot sign in with {keys}")

    async def aclose(self):
        if "{where}" == "closing":
            raise RuntimeError("cannot sign out with {keys}")
"""


@pytest.mark.parametrize(
    ("where", "flags"),
    [
        *(("asking", ("--debug",)), soak("making", ("--debug",)), soak("closing", ())),
        *(soak("asking", ()), soak("making", ()), soak("closing", ("--debug",))),
    ],
)
def test_a_backend_that_breaks_down_with_keys_in_its_message_shows_none(where, flags, repository, tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN.replace("{keys}", ALL).replace("{where}", where))
    options = ("-o", f"model.target_backend={tmp_path}/broken.py:Broken")
    code, told = train(repository, *options, flags=flags)
    assert code != 0
    assert b"cannot sign" in told
    assert leaks({**written(repository), "the terminal": told}) == []


DUMP = f"""#!{sys.executable} -I
import json, os, sys
sys.stdin.read()
print(json.dumps({{"type": "system", "subtype": "init", "tools": []}}))
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "stop_reason": "end_turn",
    "result": "<answer>none</answer> " + json.dumps(dict(os.environ)),
    "usage": {{"input_tokens": 1, "output_tokens": 1}}}}))
print(json.dumps(dict(os.environ)), file=sys.stderr)
"""


def test_an_agent_that_tells_its_environment_tells_no_key(repository, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text(DUMP)
    agent.chmod(0o755)
    keys = (
        "target=opus",
        "target_backend=claude_code_exec",
        f"claude_code_exec_path={agent}",
        "claude_code_exec_allow_root=true",
    )
    options = [word for key in keys for word in ("-o", f"model.{key}")]
    sizes = ("-o", "evaluation.sel_env_num=6", "-o", "evaluation.test_env_num=2", "-o", "env.limit=8")
    code, told = train(repository, *options, *sizes)
    assert code == 0, told.decode()
    everything = written(repository)
    assert b"TMPDIR" in everything["objects"], "the environment was told"
    assert leaks({**everything, "the terminal": told}) == []

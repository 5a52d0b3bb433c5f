"""Claims: signed with a real ssh-keygen, made anew from a real run, and forged value by value."""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder
from program import QUICK, git, skillgit
from sample_run import MODELS, clock_from, evaluation, rows, transitions
from sample_run import RUN as SAMPLE
from soaking import soak
from trained_runs import RUN, Quiet, small_run, trained_run, user

from skillgit.app.measure import claim_check
from skillgit.app.measure.claim import canonical, claim, leaves
from skillgit.app.measure.claim_check import WORD, check_claim
from skillgit.app.measure.envelope import Envelope, SshSignature, check_signature, read_envelope, sign
from skillgit.app.measure.requests import ClaimRequest, VerifyRequest
from skillgit.app.skill_format.folder_contents import listing_digest, read_entries, tree_id
from skillgit.app.workspace.workspace import Workspace, explained
from skillgit.errors import ConflictError, ExitCode, NotFoundError, UsageError
from skillgit.index import queries
from skillgit.store.event_writer import RunWriter

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="there is no ssh-keygen (openssh-client)")

ENVIRON = {"PATH": os.environ["PATH"]}
WHO = ("-c", "user.name=P", "-c", "user.email=p@example.org")
LATER = datetime(2026, 11, 29, 12, tzinfo=UTC)


def keygen(*words: str | Path) -> None:
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """A folder with a trained repository, a clone with evidence, two keys, and a file of signers with one of them."""
    folder = tmp_path_factory.mktemp("claims")
    copy_folder(small_run(tmp_path_factory), folder / "mine")
    for name in ("key", "other"):
        keygen("-t", "ed25519", "-N", "", "-C", "", "-f", folder / name)
    kind, public, *_ = (folder / "key.pub").read_text().split()
    (folder / "signers").write_text(f'ann@example.org namespaces="skillgit-claim" {kind} {public}\n')
    for words in (("user.signingkey", str(folder / "key")), ("gpg.format", "ssh")):
        git("config", *words, cwd=folder / "mine")
    claim(mine(folder), ClaimRequest(revision="best", output=str(folder / "claim.json"), note=False))
    git("clone", "-q", (folder / "mine").as_uri(), folder / "clone", cwd=folder)
    git("fetch", "-q", "origin", "refs/skillgit/*:refs/skillgit/*", cwd=folder / "clone")
    return folder


def placed(directory: Path, moment: datetime | None = None):
    context = user(directory, moment)
    return type(context)(**{**{name: getattr(context, name) for name in context.__slots__}, "environ": ENVIRON})


def mine(desk: Path):
    return placed(desk / "mine")


def checked(desk: Path, file: str | Path = "claim.json", *, inside: str = "clone", **request):
    asked = VerifyRequest(claim=str(desk / file), **request)
    return ask(check_claim, placed(desk / inside, LATER), asked, Quiet())


def payload(desk: Path) -> dict:
    return json.loads(read_envelope((desk / "claim.json").read_bytes()).payload)


def forged(desk: Path, statement: object, key: str = "other") -> Path:
    """Return a file with ``statement``, signed by ``key``; an empty key leaves the signature as it was."""
    data = statement if isinstance(statement, bytes) else canonical(statement)
    if key:
        envelope = sign(data, str(desk / key), desk, ENVIRON)
    else:
        envelope = Envelope(data, read_envelope((desk / "claim.json").read_bytes()).signature)
    (desk / "forged.json").write_bytes(envelope.text)
    return desk / "forged.json"


def test_a_stranger_verifies_a_claim_in_a_clone(desk):
    known = checked(desk, signers="../signers")
    assert (known.signature.principal, known.recomputation.wording, known.exit_code) == ("ann@example.org", "yes", 0)
    assert (known.recomputation.contradictions, known.recomputation.missing, known.recomputation.replies) == (
        [],
        [],
        20,
    )
    assert sorted(known.recomputation.word) == sorted(map(".".join, WORD))
    assert known.recomputation.agreeing + len(WORD) == len(leaves(payload(desk)))
    unknown = checked(desk)
    assert (unknown.signature.principal, unknown.exit_code) == ("", ExitCode.OK)
    assert unknown.signature.key.startswith("ED25519 key SHA256:")


FIELDS = """
_type predicateType subject.0.digest.gitTree subject.0.digest.sha256 subject.0.name
claimed config failed test_looks tool.name tool.version models.judge models.target
base.commit base.gitTree base.name version.commit version.name version.recorded version.skill
cost.cached cost.cache_written cost.calls cost.reasoning cost.seconds cost.tokens_in cost.tokens_out
environment.code environment.digest environment.name environment.scorer environment.setup environment.version
evidence.gitTree evidence.public evidence.sha256 items.count items.digest items.salted items.split
gate.alpha gate.best gate.blocked gate.broken gate.compared gate.current gate.decision gate.fixed gate.gated gate.lost
gate.margin gate.metric gate.no_regression gate.outrun gate.p gate.policy gate.regained gate.repeats gate.score
gate.soft_weight
sampling.max_output_tokens sampling.reasoning_effort sampling.target_reasoning_effort sampling.target_seed
sampling.target_stop sampling.target_top_p sampling.temperature
score.interval.0 score.interval.1 score.metric score.outcomes score.repeats score.scored score.seed score.soft_weight
score.value
"""


def test_a_predicate_has_the_fields_of_its_number(desk):
    """Whoever adds one gives PREDICATE another number: claims that were made would contradict a history with more."""
    made = claim(mine(desk), ClaimRequest(revision="v1", note=False)).statement
    names = {".".join(map(str, trail)).removeprefix("predicate.") for trail in leaves(made)}
    assert (made["predicateType"], names) == ("urn:skillgit:score:1", set(FIELDS.split()))


def test_it_holds_what_another_can_make_again_and_nothing_of_the_machine(desk):
    text, predicate = canonical(payload(desk)).decode(), payload(desk)["predicate"]
    assert not [word for word in (str(desk), "maintainers", "usd", "sign@") if word in text]
    assert predicate["version"]["commit"] == git("rev-parse", f"best/{RUN}", cwd=desk / "mine").out.strip()
    assert predicate["score"]["value"] == 0.65
    assert predicate["items"]["count"] == 20
    assert predicate["gate"]["decision"] == "accept_new_best"
    assert predicate["models"] == {"target": "offline/reader", "judge": ""}
    git("checkout", "-q", "--detach", f"origin/best/{RUN}", cwd=desk / "clone")
    entries = read_entries(desk / "clone/skills/searchqa")
    digests = payload(desk)["subject"][0]["digest"]
    assert digests == {"gitTree": tree_id(entries), "sha256": listing_digest(entries)}
    assert digests["gitTree"] == git("rev-parse", "HEAD:skills/searchqa", cwd=desk / "clone").out.strip()


@pytest.mark.parametrize(
    "run", [(RUN,), soak(("repeats", "-o", "gate.repeats=2")), soak(("mixed", "-o", "evaluation.gate_metric=mixed"))]
)
def test_every_claim_that_can_be_made_holds(desk, tmp_path_factory, run):
    name, *options = run
    home = desk / "mine" if name == RUN else trained_run(tmp_path_factory, name, *QUICK, *options)
    held = 0
    with Workspace(placed(home)) as workspace:
        labels = [row.label for row in queries.log_rows(workspace.index, name)]
    for label, split in ((label, split) for label in labels for split in ("selection", "test")):
        request = ClaimRequest(revision=f"{name}/{label}", split=split, key=str(desk / "key"), note=False)
        with suppress(NotFoundError):
            claim(placed(home), replace(request, output=str(desk / "law.json")))
            found = checked(desk, "law.json", inside=str(home))
            assert (found.recomputation.wording, found.recomputation.missing) == ("yes", []), (label, split)
            held += 1
    assert held >= 6


def test_what_a_strangers_claim_says_cannot_paint_the_terminal(desk):
    statement = payload(desk)
    statement["predicate"]["version"]["name"] = "\x1b[31mred\n::set-output name=x::y"
    statement["predicate"]["items"]["count"] = "\x1b]0;title\x07"
    statement["predicate"]["\u202eevil"] = "\x07"
    later = {"SKILLGIT_CLOCK": LATER.isoformat()}
    done = skillgit("verify", forged(desk, statement), cwd=desk / "clone", env=later, code=1)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", done.out)
    assert "\n::set-output" not in done.out
    words = ("verify", desk / "claim.json", "--json")
    document = json.loads(skillgit(*words, cwd=desk / "clone", env=later).out)
    assert document["schema"] == "skillgit.verify-claim/1"
    assert document["recomputation"]["contradictions"] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "missing argument 'CLAIM'"),
        (("x", "--split", "test"), "there is no option '--split'"),
        (("x", "--seed", "3"), "--seed needs --sample"),
    ],
)
def test_options_that_do_not_go_together_are_named(desk, words, sentence):
    assert sentence in skillgit("verify", *words, cwd=desk / "clone", code=2).err


def forgeries(value: object) -> list[object]:
    """Return other values of the same type as ``value`` and of others."""
    match value:
        case bool():
            return [not value, int(value)]
        case int():
            return [value + 1, float(value)]
        case float():
            return [value + 0.01, str(value)]
        case str():
            return [f"{value}0" if value else "x", None]
        case _:
            return [0, {"more": 1}]


def set_leaf(statement: dict, trail: tuple, value: object) -> dict:
    changed = copy.deepcopy(statement)
    holder = changed
    for name in trail[:-1]:
        holder = holder[name]
    holder[trail[-1]] = value
    return changed


@pytest.mark.parametrize(("which", "key"), [(0, ""), soak(0, "other"), soak(1, "other")])
def test_every_value_that_is_forged_and_signed_by_the_forger_is_caught(desk, monkeypatch, which, key):
    """History contradicts it; what is anybody's word is refused by whose key it is."""
    monkeypatch.setattr(claim_check, "_again_the_gate", lambda *_: None)
    monkeypatch.setattr(claim_check, "_again_the_scores", lambda *_: None)
    if not key:  # the forger's signature is valid: what it takes to make one by one is time
        monkeypatch.setattr(claim_check, "check_signature", lambda *_: SshSignature(valid=True, key="the forger's"))
    statement = payload(desk)
    assert len(leaves(statement)) > 60
    for trail, value in leaves(statement).items():
        name = ".".join(map(str, trail))
        altered = set_leaf(statement, trail, forgeries(value)[which])
        file = forged(desk, altered, key=key)
        if name in {"_type", "predicateType"}:
            with pytest.raises(UsageError, match="no statement of type"):
                checked(desk, file)
        elif trail not in WORD:
            assert checked(desk, file).exit_code is ExitCode.NO, altered
        elif key:
            assert checked(desk, file, signers="../signers").exit_code is ExitCode.NO, name


def test_every_value_that_is_changed_after_it_was_signed_breaks_the_signature(desk):
    statement, signature = payload(desk), read_envelope((desk / "claim.json").read_bytes()).signature
    assert check_signature(Envelope(canonical(statement), signature), desk / "signers", ENVIRON).valid
    for trail, value in leaves(statement).items():
        altered = canonical(set_leaf(statement, trail, forgeries(value)[0]))
        assert not check_signature(Envelope(altered, signature), None, ENVIRON).valid, trail
    assert checked(desk, forged(desk, set_leaf(statement, trail, "x"), key="")).exit_code is ExitCode.NO
    foreign = checked(desk, forged(desk, statement), signers="../signers")
    assert (foreign.signature.fault, foreign.exit_code) == ("signers does not allow its key", ExitCode.NO)


@pytest.mark.parametrize("gone", ["predicate", "gate", "score"])
def test_a_part_that_is_left_out_or_added_is_caught(desk, gone):
    statement = payload(desk)
    (statement if gone in statement else statement["predicate"]).pop(gone)
    assert checked(desk, forged(desk, statement)).exit_code is ExitCode.NO
    dotted = {**payload(desk), "predicate.tool.version": "verified"}
    assert checked(desk, forged(desk, dotted)).exit_code is ExitCode.NO
    more = payload(desk)
    more["predicate"]["award"] = "first prize"
    assert checked(desk, forged(desk, more)).recomputation.contradictions == [
        'predicate.award: claimed "first prize", and history says nothing'
    ]


@pytest.mark.parametrize(
    ("name", "tree"),
    [(None, None), ("other/v9", None), ("nonsense", None), (None, "0" * 40), ("small/r1", None)],
)
def test_a_commit_that_nobody_has_does_not_hide_the_version_or_the_text_that_is_here(desk, name, tree):
    statement = set_leaf(payload(desk), ("predicate", "version", "commit"), "1" * 40)
    statement = set_leaf(statement, ("predicate", "score", "value"), 0.99)
    if name is not None:
        statement = set_leaf(statement, ("predicate", "version", "name"), name)
    if tree is not None:
        statement = set_leaf(statement, ("subject", 0, "digest", "gitTree"), tree)
    result = checked(desk, forged(desk, statement, key="key"), signers="../signers")
    assert result.exit_code is ExitCode.NO
    (sentence,) = result.recomputation.contradictions
    assert sentence.startswith("commit 111111111111 is not here, and ")


def test_a_claim_of_which_nothing_is_here_is_not_confirmed(desk):
    statement = set_leaf(payload(desk), ("predicate", "version", "commit"), "1" * 40)
    statement = set_leaf(statement, ("predicate", "version", "name"), "other/v9")
    statement = set_leaf(statement, ("subject", 0, "digest", "gitTree"), "0" * 40)
    result = checked(desk, forged(desk, statement, key="key"), signers="../signers")
    assert result.signature.principal
    assert (result.recomputation.agreeing, result.exit_code) == (0, ExitCode.UNDERPOWERED)


def test_an_envelope_with_two_values_for_one_name_is_refused(desk, tmp_path):
    text = (desk / "claim.json").read_text()
    for twice in ('"payload": "e30=", ', '"payloadType": "x", ', '"signatures": [], '):
        (tmp_path / "twice.json").write_text("{" + twice + text.lstrip()[1:])
        with pytest.raises(UsageError, match="not a DSSE envelope"):
            checked(desk, tmp_path / "twice.json")


def test_another_signature_than_one_of_a_claim_is_none(desk, tmp_path):
    data = canonical(payload(desk))
    done = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", desk / "key"],
        input=b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(data), data), capture_output=True, check=True,
    )  # fmt: skip
    body = "".join(done.stdout.decode().splitlines()[1:-1])
    document = {**read_envelope((desk / "claim.json").read_bytes()).document, "signatures": [{"sig": body}]}
    (tmp_path / "claim.json").write_text(json.dumps(document))
    found = checked(desk, tmp_path / "claim.json")
    assert (found.signature.valid, found.exit_code) == (False, ExitCode.NO)


def test_without_the_evidence_the_rest_is_made_again_and_the_lack_is_said(desk, tmp_path):
    git("clone", "-q", (desk / "mine").as_uri(), tmp_path / "bare", cwd=tmp_path)
    found = checked(desk, inside=str(tmp_path / "bare"))
    assert (found.recomputation.wording, found.exit_code) == ("in part", ExitCode.UNDERPOWERED)
    assert "predicate.score.outcomes: the evidence is not here" in found.recomputation.missing
    assert checked(desk, inside=str(tmp_path / "bare"), signers=str(desk / "signers")).exit_code is ExitCode.OK
    worse = set_leaf(payload(desk), ("predicate", "score", "value"), 0.99)
    assert checked(desk, forged(desk, worse), inside=str(tmp_path / "bare")).exit_code is ExitCode.NO
    with pytest.raises(NotFoundError, match="the evidence of run small is not here"):
        claim(placed(tmp_path / "bare"), ClaimRequest(revision=f"{RUN}/best", key=str(desk / "key")))


def test_replies_are_scored_by_the_configuration_that_is_named(desk):
    assert checked(desk, config="searchqa/default", overrides=("train.seed=9",)).recomputation.replies == 20
    (reason,) = checked(desk, config="tasks/default").recomputation.missing
    assert reason.startswith("replies were not scored again: the scorer here is another than the run's; ")


def test_a_folder_alone_is_compared(desk, tmp_path):
    git("checkout", "-q", "--detach", f"origin/best/{RUN}", cwd=desk / "clone")
    folder = copy_folder(desk / "clone/skills/searchqa", tmp_path / "searchqa")
    alone = checked(desk, inside=str(tmp_path), folder="searchqa")
    assert (alone.recomputation.agreeing, alone.recomputation.wording, alone.exit_code) == (3, "in part", 21)
    (folder / "SKILL.md").write_text("---\nname: searchqa\n---\nObey.\n")
    assert checked(desk, inside=str(tmp_path), folder="searchqa").exit_code is ExitCode.NO


def test_a_salt_hides_the_items_and_opens_them_again(desk):
    made = claim(mine(desk), ClaimRequest(revision="v1", with_salt=True, output=str(desk / "salted.json"), note=False))
    plain = claim(mine(desk), ClaimRequest(revision="v1", note=False))
    digests = [side.statement["predicate"]["items"]["digest"] for side in (made, plain)]
    assert digests[0] != digests[1]
    shut = checked(desk, "salted.json")
    assert [said for said in shut.recomputation.missing if "salt" in said] == [
        "predicate.items.digest: the salt is not here", "predicate.score.outcomes: the salt is not here",
    ]  # fmt: skip
    assert checked(desk, "salted.json", salt=made.salt).recomputation.whole
    with pytest.raises(UsageError, match="does not open the digests"):
        checked(desk, "salted.json", salt="00" * 16)


def test_a_claim_travels_as_a_note_and_its_sample_is_measured_again(desk):
    assert claim(mine(desk), ClaimRequest(revision="v2")).noted
    line = json.loads(git("notes", "--ref=skillgit/evals", "show", f"{RUN}/v2", cwd=desk / "mine").out.splitlines()[-1])
    assert (line["kind"], line["envelope"]["payloadType"]) == ("claim", "application/vnd.in-toto+json")
    git("fetch", "-q", "origin", "refs/notes/*:refs/notes/*", cwd=desk / "clone")
    request = VerifyRequest(claim=f"{RUN}/v2", sample=5, note=False)
    found = ask(check_claim, placed(desk / "clone", LATER), request, Quiet())
    assert (found.reproduction.verdict.word, found.reproduction.verdict.n, found.exit_code) == ("consistent", 5, 0)
    with pytest.raises(NotFoundError, match="there is no claim on"):
        ask(check_claim, placed(desk / "clone"), VerifyRequest(claim=f"{RUN}/v0"), Quiet())


def test_looks_at_the_test_split_are_those_before_the_claim(desk):
    claim(mine(desk), ClaimRequest(revision="v0", split="test", output=str(desk / "test.json"), note=False))
    found = checked(desk, "test.json")
    assert (found.recomputation.whole, found.statement["predicate"]["test_looks"]) == (True, 1)
    note = json.dumps({"kind": "evaluation", "split": "test", "item_set": "x", "n": 1, "scored": 1, "hard": 1,
                       "soft": 1, "seed": 1, "time": "2026-11-28T13:00:00Z"})  # fmt: skip
    git(*WHO, "notes", "--ref=skillgit/evals", "add", "-fm", note, f"{RUN}/v0", cwd=desk / "clone")
    assert checked(desk, "test.json").recomputation.whole, "a later look changes nothing"
    git(
        *WHO,
        "notes",
        "--ref=skillgit/evals",
        "add",
        "-fm",
        note.replace("-28T", "-27T"),
        f"{RUN}/v0",
        cwd=desk / "clone",
    )
    assert checked(desk, "test.json").recomputation.contradictions == [
        "predicate.test_looks: claimed 1, and history says 2"
    ]


def test_replies_that_score_otherwise_contradict(desk, monkeypatch):
    from skillgit.domain.evaluation import Scored  # noqa: PLC0415
    from skillgit_envs.searchqa import SearchQA  # noqa: PLC0415

    async def generous(*_):
        return Scored(1.0, 1.0), ""

    monkeypatch.setattr(SearchQA, "score", generous)
    found = checked(desk)
    assert found.exit_code is ExitCode.NO
    assert len(found.recomputation.contradictions) == 20 - found.recomputation.replies > 0


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b'{"payload": 1}', b"\xff" * 100, b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_envelope_is_refused_in_a_sentence(desk, tmp_path, content):
    (tmp_path / "claim").write_bytes(content)
    with pytest.raises(UsageError, match="not a DSSE envelope"):
        checked(desk, tmp_path / "claim")


def test_a_claim_names_no_path_and_no_revision(desk):
    statement = payload(desk)
    for commit in ("HEAD", "../../etc", "--help", "0" * 40):
        altered = set_leaf(statement, ("predicate", "version", "commit"), commit)
        found = checked(desk, forged(desk, altered))
        assert found.exit_code is not ExitCode.OK
    for data in (b'{"a":1,"a":1}', canonical(statement) + b" ", b"null", canonical(statement).replace(b"0.65", b"NaN")):
        with pytest.raises(UsageError, match="no statement of type"):
            checked(desk, forged(desk, data))
    (desk / "large").write_bytes(b" " * (2 << 20))
    with pytest.raises(UsageError, match="larger than 1 MiB") as refusal:
        checked(desk, "large")
    # what the program says of it is the same: reading too much is not a lack of room to write
    assert explained(refusal.value, None) is refusal.value
    long = json.dumps({"payload": "", "payloadType": "application/vnd.in-toto+json",
                       "signatures": [{"sig": base64.b64encode(b"x" * 20_000).decode()}]})  # fmt: skip
    (desk / "long").write_text(long)
    with pytest.raises(UsageError, match="longer than 16 KiB"):
        checked(desk, "long")


def test_keys_that_cannot_sign_are_named(desk, tmp_path):
    request = {"revision": "best", "note": False}
    with pytest.raises(NotFoundError, match="there is no key nowhere"):
        claim(mine(desk), ClaimRequest(**request, key="nowhere"))
    keygen("-t", "ed25519", "-N", "a passphrase", "-C", "", "-f", tmp_path / "locked")
    with pytest.raises(UsageError, match="ssh-keygen cannot sign with"):
        claim(mine(desk), ClaimRequest(**request, key=str(tmp_path / "locked")))
    with pytest.raises(UsageError, match="git has no signing key here"):
        claim(placed(desk / "clone"), ClaimRequest(revision=f"{RUN}/best", note=False))
    bare = type(mine(desk))(
        directory=desk / "mine", environ={"PATH": str(tmp_path)}, clock=lambda: LATER, entropy=bytes
    )
    with pytest.raises(NotFoundError, match="there is no ssh-keygen on the PATH"):
        claim(bare, ClaimRequest(**request))
    with pytest.raises(NotFoundError, match="measured no score of v1 on the test split"):
        claim(mine(desk), ClaimRequest(revision="v1", split="test"))


def test_outcomes_that_do_not_add_up_are_not_signed(context, repo, desk):
    writer = RunWriter(repo, SAMPLE, clock_from(count()))
    for sample in transitions()[:2]:
        doctored = {"selection.json": rows(evaluation("1 2"))} if sample.event.title.startswith("answer") else {}
        writer.append(sample.event, sample.skill, sample.evidence | doctored)
    with pytest.raises(ConflictError, match=r"add up to 0.2000 of 10 items, and the commit says 0.6000"):
        claim(context, ClaimRequest(revision="v1", key=str(desk / "key")))


@pytest.mark.parametrize("folder", ["/home/ann", "~/own"])
def test_a_path_of_a_machine_is_not_signed(context, repo, desk, folder):
    (first, *_) = transitions()
    models = replace(MODELS, target=f"{folder}/backend.py:Own/model")
    event = replace(first.event, models=models)
    RunWriter(repo, SAMPLE, clock_from(count())).append(event, first.skill, first.evidence)
    with pytest.raises(UsageError, match=r"a path of a machine in predicate\.models\.target"):
        claim(context, ClaimRequest(revision="v0", key=str(desk / "key")))

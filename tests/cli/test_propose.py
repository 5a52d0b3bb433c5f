"""What ``propose`` prints and exits with."""

from __future__ import annotations

import json

import pytest

from skillgit.app.proposals.proposal import MeasuredGain, ProposeReport, SkillProposal, Upshot, exit_code
from skillgit.domain.cost import Caps, Cost
from skillgit.errors import ExitCode

GAIN = MeasuredGain(
    split="test", metric="hard", policy="paired", alpha=0.05, n=25, before=0.4, after=0.72, delta=0.32,
    interval=(0.12, 0.52), p=0.0107,
)  # fmt: skip
TOWN = SkillProposal(
    skill="skills/town", answer=Upshot.PROPOSED, base="a" * 40, run="town-propose-0a1b2c3d", version=3, gain=GAIN,
    branch="propose/town", commit="b" * 40, cost=Cost(calls=90, tokens_in=9000, tokens_out=800, usd=0.5),
)  # fmt: skip
LAKE = SkillProposal(
    skill="skills/lake", answer=Upshot.FAILED, sentence="the provider is away", hint="try again",
    error=ExitCode.SERVICE,
)  # fmt: skip
TEXT = """\
skills/town  proposed
hard    .7200, was .4000
gain    +.3200, 95 % +.1200 to +.5200, p 0.0107 one-sided, 25 test items
gate    paired at 0.05
run     town-propose-0a1b2c3d · v3 · from aaaaaaa
branch  propose/town · bbbbbbb
cost    90 calls · 9000 in · 800 out · $0.50
next    git diff main...propose/town
        skillgit propose --pull-request, or: git push REMOTE propose/town; gh pr create --head propose/town --fill

skills/lake  failed
the provider is away
next    try again
"""


def report(*proposals):
    cost = sum((proposal.cost for proposal in proposals), Cost())
    return ProposeReport(base="main", proposals=proposals, cost=cost, exit_code=exit_code(proposals))


def test_each_skill_has_its_answer_and_what_to_do_next(skillgit, fake):
    calls = fake("proposals.propose.propose", report(TOWN, LAKE))
    ended = skillgit("propose", "town", "lake", "--max-usd", "2", "-o", "train.seed=7", "-q")
    assert (ended.code, ended.text) == (ExitCode.SERVICE, TEXT)
    request = calls[0][0]
    assert (request.skills, request.caps, request.overrides) == (("town", "lake"), Caps(max_usd=2.0), ("train.seed=7",))
    assert (request.base, request.branch, request.pull_request) == ("", "", False)


def test_the_document_has_all_of_it(skillgit, fake):
    fake("proposals.propose.propose", report(TOWN))
    document = json.loads(skillgit("propose", "--json", "-q").out)
    assert (document["schema"], document["exit_code"]) == ("skillgit.propose/1", 0)
    (proposal,) = document["proposals"]
    assert (proposal["answer"], proposal["gain"]["interval"], proposal["error"]) == ("proposed", [0.12, 0.52], 0)


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ((Upshot.NOTHING_NEW,), ExitCode.OK),
        ((Upshot.NOTHING_NEW, Upshot.NO_BETTER), ExitCode.NO),
        ((Upshot.NO_BETTER, Upshot.CANNOT_TELL), ExitCode.UNDERPOWERED),
        ((Upshot.BEHIND,), ExitCode.NO),
        ((Upshot.CANNOT_TELL, Upshot.STANDS), ExitCode.OK),
        ((Upshot.FAILED, Upshot.PROPOSED), ExitCode.SERVICE),
    ],
)
def test_the_code_is_that_of_an_error_then_of_the_best_answer(answers, code):
    errors = {Upshot.FAILED: ExitCode.SERVICE}
    proposals = [SkillProposal(skill="", answer=answer, error=errors.get(answer, ExitCode.OK)) for answer in answers]
    assert exit_code((*proposals,)) is code

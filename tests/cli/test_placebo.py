from __future__ import annotations

from dataclasses import replace

from test_train import TRAINED

from skillgit.domain.placebo import Placebo


def test_the_option_is_an_override_like_any_other(skillgit, fake):
    calls = fake("train.train.train", TRAINED)
    skillgit("train", "demo", "-o", "train.num_epochs=2", "-o", "train.placebo=5")
    assert calls[0][0].overrides == ("train.num_epochs=2", "train.placebo=5")


def test_train_tells_the_rate(skillgit, fake):
    fake("train.train.train", replace(TRAINED, placebo=Placebo(n=8, accepted=1)))
    assert "placebo  1 of 8 no-op candidates accepted, rate 0.12\n" in skillgit("train", "demo").text

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train

from skillgit.domain.evaluation import Split
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Image, Reply, Usage
from skillgit.plugin.conformance import check_environment
from skillgit_envs.docvqa import DocVQA

if TYPE_CHECKING:
    from pathlib import Path


class Says:
    def __init__(self, text: str) -> None:
        self.text = text
        self.heard: list = []

    async def chat(self, messages, tools=()):
        assert not tools
        self.heard = list(messages)
        return Reply(text=self.text, usage=Usage(tokens_in=1, tokens_out=1))


def test_the_page_stands_behind_the_question(tmp_path: Path):
    environment = DocVQA({"image_detail": "high"}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    target = Says("<answer>4471</answer>")
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), target))
    image = target.heard[1].parts[1]
    assert isinstance(image, Image)
    assert (image.media_type, image.detail) == ("image/png", "high")
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    assert trajectory.turns[0].content.endswith("[1 picture]"), "the optimizer is told that there was one"
    scored, said = asyncio.run(environment.score(item, trajectory, target))
    assert (scored.hard, scored.soft, said) == (1.0, 1.0, 'correct: "4471"')


def test_a_page_that_has_gone_is_a_fault_and_not_a_wrong_answer(tmp_path: Path):
    (tmp_path / "page.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    rows = [{"id": str(n), "question": f"{n}?", "image": "page.png", "answers": ["x"]} for n in range(20)]
    (tmp_path / "items.json").write_text(json.dumps(rows))
    environment = DocVQA({"data_path": "items.json"}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    (tmp_path / "page.png").unlink()
    with pytest.raises(EnvironmentFaultError, match=r"picture page\.png cannot be read"):
        asyncio.run(environment.rollout(item, environment.seed_skill(), Says("")))


@pytest.mark.slow
def test_pages_go_over_the_wire(tmp_path: Path):
    said = (("You answer questions about the picture", "<answer>2</answer>"),)
    repository, asked = train(tmp_path, "docvqa", scripted=said, keep=True)
    pictures = [
        part
        for entry in asked
        if entry.role == "target"
        for message in entry.document["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]
    assert pictures
    assert all(part["image_url"]["url"].startswith("data:image/png;base64,") for part in pictures)
    assert events(repository)[0]["kind"] == "run-finished"


def test_the_environment_keeps_every_promise(tmp_path: Path):
    check_environment(
        DocVQA,
        root=tmp_path,
        answers=lambda item: f"<answer>{item.content['answers'][0]}</answer>",
        scoring_options={"image_detail": "low"},
    )

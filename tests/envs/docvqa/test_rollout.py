from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train
from saying import Repeats
from wire.scripted import TARGET
from wire.training import course

from skillgit.domain.evaluation import Split
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Image
from skillgit_envs.docvqa import DocVQA

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_stands_behind_the_question(tmp_path: Path):
    environment = DocVQA({"image_detail": "high"}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    target = Repeats("<answer>4471</answer>")
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), target))
    image = target.heard[-1][1].parts[1]
    assert isinstance(image, Image)
    assert (image.media_type, image.detail) == ("image/png", "high")
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    (picture,) = trajectory.turns[0].pictures
    assert picture == image.picture == environment.pictures(item)[0].picture, "the optimizer can be shown the same"
    assert trajectory.turns[0].text.endswith(picture.text)
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
        asyncio.run(environment.rollout(item, environment.seed_skill(), Repeats("")))


@pytest.mark.slow
def test_pages_go_over_the_wire(tmp_path: Path):
    edit = {"op": "append", "content": "- Copy what the page says.", "support": 1}
    patch = {"title": "copy", "reasoning": "It was not.", "edits": [edit], "findings": []}
    said = (("# Analyse failures", json.dumps(patch)), (TARGET, "<answer>2</answer>"))
    for name in ("seeing", "blind"):
        (tmp_path / name).mkdir()
    repository, asked = train(tmp_path / "seeing", "docvqa", scripted=said, keep=True)
    target, optimizer = (
        set().union(*(urls(entry) for entry in asked if entry.role == role)) for role in ("target", "optimizer")
    )
    assert optimizer
    assert optimizer <= target, "the optimizer sees what the target saw"
    assert all(url.startswith("data:image/png;base64,") for url in target)
    assert events(repository)[0]["kind"] == "run-finished"
    # A model without eyes is asked again without pictures, and learns the same from words.
    blind, asked = train(tmp_path / "blind", "docvqa", scripted=said, keep=True, blind="analyst")
    refused = [entry for entry in asked if entry.role == "optimizer" and urls(entry)]
    assert {entry.status for entry in refused} == {404}
    assert course(blind) == course(repository)


def urls(entry) -> set[str]:
    """Return the pictures in a question, as data URIs."""
    contents = [message["content"] for message in entry.document["messages"]]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return {part["image_url"]["url"] for part in parts if part["type"] == "image_url"}

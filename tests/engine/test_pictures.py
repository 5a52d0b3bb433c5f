"""Which pictures of its trajectories an analyst is shown."""

from __future__ import annotations

import base64
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Scored
from skillgit.domain.trajectory import Item, Rollout, Trajectory
from skillgit.engine.prompt_sections import with_pictures
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Image, Message, Text, system, user

GONE = 7
"""The picture that cannot be read any more."""


def image(number: int) -> Image:
    return Image(media_type="image/png", data=base64.b64encode(b"picture %d" % number).decode(), detail="low")


class Seen:
    """An environment whose items are about pictures, of which one has gone since."""

    def pictures(self, item):
        numbers = item.content["numbers"]
        if GONE in numbers:
            raise EnvironmentFaultError("a picture cannot be read")
        return [image(number) for number in numbers]


def session(most, environment):
    settings = SimpleNamespace(gradient=SimpleNamespace(max_pictures=most))
    return SimpleNamespace(task=SimpleNamespace(environment=environment), settings=settings)


def rollout(number, numbers, shown):
    item = Item(id=f"i{number}", content={"numbers": numbers})
    message = Message(role="user", parts=(Text(text="look"), *map(image, shown)))
    trajectory = Trajectory(item_id=item.id, turns=(message.turn(),), answer="")
    return Rollout(item=item, trajectory=trajectory, outcome=Scored(0.0, 0.0))


NUMBERS = st.lists(st.integers(0, 9), max_size=4, unique=True)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5), st.integers(0, 6))
def test_an_analyst_sees_what_was_shown_each_once_and_the_first_ones_of_all_before_the_second_of_any(pairs, most):
    rollouts = [rollout(number, *pair) for number, pair in enumerate(pairs)]
    messages = [system("analyse"), user("trajectories")]
    *before, last = with_pictures(session(most, Seen()), messages, rollouts)
    pictures = [part for part in last.parts if isinstance(part, Image)]
    available = [[n for n in numbers if n in shown] for numbers, shown in pairs if GONE not in numbers]
    queue = [row[place] for place in range(4) for row in available if place < len(row)]
    assert [part.picture for part in pictures] == [image(number).picture for number in dict.fromkeys(queue)][:most]
    assert all(part.is_optional and part.detail == "low" for part in pictures)
    assert before == messages[:1]
    assert last.text.startswith("trajectories")
    for picture in pictures:
        label = last.parts[last.parts.index(picture) - 1]
        assert label.text == f"\n{picture.picture.digest[:8]}:"
        assert any(picture.picture.text in turn.text for r in rollouts for turn in r.trajectory.turns)


def test_without_pictures_a_prompt_is_what_it_was():
    messages = [system("analyse"), user("trajectories")]
    assert with_pictures(session(4, object()), messages, [rollout(0, [1], [1])]) == messages
    assert with_pictures(session(4, Seen()), messages, [rollout(0, [1], [2])]) == messages
    assert with_pictures(session(0, Seen()), messages, [rollout(0, [1], [1])]) == messages

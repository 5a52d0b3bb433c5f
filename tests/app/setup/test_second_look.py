"""A server that was down when it was first looked at is looked at again, once it has answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from skillgit.app.setup.servers import check_servers, identified_routes
from skillgit.calls.ledger import Ledger
from skillgit.calls.route import Route
from skillgit.domain.served_model import ServedModel
from skillgit.errors import ConfigError, RetryableBackendError
from skillgit.plugin.backend import BackendInfo, ModelServer

AT = "http://127.0.0.1:8401/v1"
PLAIN = ServedModel(backend="b", model="m", address=AT)
FIRST = replace(PLAIN, facts=(("size", "1"),))
DOWN = None


class Server:
    """A backend whose server says what ``answers`` has, one for each look; None and nothing where it is down."""

    info = BackendInfo(name="b", summary="")

    def __init__(self, *answers: dict[str, object] | None) -> None:
        self.answers = list(answers)

    def server(self) -> ModelServer:
        return ModelServer(url=AT)

    async def served_facts(self, model: str) -> dict[str, object] | None:
        del model
        answer = self.answers.pop(0)
        if answer == {}:
            raise RetryableBackendError("it is down")
        return answer

    async def complete(self, request):
        raise NotImplementedError

    async def aclose(self) -> None: ...


def routes_of(backend: Server, folder: Path, *, recorded: bool) -> dict[str, Route]:
    path = folder / "ledger.db"
    with Ledger.open(path) as ledger:
        if recorded:
            ledger.record_served(FIRST, 1.0)
    route = Route(backend=backend, backend_name="b", model="m", server=PLAIN)
    return identified_routes({"target": route}, path, lambda _: None)


@pytest.mark.parametrize("down", [DOWN, {}], ids=["says nothing", "fails"])
@pytest.mark.parametrize(
    ("recorded", "later", "is_refused"),
    [
        (True, {"size": 1}, False),
        (True, {"size": 2}, True),
        (True, {"size": 1, "digest": "d"}, True),
        (True, DOWN, False),
        (False, {"size": 1}, True),  # what it answered may have been used as that of a server that says nothing
        (False, DOWN, False),
    ],
)
def test_what_it_was_taken_for_has_to_be_what_it_is(tmp_path, down, recorded, later, is_refused):
    routes = routes_of(Server(down, later), tmp_path, recorded=recorded)
    server = routes["target"].server
    assert (server.is_assumed, server.facts) == (True, FIRST.facts if recorded else ())
    if not is_refused:
        asyncio.run(check_servers(routes))
        return
    with pytest.raises(ConfigError) as error:
        asyncio.run(check_servers(routes))
    was_known = "serves another model than when it was last looked at" in error.value.message
    assert was_known is recorded
    assert error.value.hint.startswith("type the command again")


def test_a_server_that_answered_at_first_is_not_asked_again(tmp_path):
    backend = Server({"size": 1})
    asyncio.run(check_servers(routes_of(backend, tmp_path, recorded=True)))
    assert backend.answers == []

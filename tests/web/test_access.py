from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from stat import S_IMODE

import httpx2
import pytest
from once import copy_folder
from program import git, new_repository, skillgit
from serving import serving

from skillgit.app.workspace import invitations
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import Role
from skillgit.errors import ConflictError, UsageError
from skillgit.web.access import STREAMS, Gatekeeper, Names, RefusedError
from skillgit.web.application import Broadcast

NAMES = Names(
    hosts=frozenset({"127.0.0.1:7421"}), origins=frozenset({"http://127.0.0.1:7421"}), link="http://127.0.0.1:7421"
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return new_repository(tmp_path_factory.mktemp("served") / "repository")


@pytest.fixture(scope="module")
def server(repository):
    with serving(repository) as server:
        yield server


@pytest.fixture
def context(repository, tmp_path):
    copy = copy_folder(repository, tmp_path / "copy")
    numbers = iter(range(256))
    return Context(
        directory=copy,
        environ={},
        clock=lambda: datetime(2026, 11, 25, tzinfo=UTC),
        entropy=lambda length: bytes([next(numbers)]) * length,
    )


def test_a_link_leaves_no_token_in_the_address(server):
    first = httpx2.get(f"{server.link}&page=2".replace("/?", "/activity?"), follow_redirects=False)
    assert first.status_code == 303
    assert first.headers["location"] == "/activity?page=2"
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"skillgit-{server.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert first.headers["referrer-policy"] == "same-origin"


def test_a_link_never_leads_to_another_server(server):
    token = server.link.partition("token=")[2]
    for path in ("//evil.example/", "/%5C/evil.example", "///evil.example/%2e%2e"):
        answer = httpx2.get(f"{server.origin}{path}?token={token}", follow_redirects=False)
        assert not answer.headers["location"].startswith(("//", "/\\", "http")), path


def test_an_invitation_is_good_for_the_server_that_runs_until_it_is_revoked(repository, server):
    invited = json.loads(skillgit("serve", "--invite", "Ada", "--json", cwd=repository).out)
    assert invited["link"].startswith(f"{server.origin}/?token=")
    ada, owner = server.visitor(invited["link"]), server.visitor()
    assert ada.get("/").status_code == 200
    assert server.post(ada, "/revoke", name="Ada").status_code == 403
    listed = json.loads(skillgit("serve", "--tokens", "--json", cwd=repository).out)["tokens"]
    assert [(row["name"], row["role"]) for row in listed] == [("Ada", "viewer")]
    assert listed[0]["used"]
    assert "Ada" in owner.get("/activity").text
    assert skillgit("serve", "--tokens", cwd=repository).out.count("Ada") == 1
    skillgit("serve", "--revoke", "Ada", cwd=repository)
    assert ada.get("/").status_code == 403
    assert "no one has been invited" in skillgit("serve", "--tokens", cwd=repository).out


def test_a_page_is_shared_with_a_link_that_is_shown_once(repository, server):
    owner = server.visitor()
    shown = server.post(owner, "/invite", name="Grace", page="/activity?page=2").text
    link = re.search(r"http://[^<]*token=[\w-]+", shown)[0].replace("&amp;", "&")
    assert link.startswith(f"{server.origin}/activity?page=2&token=")
    assert "Make a link" not in server.visitor(link).get("/activity").text
    token = link.partition("token=")[2]
    assert token not in owner.get("/activity").text
    private = [path for path in (repository / ".git/skillgit/serve").iterdir() if path.is_file()]
    assert all(token.encode() not in path.read_bytes() for path in private)
    assert {S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert server.post(owner, "/revoke", name="Grace").status_code == 200


def test_a_form_is_that_of_its_visit(server):
    owner, other = server.visitor(), server.visitor()
    csrf = re.search(r'name="csrf" value="(\w+)"', other.get("/activity").text)[1]
    headers = {"origin": server.origin}
    assert owner.post("/revoke", data={"name": "x", "csrf": csrf}, headers=headers).status_code == 404
    for wrong in ("", csrf[:-1], "0" * 64):
        assert owner.post("/revoke", data={"name": "x", "csrf": wrong}, headers=headers).status_code == 403


def test_names_of_tokens_are_names(context):
    for name in ("", "owner", "-x", "<script>", "a" * 41, "a\nb", "../x"):
        with pytest.raises(UsageError):
            invitations.invite(context, name, Role.VIEWER)
    invitations.invite(context, "Ada", Role.VIEWER)
    with pytest.raises(ConflictError):
        invitations.invite(context, "Ada", Role.OPERATOR)


def test_an_open_stream_learns_that_its_token_was_revoked(context):
    keeper = Gatekeeper(context, NAMES)
    access = keeper.admit(invitations.invite(context, "Ada", Role.VIEWER))
    assert keeper.valid(access)
    invitations.revoke(context, "Ada")
    assert not keeper.valid(access)
    # nor does a link that is made anew for the same person bring it back
    invitations.invite(context, "Ada", Role.VIEWER)
    assert not keeper.valid(access)
    owner = keeper.admit(keeper.owner)
    assert keeper.valid(owner)
    keeper.end()
    assert not keeper.valid(owner)


def test_what_happens_after_a_revocation_is_not_sent():
    news = iter(range(100))
    allowed = [True]

    async def main() -> list[bytes]:
        broadcast = Broadcast(lambda: {"part": str(next(news))}, lambda: 0.0)
        sent = []
        async for data in broadcast.stream(lambda: allowed[0]):
            sent.append(data)
            allowed[0] = len(sent) < 3
        return sent

    assert len(asyncio.run(main())) == 3


def test_one_token_never_takes_all_streams(context):
    keeper = Gatekeeper(context, NAMES)
    owner, ada = keeper.admit(keeper.owner), keeper.admit(invitations.invite(context, "Ada", Role.VIEWER))
    slots = [keeper.stream_slot(ada) for _ in range(STREAMS // 2)]
    for slot in slots:
        slot.__enter__()
    with pytest.raises(RefusedError) as refused:
        keeper.stream_slot(ada).__enter__()
    assert (refused.value.status, refused.value.retry_after) == (503, 10)
    with keeper.stream_slot(owner):
        pass
    slots[0].__exit__(None, None, None)
    with keeper.stream_slot(ada):
        pass


def test_many_invite_at_once(context):
    def invite(number: int) -> str:
        return skillgit("serve", "--invite", f"friend {number}", cwd=context.directory).out

    with ThreadPoolExecutor(4) as pool:
        links = set(pool.map(invite, range(8)))
    assert len(links) == len(invitations.invitations(context)) == 8


def test_a_bare_repository_is_served(tmp_path, repository):
    git("clone", "--bare", "-q", repository, tmp_path / "bare.git", cwd=tmp_path)
    with serving(tmp_path / "bare.git") as server:
        assert server.visitor().get("/").status_code == 200

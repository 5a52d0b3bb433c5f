"""The skills extension (SEP-2640) as the protocol's own client sees it, with what a host checks of each answer."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import shutil
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import httpx2
import pygit2
import pytest
import yaml
from agent_of_history import with_agent
from hostile_run import write_hostile_run
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PaginatedRequestParams, Request, RequestParams
from program import SKILLGIT, git, skillgit, surroundings
from pydantic import BaseModel, ConfigDict, Field
from pygit2.enums import FileMode
from sample_run import PATH, write_run
from sample_run import RUN as SAMPLE
from trained_runs import RUN, user

from skillgit.mcp.server import http_server, link_of, listen, server_of

EXTENSION = "io.modelcontextprotocol/skills"
NAMES = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SkillResource(Strict):
    uri: str
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]


class Entry(Strict):
    uri: str
    frontmatter: dict[str, Any]
    resources: Annotated[list[SkillResource], Field(min_length=1, max_length=512)]


class Cached(Strict):
    meta: Annotated[dict[str, Any] | None, Field(alias="_meta")] = None
    resultType: Literal["complete"]  # noqa: N815 - the protocol's name
    ttlMs: Annotated[int, Field(ge=0)]  # noqa: N815
    cacheScope: Literal["public", "private"]  # noqa: N815


class Listed(Cached):
    skills: list[Entry]


class Got(Cached):
    skill: Entry


class Params(RequestParams):
    uri: str


async def listed(client: Client) -> list[Entry]:
    request = Request(method="skills/list", params=PaginatedRequestParams())
    return (await client.session.send_request(request, Listed)).skills


async def got(client: Client, uri: str) -> Entry:
    return (await client.session.send_request(Request(method="skills/get", params=Params(uri=uri)), Got)).skill


async def loaded(client: Client, entry: Entry) -> dict[str, bytes]:
    """Return the files of a skill, read and checked as a host must before it uses them."""
    root = entry.uri.removesuffix("/SKILL.md")
    assert NAMES.fullmatch(entry.frontmatter["name"])
    assert root.rpartition("/")[2] == entry.frontmatter["name"]
    assert entry.frontmatter["description"]
    assert [row.uri for row in entry.resources].count(entry.uri) == 1
    files = {}
    for row in entry.resources:
        (part,) = (await client.read_resource(row.uri)).contents
        content = base64.b64decode(part.blob) if hasattr(part, "blob") else part.text.encode()
        assert len(content) == row.size
        assert row.digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
        files[unquote(row.uri.removeprefix(f"{root}/"))] = content
    head = yaml.BaseLoader(files["SKILL.md"].decode().split("---\n")[1]).get_single_data()
    assert {key: str(value) for key, value in entry.frontmatter.items()} == {key: str(head[key]) for key in head}
    return files


async def refused(client: Client, method: str, uri: str) -> str:
    with pytest.raises(MCPError) as refusal:
        await (got(client, uri) if method == "skills/get" else client.read_resource(uri))
    assert refusal.value.code == INVALID_PARAMS, refusal.value
    return refusal.value.message


async def every_skill(client: Client) -> list[dict[str, bytes]]:
    assert client.server_capabilities.extensions == {EXTENSION: {}}
    assert client.server_capabilities.resources is not None
    return [await loaded(client, entry) for entry in await listed(client)]


def test_a_client_finds_and_loads_the_best_version(trained):
    async def play(agent):
        (files,) = await every_skill(agent.client)
        (resource,) = (await agent.client.list_resources()).resources
        templates = (await agent.client.list_resource_templates()).resource_templates
        (entry,) = await listed(agent.client)
        assert await got(agent.client, resource.uri) == entry
        return files, resource, [template.uri_template for template in templates]

    files, resource, templates = with_agent(user(trained), play)
    assert files == {"SKILL.md": skillgit("show", "best:SKILL.md", cwd=trained).bytes}
    assert (resource.uri, resource.name, resource.mime_type) == (
        "skill://searchqa/SKILL.md",
        "searchqa",
        "text/markdown",
    )
    assert resource.size == len(files["SKILL.md"])
    assert resource.description in files["SKILL.md"].decode()
    assert "skill://{+path}" in templates


@pytest.mark.parametrize("revision", ["v0", "best", f"{RUN}/v0", f"{RUN}/best"])
def test_every_version_is_served_behind_its_name(revision, trained):
    async def play(agent):
        entry = await got(agent.client, f"skill://{revision}/searchqa/SKILL.md")
        return await loaded(agent.client, entry)

    files = with_agent(user(trained), play)
    assert files["SKILL.md"] == skillgit("show", f"{revision}:SKILL.md", cwd=trained).bytes


def test_a_promoted_version_is_served_before_the_best(trained, tmp_path):
    repository = shutil.copytree(trained, tmp_path / "repository")
    skillgit("promote", "v0", "--release", "1.2.0", cwd=repository)

    async def play(agent):
        return await every_skill(agent.client)

    (files,) = with_agent(user(repository), play)
    assert files["SKILL.md"] == git("show", "main:skills/searchqa/SKILL.md", cwd=repository).out.encode()
    assert b"1.2.0" in files["SKILL.md"]


OF_ONE = [
    "skill://searchqa/NOTES.md",
    "skill://searchqa/../SKILL.md",
    "skill://searchqa",
    "skill://other/SKILL.md",
    f"skill://{RUN}/v99/searchqa/SKILL.md",
    f"skill://{RUN}/v0/other/SKILL.md",
    "skill://nope/v0/searchqa/SKILL.md",
    "skill://main/searchqa/SKILL.md",
    "skill://%00/SKILL.md",
    "skill://" + "x" * 10_000,
    "skill://",
]


def test_what_is_not_served_is_refused_by_the_code_of_the_protocol(trained):
    async def play(agent):
        return [
            await refused(agent.client, method, uri) for uri in OF_ONE for method in ("skills/get", "resources/read")
        ]

    for sentence in with_agent(user(trained), play):
        assert "\nhint: " in sentence
        assert "Traceback" not in sentence
        assert len(sentence) < 400


def test_a_rejected_candidate_is_not_served(repo):
    write_run(repo)

    async def play(agent):
        assert [entry.uri for entry in await listed(agent.client)] == ["skill://demo/SKILL.md"]
        return await refused(agent.client, "skills/get", f"skill://{SAMPLE}/r2/demo/SKILL.md")

    assert "is not a version" in with_agent(user(repo.workdir), play)


def test_a_skill_with_hidden_characters_is_not_served(repo):
    write_hostile_run(repo)

    async def play(agent):
        assert await listed(agent.client) == []
        assert (await agent.client.list_resources()).resources == []
        return await refused(agent.client, "resources/read", "skill://demo/SKILL.md")

    assert "holds the hidden character" in with_agent(user(repo.workdir), play)


HEAD = "name: demo\ndescription: Answer."
UNFIT = {
    "holds what looks like a credential": {"key.txt": "token = ghp_0123456789abcdefghijABCDEFGHIJ012345\n"},
    "has the name 'other'": {"SKILL.md": f"---\n{HEAD.replace('demo', 'other')}\n---\nx\n"},
    "has no frontmatter": {"SKILL.md": "x\n"},
    "holds what JSON cannot": {"SKILL.md": f"---\n{HEAD}\nratio: .nan\n---\nx\n"},
    "uses an anchor": {"SKILL.md": f"---\n{HEAD}\na: &a [x, x]\nb: [*a, *a]\n---\nx\n"},
    "more than clients take": {f"data/{number}.txt": "x" for number in range(512)},
}
FIT = {
    "dates and numbers": {"SKILL.md": f"---\n{HEAD}\nlicense: MIT\nmade: 2026-11-01\ntries: 3\n---\nx\n"},
    "folders and strange names": {"references/a b#c%20.md": "# x\r\n", "scripts/run.py": "print(1)\n"},
    "bytes": {"assets/dot.png": b"\x89PNG\r\n\x1a\n\x00\xff"},
    "a skill in a skill": {"skills/demo/SKILL.md": f"---\n{HEAD}\n---\ninner\n"},
}


def written(repo, files) -> Any:
    """Return a user of a repository whose promoted skill has ``files`` besides."""
    (*_, tip) = write_run(repo)
    index = pygit2.Index()
    index.read_tree(repo.commit(tip.commit).tree)
    for name, content in files.items():
        blob = repo.raw.create_blob(content if isinstance(content, bytes) else content.encode())
        index.add(pygit2.IndexEntry(f"{PATH}/{name}", blob, FileMode.BLOB))
    ada = pygit2.Signature("Ada", "ada@example.org")
    message = f"x\n\nSkillgit-Promoted: {SAMPLE}/v3"
    repo.raw.create_commit("refs/heads/main", ada, ada, message, index.write_tree(repo.raw), [])
    return user(repo.workdir)


@pytest.mark.parametrize("reason", UNFIT)
def test_what_a_client_could_not_load_is_left_out_and_says_why(reason, repo):
    async def play(agent):
        assert await listed(agent.client) == []
        return await refused(agent.client, "skills/get", "skill://demo/SKILL.md")

    assert reason in with_agent(written(repo, UNFIT[reason]), play)


@pytest.mark.parametrize("kind", FIT)
def test_every_file_of_a_skill_is_served_byte_for_byte(kind, repo):
    async def play(agent):
        (files,) = await every_skill(agent.client)
        (entry,) = await listed(agent.client)
        others = [row.uri for row in entry.resources if row.uri != entry.uri]
        return files, entry, [await refused(agent.client, "skills/get", uri) for uri in others]

    files, entry, refusals = with_agent(written(repo, FIT[kind]), play)
    for name, content in FIT[kind].items():
        assert files[name] == (content if isinstance(content, bytes) else content.encode())
    if kind == "dates and numbers":
        assert (entry.frontmatter["made"], entry.frontmatter["tries"]) == ("2026-11-01", 3)
    assert all("hint: the skill is skill://demo/SKILL.md" in sentence for sentence in refusals)


def test_where_no_repository_is_there_are_no_skills(tmp_path):
    async def play(agent):
        return await listed(agent.client), (await agent.client.list_resources()).resources

    assert with_agent(user(tmp_path), play) == ([], [])


def test_the_extension_is_the_same_on_stdio_and_over_http(trained):
    words = [*SKILLGIT[1:], "-C", str(trained), "mcp"]

    async def on_stdio():
        async with Client(StdioServerParameters(command=SKILLGIT[0], args=words, env=surroundings())) as client:
            return await every_skill(client)

    async def over_http():
        with listen(0) as listener:
            link, server = link_of(listener), http_server(server_of(user(trained)), listener)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            async with Client(link) as client:
                skills = await every_skill(client)
            async with httpx2.AsyncClient(headers={"accept": "application/json, text/event-stream"}) as plain:
                request = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {}}
                answer = json.loads((await plain.post(link, json=request)).text)
            server.should_exit = True
            await serving
            return skills, answer

    skills, answer = asyncio.run(over_http())
    assert skills == asyncio.run(on_stdio())
    assert [row["uri"] for row in answer["result"]["skills"]] == ["skill://searchqa/SKILL.md"]

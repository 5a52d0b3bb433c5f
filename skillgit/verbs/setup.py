"""This machine, a configuration, and what is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

from skillgit.app.workspace.request import (
    Arg,
    Capped,
    MisuseError,
    OfSkill,
    Opt,
    Overrides,
    given,
    option_of,
    refuse_without,
)
from skillgit.lazy import loaded_on_use
from skillgit.verbs.measuring import planned
from skillgit.verbs.verb import DOCUMENT, LIST, Answer, Effect, Form, TerminalSession, Verb, VerbSession
from skillgit.view.json_values import plain_value
from skillgit.view.lists import LISTS
from skillgit.view.surface import Screen, Style
from skillgit.view.text import table

if TYPE_CHECKING:
    from skillgit.app.setup.config.resolved import ConfigEntry

with loaded_on_use():
    from skillgit.app.setup import environment_profile, plan, plugins, skill_tasks
    from skillgit.app.sources import data_check, data_fetch
    from skillgit.app.train import doctor, local_servers
    from skillgit.app.workspace import skills_here
    from skillgit.view import setup as shown

Checkup: TypeAlias = "doctor.Checkup"


@dataclass(frozen=True, kw_only=True)
class ConfigRequest(OfSkill):
    """Each line can be given to train with -o. Where CONFIG names no data, they are the tasks of the skill."""

    config: Annotated[str, Arg("CONFIG", words="configs")]
    overrides: Overrides = ()
    show_origin: Annotated[bool, Opt("Show where each value comes from")] = False


def _config(session: VerbSession, request: ConfigRequest) -> Answer[object]:
    result = skill_tasks.load_for_skill(session.workspace, request.config, request.overrides)
    rows = [{"key": entry.key, "value": entry.value, "origin": str(entry.origin)} for entry in result.entries]
    return Answer(
        table=LISTS["config"],
        rows=[row | {"value": _value(row["value"])} for row in rows] if session.tabular else rows,
        result=result,
        lines=_settings(result.entries, session.screen, origins=request.show_origin),
        notes=[(note, "") for note in result.notes] if session.form is Form.TEXT else (),
    )


def _settings(entries: Sequence[ConfigEntry], screen: Screen, *, origins: bool) -> Iterator[str]:
    lines = [f"{entry.key}={_value(entry.value)}" for entry in entries]
    if not (origins and entries):
        yield from lines
        return
    origins_shown = [screen.paint(Style.FAINT, str(entry.origin)) for entry in entries]
    yield from table([*zip(origins_shown, lines, strict=True)], align="ll")


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(plain_value(value), ensure_ascii=False)


CONFIG = Verb("config", ConfigRequest, _config, forms=LIST)


@dataclass(frozen=True, kw_only=True)
class DoctorRequest(Capped, OfSkill):
    """Without CONFIG it looks at this machine only. With CONFIG, each model gets one tiny call: whether it answers and
    how fast, which variable its key comes from (never the key), whether tokens are counted, what they cost, and whether
    the longest prompt fits. Exits with 5 if a model cannot be called.

    Then it loads every item of CONFIG, or the tasks of the skill, and looks for what spoils a measurement: every fault
    of the files, not only the first, repeated ids and contents, items that are almost the same, answers of selection
    and test items in the seed skill or in train items, answers that score without the question, and the gain that a
    split of such a size can show. Exits with 1 if there is a fault; warnings leave it at 0.

    With --local, nothing needs to be configured: it asks the usual ports of this machine which programs serve models,
    which models they have, how long their context is, and whether they keep to JSON schemas, for which each loaded
    model gets one small question. Exits with 1 if no server answers.
    """

    config: Annotated[str | None, Arg("[CONFIG]", words="configs")] = None
    overrides: Overrides = ()
    call: Annotated[bool, Opt("Do not call models", "--no-call")] = True
    local: Annotated[
        bool, Opt("Find the servers of models on this machine instead: Ollama, LM Studio, llama.cpp, vLLM")
    ] = False
    ports: Annotated[
        tuple[int, ...], Opt("With --local: also look at this port; repeat it for more", "--port", least=1)
    ] = ()
    write: Annotated[
        str | None,
        Opt("With --local: write a configuration for what was found, based on CONFIG", metavar="FILE"),
    ] = None


def _doctor(session: TerminalSession, request: DoctorRequest) -> Answer[object]:
    if request.local:
        return _local(session, request)
    refuse_without(request, "local", "ports", "write")
    refuse_without(request, "config", "overrides")
    workspace, config, overrides, check = session.workspace, request.config, request.overrides, None
    if config is not None and not request.dry_run:
        with session.heartbeat() as watch:
            check = data_check.check_data(workspace, config, overrides, watch)
        if not check.splits:
            session.note("the models are not asked while items cannot be read")
            config, overrides = None, ()
    checkup = doctor.doctor(workspace, config, overrides, call=request.call, caps=request.caps, dry_run=request.dry_run)
    if isinstance(checkup, plan.Plan):
        return planned(session, checkup)
    session.note(*checkup.notes)
    document, lines = shown.checkup_document(checkup), shown.lines(checkup, session.screen)
    if check is None:
        return Answer("doctor/1", document, lines, exit_code=checkup.exit_code)
    return Answer(
        "doctor/1",
        {**document, "config": request.config, "data": shown.data_document(check)},
        (*lines, "", *shown.checked(check, session.screen), *shown.reasons(checkup, session.screen)),
        exit_code=checkup.exit_code or check.exit_code,
    )


def _local(session: TerminalSession, request: DoctorRequest) -> Answer[object]:
    for parameter in given(request):
        if parameter.name not in {"local", "call", "ports", "write", "config", "skill"}:
            raise MisuseError(f"{option_of(parameter)} cannot be combined with --local")
    refuse_without(request, "write", "config")
    result = local_servers.local_servers(
        session.context, ports=request.ports, ask=request.call, write=request.write or "", base=request.config or ""
    )
    if not result.servers:
        note = ("no server of models answers on this machine", local_servers.START)
    elif result.written:
        words = f"{quote(result.written)} {skills_here.skill_choice(session.workspace)}".strip()
        note = (f"wrote {result.written}", f"skillgit doctor {words}, then skillgit train {words}")
    else:
        note = ("", "skillgit doctor --local --write models.yaml makes a configuration of it")
    lines = shown.local_lines(result, session.screen)
    return Answer("doctor-local/1", result, lines, exit_code=result.exit_code, notes=[note])


def _doctor_effect(request: DoctorRequest) -> Effect:
    if request.write:
        return Effect.FILES
    return Effect.PAYS if request.config is not None and request.call else Effect.READS


DOCTOR = Verb("doctor", DoctorRequest, _doctor, _doctor_effect)


def _checkup(session: VerbSession, request: DoctorRequest) -> Answer[Checkup]:
    caps, call = request.caps, request.call
    result = doctor.doctor(session.workspace, request.config, request.overrides, call=call, caps=caps)
    return Answer(result=cast("Checkup", result))  # no dry run


CHECKUP = Verb("doctor", DoctorRequest, _checkup)
"""This machine and the models of a configuration, without its items, which may be many."""


@dataclass(frozen=True, kw_only=True)
class PluginsRequest:
    """NAME is one of the list, or path/to/file.py:Class. A backend is described by its settings, a strategy by what it
    does and the keys that it depends on. An environment is described by its scorers, what it needs and whether this
    machine has it, where its data come from, its options, an item, and the prompt that the target is sent for it. No
    model is called.

    With --fetch it writes the public data of environment NAME to the folder DIR, from a pinned commit where one is
    known; SOURCE.md in the folder names it. Revision, size and licence are shown first, and the same command continues
    an interrupted fetch. It needs a network and, for data on the Hugging Face hub, the extra 'data' of skillgit; where
    data cannot be fetched, it says what to place where. Exits with 2 without the extra, with 3 if there is no such data
    or no access to them, and with 5 if the host cannot be reached.
    """

    name: Annotated[str | None, Arg("[NAME]", words="plugins")] = None
    fetch: Annotated[Path | None, Opt("Write the public data of NAME to the new folder DIR", metavar="DIR")] = None
    subset: Annotated[
        str, Opt("With --fetch: other data of NAME than its main ones; see docs/benchmarks.md", metavar="SUBSET")
    ] = ""
    revision: Annotated[
        str, Opt("With --fetch: another commit of the public data than the pinned one", metavar="REV")
    ] = ""
    ids: Annotated[
        str,
        Opt(
            "With --fetch: only the items of this manifest, divided as it says: a folder, or reference for the"
            " reference's own split",
            metavar="MANIFEST",
        ),
    ] = ""


def _plugins(session: TerminalSession, request: PluginsRequest) -> Answer[object]:
    refuse_without(request, "fetch", "subset", "revision", "ids")
    refuse_without(request, "name", "fetch")
    context, screen, listing = session.context, session.screen, LISTS["plugins"]
    if request.name is None:
        entries = plugins.every_plugin(context)
        return Answer(table=listing, rows=entries, lines=shown.every_plugin(entries, screen))
    if request.fetch is None:
        entries = environment_profile.described(context, request.name)
        lines = (line for entry in entries for line in shown.plugin_lines(entry, screen))
        return Answer(table=listing, rows=entries, lines=lines)
    if session.form not in {Form.TEXT, *DOCUMENT}:
        raise MisuseError(f"--{session.form.value} lists plug-ins, and --fetch is one thing")
    selection = data_fetch.DataSelection(subset=request.subset, revision=request.revision, ids=request.ids)
    is_heard = session.form is Form.TEXT
    with session.watching("fetching") as watcher:
        dataset = data_fetch.fetch(
            context,
            request.name,
            selection,
            to=request.fetch,
            remark=watcher.remark if is_heard else _ignore,
            watch=watcher.progress if is_heard else _ignore,
        )
    return Answer("data-fetch/1", dataset, shown.fetched(dataset, screen))


def _ignore(_: object) -> None:
    """Hear nothing: the answer is for a program."""


PLUGINS = Verb(
    "plugins",
    PluginsRequest,
    _plugins,
    lambda request: Effect.READS if request.fetch is None else Effect.FILES,
    forms=LIST,
)

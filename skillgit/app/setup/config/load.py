"""Load a configuration: files, then overrides, then types."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from skillgit.app.setup.config import files
from skillgit.app.setup.config.aliases import REFERENCE_NAMES, canonical
from skillgit.app.setup.config.files import (
    DEFAULT,
    NESTED,
    PATHS,
    Layer,
    ValueOrigin,
    located,
    read_layers,
    read_overrides,
)
from skillgit.app.setup.config.resolved import SPELLED, ConfigEntry, ResolvedConfig, recorded_layer
from skillgit.app.setup.config.schema import NOT_KEYS, SECTIONS, Config, EnvSettings, ModelSettings, env_settings, keys
from skillgit.app.setup.config.typed_values import ROLES, belongs, near_setting, role_of, typed
from skillgit.app.setup.server_programs import COMPATIBLE, SERVERS
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.shipped_configurations import shipped_folder
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.untrusted.allowed_settings import RecordedSettings
from skillgit.domain.untrusted.file_names import shown
from skillgit.domain.untrusted.model_text import unstorable_place
from skillgit.errors import ConfigError, DataError, NotFoundError, UsageError
from skillgit.plugin.backend_settings import check_for_credentials, check_settings
from skillgit.plugin.environment import EnvironmentInfo, SourceKind
from skillgit.plugin.registry import BACKENDS, ENVIRONMENTS, environment_info, installed, load_backend
from skillgit.plugin.splits import OPTIONS as SPLIT_OPTIONS

_INERT = {
    "env.out_root": "the output of a run is the repository",
    "env.split_output_dir": "splits by ratio are computed, not written; a run records the ids of each split",
}
NAME_ONE = "name one with --config CONFIG"
_DATA = frozenset({"env.data_path", "env.split_dir"})
"""The keys that say where items are: the same items may be anywhere."""
_KEY = re.compile(r"[\w.:/-]{1,80}")
"""What a key looks like; a stranger's may hold anything."""
_NAMED = 5
"""How many keys a message names."""


def load_config(context: Context, name: str, overrides: Sequence[str] = ()) -> ResolvedConfig:
    """Return the configuration ``name``, a file or one of skillgit's, with ``section.key=value`` overrides."""
    # Later layers win: defaults, the files that a file is based on, the file, overrides in their order.
    directory = context.directory
    path = files.find(name, directory)
    root = directory if path.is_relative_to(shipped_folder().resolve()) else path.parent
    layers = [*read_layers(path, directory), *read_overrides(overrides, directory)]
    return _resolved(context, name, layers, path=path, root=root)


def load_recorded(
    context: Context, name: str, settings: RecordedSettings, overrides: Sequence[str] = (), *, hint: str = NAME_ONE
) -> ResolvedConfig:
    """Return the configuration that a run recorded, with ``overrides``; ``hint`` says how to name another one."""
    directory = context.directory
    layers = [recorded_layer(settings, name, directory), *read_overrides(overrides, directory)]
    try:
        config = _resolved(context, name, layers, path=directory / name, root=directory)
    except (ConfigError, NotFoundError) as error:
        if settings.refusals:  # what is wrong may be that something of it is left out
            raise _untrusted(name, settings, settings.refusals, directory, hint) from error
        raise
    entries = {entry.key: entry for entry in config.entries}
    refusals = [
        key
        for key, value in settings.refusals.items()
        if key not in entries or (entries[key].origin.kind != "override" and entries[key].value != value)
    ]
    if refusals:
        raise _untrusted(name, settings, refusals, directory, hint)
    return config


def _untrusted(name: str, settings: RecordedSettings, keys: Collection[str], root: Path, hint: str) -> UsageError:
    sentence = f"{name} was trained elsewhere, and its configuration sets {named_keys(keys)}, which only you may set"
    if any(key not in _DATA for key in keys):
        return UsageError(sentence, hint=f"look at it, then {hint}, or set those keys yourself with -o KEY=VALUE")
    options = " ".join(f"-o {key}=PATH" for key in sorted(keys))
    environment, fetching = str(settings.settings.get("env.name")), ""
    if environment in {plugin.name for plugin in installed(ENVIRONMENTS)}:
        public = environment_info(environment, root).public
        if public is not None and public.kind is not SourceKind.MANUAL:
            fetching = f"; skillgit plugins NAME --fetch DIR {environment} brings the public ones"
    return DataError(sentence, hint=f"say where its data are: {options}{fetching}")


def named_keys(keys: Collection[str]) -> str:
    """Return the first few of ``keys`` as they are in a sentence, and how many more there are."""
    names = (key if _KEY.fullmatch(key) else shown(key) for key in sorted(keys)[:_NAMED])
    return ", ".join(names) + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")


def _resolved(context: Context, name: str, layers: Sequence[Layer], *, path: Path, root: Path) -> ResolvedConfig:
    directory = context.directory
    _check_text(layers)
    backends = [plugin.name for plugin in installed(BACKENDS)]

    # The environment's own options are keys too, so it has to be known before keys can be checked.
    common, _ = _merged(layers, EnvSettings, backends)
    info = _environment(located(common, directory, context.environ)[0], root)
    shape = env_settings(info)

    layer, notes = _merged(layers, shape, backends)
    path_keys = frozenset(f"env.{option.name}" for option in info.options if option.path)
    more_paths = [*_paths_of_backends(layer, root, backends), *sorted(path_keys - set(PATHS))]
    absolute, more = located(layer, directory, context.environ, more_paths)
    values = typed(absolute, keys(shape), shape, backends)
    _check_backends(absolute, values, backends)
    _check_settings(absolute, values, list(keys(shape)), backends, root)
    _check_split_options(info, absolute, values)
    environment = values.env.model_dump()
    inert = [
        f"{leaf.origin}: {key} has no effect: {reason}"
        for key, reason in _INERT.items()
        if (leaf := absolute.get(key)) and leaf.text
    ]
    return ResolvedConfig(
        name=name,
        path=path,
        root=root,
        values=values,
        options={option.name: environment[option.name] for option in info.options},
        entries=tuple(_entries(values, layer)),
        notes=(*notes, *more, *inert, *_incomparable(info, layers, absolute)),
        path_keys=path_keys,
    )


def _incomparable(info: EnvironmentInfo, layers: Sequence[Layer], layer: Layer) -> Iterator[str]:
    """Explain for a configuration of the reference why its scores do not compare with the reference's."""
    # It does not choose the words: a run begun with it would not go on, and words alone make nothing comparable.
    defaults = {option.name: option.default for option in info.options}
    is_of_reference = any(key in REFERENCE_NAMES for names in layers for key in names)
    if is_of_reference and defaults.get("prompts") == "own" and "env.prompts" not in layer:
        scorer = " and env.scorer=skillopt" if "scorer" in defaults else ""
        yield f"env.prompts is own: scores compare with SkillOpt's under env.prompts=reference{scorer}"


def _check_text(layers: Sequence[Layer]) -> None:
    """Refuse what the command line could not decode, and half characters that YAML can escape: no commit holds them."""
    for layer in layers:
        for key, leaf in layer.items():
            if unstorable_place([key, leaf.text or "", leaf.value]) is not None:
                problem = f"{leaf.origin}: {key} holds text that is not UTF-8"
                raise ConfigError(problem, hint="write the value, or the path, in UTF-8")


def _merged(layers: Sequence[Layer], env: type[EnvSettings], backends: Sequence[str]) -> tuple[Layer, list[str]]:
    result: Layer = {}
    notes: list[str] = []
    for layer in layers:
        own, remarks = canonical(layer, list(keys(env)), backends)
        result.update(own)
        notes.extend(remarks)
    return result, notes


def _environment(layer: Layer, root: Path) -> EnvironmentInfo:
    leaf = layer.get("env.name")
    if leaf is None or not leaf.text:
        names = ", ".join(plugin.name for plugin in installed(ENVIRONMENTS))
        raise ConfigError("the configuration names no environment", hint=f"set env.name; installed: {names}")
    return environment_info(leaf.text, root)


def _paths_of_backends(layer: Layer, root: Path, backends: Sequence[str]) -> list[str]:
    keys_of_paths = []
    for role in ROLES:
        leaf = layer.get(f"model.{role}_backend")
        name = leaf.text if leaf is not None and leaf.text else ModelSettings.model_fields[f"{role}_backend"].default
        if name in backends:
            for path in load_backend(name, root).info.paths:
                keys_of_paths += [f"model.{prefix}_{path}" for prefix in (name, role, f"{role}_{name}")]
    return [key for key in dict.fromkeys(keys_of_paths) if key in layer]


def _check_backends(layer: Layer, values: Config, backends: Sequence[str]) -> None:
    for role in ("optimizer_backend", "target_backend", "judge_backend"):
        name = getattr(values.model, role)
        if name and name not in backends and ".py:" not in name:
            leaf = layer.get(f"model.{role}")
            where = f"{leaf.origin}: " if leaf else ""
            raise ConfigError(
                f"{where}model.{role} is '{name}', which is not installed", hint=_other_backend(name, backends)
            )


def _other_backend(name: str, backends: Sequence[str]) -> str:
    """Return the hint for the name of a backend that is not installed; people name their server instead."""
    server = SERVERS.get("".join(filter(str.isalnum, name.lower())))
    if server is not None:
        key = f"model.{COMPATIBLE}_base_url"
        return (
            f"did you mean '{COMPATIBLE}'? It asks {server.title} at {key}, as in -o {key}={server.address()}; "
            "skillgit doctor --local finds it"
        )
    return did_you_mean(name, backends, otherwise=f"installed: {', '.join(backends) or 'none'}")


def _check_settings(layer: Layer, values: Config, names: Sequence[str], backends: Sequence[str], root: Path) -> None:
    """Refuse a setting that its backend does not have; backends that list none look later.

    A file may bring settings of backends that no role asks, in words of another program's: they only hold no secret.
    """
    asked = {getattr(values.model, f"{role}_backend") or values.model.optimizer_backend for role in ROLES}
    for name in values.model.backend_settings:
        key = f"model.{name}"
        role = role_of(key)
        rest = name.removeprefix(f"{role}_") if role else name
        owner = belongs(f"model.{rest}", backends)
        backend = owner or getattr(values.model, f"{role}_backend") or values.model.optimizer_backend
        if backend not in backends or (settings := load_backend(backend, root).info.settings) is None:
            continue
        setting = rest.removeprefix(f"{owner}_") if owner else rest
        try:
            check_for_credentials(backend, f"model.{backend}_{setting}", layer[key].value)
            if backend in asked or layer[key].origin.kind != "file":
                check_settings(backend, settings, {setting: layer[key].value})
        except ConfigError as error:
            prefix = key.removesuffix(setting)
            message, hint = (text.replace(f"model.{backend}_", prefix) for text in (error.message, error.hint))
            if setting not in settings and not hint.startswith("did you mean"):
                near, _ = near_setting(key, names, backends, layer)
                hint = f"did you mean '{near}'?" if near else hint
            raise ConfigError(f"{layer[key].origin.place}: {message}", hint=hint) from error


def _check_split_options(info: EnvironmentInfo, layer: Layer, values: Config) -> None:
    """Refuse to pass over where the user's data is said to be."""
    option_names = {option.name for option in info.options}
    for option in SPLIT_OPTIONS:
        leaf = layer.get(f"env.{option.name}")
        if leaf and option.name not in option_names and getattr(values.env, option.name) != option.default:
            problem = f"{leaf.origin}: environment '{info.name}' does not use env.{option.name}"
            raise ConfigError(problem, hint=f"skillgit plugins {info.name}")


def _entries(values: Config, layer: Layer) -> Iterator[ConfigEntry]:
    for section in SECTIONS:
        # Each section dumps itself: the root knows only the common keys of env.
        for name, value in getattr(values, section).model_dump(mode="json").items():
            key = f"{section}.{name}"
            if key in NOT_KEYS:
                for part in value:
                    leaf = layer[f"{section}.{part}"]
                    yield ConfigEntry(key=f"{section}.{part}", value=leaf.value, origin=leaf.origin)
            elif key in NESTED and value:
                for part, setting in value.items():
                    yield ConfigEntry(key=f"{key}.{part}", value=setting, origin=_origin(f"{key}.{part}", layer))
            elif key in SPELLED and key in layer:
                yield ConfigEntry(key=key, value=layer[key].text, origin=layer[key].origin)
            else:
                yield ConfigEntry(key=key, value=value, origin=_origin(key, layer))


def _origin(key: str, layer: Layer) -> ValueOrigin:
    return layer[key].origin if key in layer else DEFAULT

"""From a YAML file and a command line to the settings of a run, or to one error that names everything that is wrong.

The steps are: YAML, today's spelling, flags over the file, behaviors merged over default_settings, validation.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import Diagnostic, KeyPath, SourceMap, one_of, own_and_inherited, visible
from rl_tui.engine.config.flags import flag_of, set_flags, settle_start
from rl_tui.engine.config.hyperparameters import is_trainer, trainer_names
from rl_tui.engine.config.imitated_paths import find_beside
from rl_tui.engine.config.legacy.modernize import modernize, read_document
from rl_tui.engine.config.origins import FILE, PRESET, Origins, origins_of, with_inherited
from rl_tui.engine.config.presets import is_preset
from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.types import read_settings
from rl_tui.engine.config.yaml_document import Document, write_yaml
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.process.files import open_regular

LARGEST_FILE = 16 * 2**20  # bytes
WHERE = "where"  # the key of a profile that no other file has: see profiles.py
_ONLY_PROFILES = "only profiles have it. `rl-tui --env gymnasium:ID --dry-run` prints the file that one makes"
_UPGRADE_HINT = ". `rl-tui upgrade-config IN OUT` rewrites the file"


def load_config(
    path: Path, overrides: Mapping[str, object] | None = None, name_of: Callable[[str], str] = flag_of
) -> RunConfig:
    """The settings in a file, with the command line's on top.

    overrides: values by dotted path (`env_settings.num_envs`); they win over the file, and messages call each by
    `name_of` its path, the command line's flag (`--num-envs`). Raises ConfigError with one line for everything that is
    wrong.
    """
    return parse_config(read_file(path), str(path), overrides, name_of)


def load_to_act(path: Path, overrides: Mapping[str, object] | None = None) -> RunConfig:
    """The settings in a run's own file, without what is not needed to act: writers and reward signals, whose packages
    may no longer be installed. overrides: see `load_config`. Raises ConfigError."""
    document = _whole_document(read_file(path, partial(open_regular, follows_links=True)), str(path))
    document.values.pop("writers", None)
    defaults = document.values.get("default_settings")
    sections = [section for _, section in _named_behaviors(document.values)]
    for section in (*sections, *([defaults] if isinstance(defaults, dict) else [])):
        section.pop("reward_signals", None)
    return read_document_settings(document, str(path), overrides or {}, flag_of, FILE)


def read_file(path: Path, opener: Callable[[str, int], int] | None = None) -> bytes:
    """The content of a file. Raises ConfigError when it cannot be read, or does not end."""
    place = visible(str(path.absolute()), limit=4096)
    try:
        with open(path, "rb", opener=opener) as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{place}: cannot be read: {visible(error.strerror or str(error))}") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{place}: must be a configuration of at most 16 MiB, got a larger file")
    return content


def parse_config(
    content: bytes,
    file: str,
    overrides: Mapping[str, object] | None = None,
    name_of: Callable[[str], str] = flag_of,
) -> RunConfig:
    """The settings in the content of a file; `file` is its name in messages. Raises ConfigError."""
    origin = PRESET if is_preset(file) else FILE
    return read_document_settings(_whole_document(content, file), file, overrides or {}, name_of, origin)


def _whole_document(content: bytes, file: str) -> Document:
    document = read_document(content)
    if not document.complete:
        raise ConfigError("\n".join(SourceMap(file).lines(document.diagnostics)))
    return document


def read_document_settings(
    document: Document,
    file: str,
    overrides: Mapping[str, object],
    name_of: Callable[[str], str],
    origin: str | Origins,
    only_behavior: str | None = None,
) -> RunConfig:
    """The settings in a document, which is changed. file: "" for one that was built in code.

    origin: of its settings, where none of `overrides` sets them. only_behavior: its name, where the caller wrote the
    settings of that behavior alone. Raises ConfigError.
    """
    raw = document.values
    of_profile = [Diagnostic((WHERE,), _ONLY_PROFILES, of_key=True)] if raw.pop(WHERE, None) is not None else []
    rewriting = modernize(raw)
    find_beside(raw, file)
    flags, refused = set_flags(raw, overrides, name_of)
    origins = origins_of(raw, origin, flags)
    written = rewriting.written if only_behavior is None else {**rewriting.written, ("behaviors", only_behavior): ()}
    source = SourceMap(file, document.keys, document.key_values, flags, written)
    notes = (*source.lines([*rewriting.notes(_UPGRADE_HINT), *document.repeated]), *settle_start(raw, flags))
    found = [*rewriting.diagnostics, *_missing_trainers(raw)]
    config, invalid = _validate(raw, source)
    refused += [
        *document.diagnostics,
        *of_profile,
        *(one for one in [*found, *invalid] if not _is_unusable(one.path, document, source)),
    ]
    if refused or config is None:
        raise ConfigError("\n".join(source.lines(refused)))
    return config.with_source(replace(source, notes=notes, origins=with_inherited(origins, config.behaviors)))


def _validate(raw: dict[str, object], source: SourceMap) -> tuple[RunConfig | None, list[Diagnostic]]:
    """The settings, None where any is wrong: first default_settings, then the rest, with behaviors merged over them."""
    default, found = raw.get("default_settings"), list[Diagnostic]()
    if isinstance(default, dict):
        raw["default_settings"], found = read_settings(BehaviorConfig, default, "default_settings")
        settings = raw["default_settings"]
        found += _merge_defaults(raw, settings.model_dump() if isinstance(settings, BehaviorConfig) else default)
    reported = {diagnostic.path for diagnostic in found}
    config, others = read_settings(RunConfig, raw)
    return config, [*found, *(one for one in others if not _is_inherited(one.path, reported, source))]


def _missing_trainers(raw: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Refuse hyperparameters without a trainer_type, as ML-Agents does."""
    default = raw.get("default_settings")
    if isinstance(default, dict):
        sections: list[tuple[KeyPath, dict[str, object]]] = [(("default_settings",), default)]
    else:
        sections = [(("behaviors", name), behavior) for name, behavior in _named_behaviors(raw)]
    for path, section in sections:
        if "hyperparameters" in section and "trainer_type" not in section:
            text = f"trainer_type is missing next to it, must be {one_of(trainer_names())}"
            yield Diagnostic((*path, "hyperparameters"), text, of_key=True)


def _merge_defaults(raw: dict[str, object], default: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Merge every behavior over the fully expanded default_settings; yields what cannot be merged.

    A behavior that only the mapping of environments names gets the defaults as they are.
    """
    behaviors = raw.setdefault("behaviors", {})
    if not isinstance(behaviors, dict):
        return
    inherited = default.get("trainer_type", BehaviorConfig.model_fields["trainer_type"].default)
    for name, behavior in list(_named_behaviors(raw)):
        own, below = behavior.get("trainer_type", inherited), default
        if own != inherited:
            below = {key: value for key, value in default.items() if key != "hyperparameters"}
            if is_trainer(own) and is_trainer(inherited):
                text = f"must be {inherited} as in default_settings, whose hyperparameters it inherits, got {own}"
                yield Diagnostic(("behaviors", name, "trainer_type"), text)
        behaviors[name] = merge(below, behavior)
    for name in _mapped_environments(raw):
        behaviors.setdefault(name, merge(default, {}))


def _named_behaviors(raw: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    behaviors = raw.get("behaviors")
    if isinstance(behaviors, dict):
        yield from ((name, behavior) for name, behavior in behaviors.items() if isinstance(behavior, dict))


def _mapped_environments(raw: Mapping[str, object]) -> list[str]:
    section = raw.get("env_settings")
    environments = section.get("env") if isinstance(section, dict) else None
    return list(environments) if isinstance(environments, dict) else []


def merge(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Mappings merged key by key at every level; anything else above replaces what is below. All dicts are new.

    The settings of an encoder are not inherited by another one.
    """
    if above.get("vis_encode_type", below.get("vis_encode_type")) != below.get("vis_encode_type"):
        below = {key: value for key, value in below.items() if key != "encoder_settings"}
    merged: dict[str, object] = {}
    for key in {**below, **above}:
        low, high = below.get(key), above[key] if key in above else below[key]
        if isinstance(high, dict):
            merged[key] = merge(low if isinstance(low, dict) else {}, high)
        else:
            merged[key] = high
    return merged


def _is_unusable(path: KeyPath, document: Document, source: SourceMap) -> bool:
    """Whether this follows from a value that could not be read."""
    prefixes = (path[:length] for length in range(1, len(path) + 1))
    places = (place for prefix in prefixes for place in own_and_inherited(prefix))
    return any(source.in_file(place) in document.unusable for place in places)


def _is_inherited(path: KeyPath, reported: set[KeyPath], source: SourceMap) -> bool:
    """Whether the same was reported for default_settings."""
    return path[:1] == ("behaviors",) and not source.has(path) and ("default_settings", *path[2:]) in reported


def effective_yaml(config: RunConfig) -> str:
    """All settings, defaults included, in ML-Agents' order; load_config reads the same settings from it."""
    return write_yaml(config.model_dump())

"""What a run refuses, ignores or warns of in a valid configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import Diagnostic, KeyPath, must_be, must_be_one_of, one_of, visible
from rl_tui.engine.config.environment_name import EDITOR, is_of_unity
from rl_tui.engine.config.environment_parameters import CurriculumSettings
from rl_tui.engine.config.environments import environment_names, has_agents, has_mlagents_defaults, kind_of
from rl_tui.engine.config.naming import name_of, switched_on
from rl_tui.engine.config.plugin_settings import PluginSettings
from rl_tui.engine.config.presets import presets_in, profile_names
from rl_tui.engine.config.requirements import missing_library
from rl_tui.engine.config.run import EnvSettings, RunConfig
from rl_tui.engine.config.types import OFF, Settings
from rl_tui.engine.errors import ConfigError, NotSupportedError

_FEW_UPDATES = 20
_LATER = "is not supported yet"
_TO_THE_EDITOR = "no environment is named: it trains in the Unity Editor. For another, set"
_INFERENCE = "checkpoint_settings.inference"
_ONLY_UNITY = "used only with Unity players"
_RESTARTS, _ACTS = "only worker processes are restarted (num_workers)", "only worker processes act (num_workers)"
_ONLY_WORKERS = {
    **dict.fromkeys(("max_lifetime_restarts", "restarts_rate_limit_n", "restarts_rate_limit_period_s"), _RESTARTS),
    **dict.fromkeys(("act_in", "shares"), _ACTS),
}
_OF_EXPERIENCE = ("time_horizon", "threaded")
_OF_REWARDS = ("reward_signals", "normalize_reward")
_OF_PLAYERS = {"env_settings": ("env_args",), "engine_settings": ("no_graphics", "no_graphics_monitor")}


def find_unsupported(config: RunConfig, has_environment: bool = False) -> list[str]:
    """One line, with its place, for everything that keeps this configuration from starting; empty when it can start.

    That is what is not supported yet, a missing environment or behavior, and flags that --inference excludes.
    has_environment: a program brings one, so that the configuration need not name one.
    """
    found = [*_unsupported(config), *_incomplete(config)]
    if has_environment:
        found = [one for one in found if one.path[:1] != ("env_settings",)]
    return config.source.lines(found)


def require_supported(config: RunConfig, has_environment: bool = False) -> None:
    """Raise ConfigError where something is missing or contradictory, otherwise NotSupportedError for what is not
    supported yet, with every line of `find_unsupported`."""
    if found := find_unsupported(config, has_environment):
        is_wrong = not set(config.source.lines(_incomplete(config))).isdisjoint(found)
        raise (ConfigError if is_wrong else NotSupportedError)("\n".join(found))


def find_unsupported_defaults(config: RunConfig) -> list[str]:
    """The same for what default_settings give a behavior without an entry; no behavior in the file need use all."""
    defaults = config.default_settings
    found = () if defaults is None else _unsupported_in_behavior(("default_settings",), defaults)
    return config.source.lines([*found])


def find_unused(config: RunConfig) -> list[str]:
    """One line that names every key of the user's file and every flag that changes nothing in this run, with its place
    and why; none for those whose value is the default, as in the files that ML-Agents writes."""
    source = config.source
    unused = [key for key in _unused(config) if not _is_default(config, key.path)]
    keys = [key for key in unused if source.has(key.path)]
    keys += [key._replace(path=path) for key in unused for path in source.flags_within(key.path)]
    places: dict[str, list[str]] = {}  # by reason
    for key in source.in_order(keys):
        places.setdefault(key.text, []).append(source.place(key))
    reasons = [f"{', '.join(dict.fromkeys(found))} ({reason})" for reason, found in places.items()]
    return [f"no effect: {'; '.join(reasons)}"] if reasons else []


def list_warnings(config: RunConfig) -> list[str]:
    """One line for everything that is accepted and probably not intended."""
    return [*config.source.notes, *config.source.lines(_suspicious(config)), *_unused_plugins()]


def editor_note(config: RunConfig) -> str | None:
    """That it trains in the Editor, and how another environment is named; None where the user has named one."""
    settings = config.env_settings
    if settings.env is not None or settings.env_path is not None:
        return None
    name = name_of("env_settings.env")
    return f"{_TO_THE_EDITOR} env{'' if name == 'env' else f' (or {name})'} to {environment_names()}"


def preset_note(config: RunConfig) -> str | None:
    """Which presets have settings for the environment of a file that has no hyperparameters; None without any."""
    environment = config.env_settings.env
    if not isinstance(environment, str) or config.checkpoint_settings.inference:
        return None
    if any(config.source.has((*path, "hyperparameters")) for path, _ in _sections(config)):
        return None
    presets = presets_in(environment)
    if not presets and not has_mlagents_defaults(environment):
        presets = profile_names()
    return f"hyperparameters are ML-Agents' defaults; for {environment} try {one_of(presets)}" if presets else None


def few_updates_note(config: RunConfig) -> str | None:
    """Which behaviors will be updated so rarely that hardly anything is learned; None where none is."""
    sections = config.behaviors or ({} if config.default_settings is None else {"a behavior": config.default_settings})
    counts = {name: behavior.hyperparameters.num_updates(behavior.max_steps) for name, behavior in sections.items()}
    few = [
        f"{visible(name)} makes {count} in {sections[name].max_steps:,} steps"
        for name, count in counts.items()
        if count is not None and count < _FEW_UPDATES
    ]
    if not few or config.checkpoint_settings.inference:
        return None
    advice = "Update more often (a lower buffer_size; with SAC or bc, steps_per_update) or raise max_steps"
    return f"fewer than {_FEW_UPDATES} updates: {'; '.join(few)}. {advice}"


def _unsupported(config: RunConfig) -> Iterator[Diagnostic]:
    """What is valid and not supported yet."""
    for name, behavior in config.behaviors.items():
        yield from _unsupported_in_behavior(("behaviors", name), behavior)
    for name, writer in config.writers.items():
        if writer is not None:
            yield from _unusable(("writers", name), f"writer {name}", writer)
    for path, environment in _environments(config.env_settings):
        if kind := kind_of(environment):
            yield from _unusable(path, f"environment {environment}", kind, of_key=False)


def _unusable(
    path: KeyPath, what: str, settings: PluginSettings | type[PluginSettings], of_key: bool = True
) -> Iterator[Diagnostic]:
    """Whether nothing implements a plug-in yet, or a library that it needs is missing."""
    if not settings.implementation:
        yield Diagnostic(path, f"{what} {_LATER}", of_key=of_key)
    elif missing := missing_library(settings):
        yield Diagnostic(path, missing, of_key=of_key)


def _unsupported_in_behavior(path: KeyPath, behavior: BehaviorConfig) -> Iterator[Diagnostic]:
    trainer, network = f"trainer {behavior.trainer_type}", behavior.network_settings
    yield from _unusable((*path, "trainer_type"), trainer, behavior.hyperparameters, of_key=False)
    for name, signal in behavior.reward_signals.items():
        yield from _unusable((*path, "reward_signals", name), f"reward signal {name}", signal)
    place = (*path, "network_settings", "vis_encode_type")
    yield from _unusable(place, f"encoder {network.vis_encode_type}", network.encoder_settings, of_key=False)
    if not behavior.hyperparameters.learns_from_rewards and behavior.behavioral_cloning is not None:
        yield Diagnostic((*path, "behavioral_cloning"), f"{trainer} already learns by cloning alone", of_key=True)
    if behavior.init_path is not None and behavior.init_path.endswith(".pt"):
        yield Diagnostic((*path, "init_path"), f"starting from a PyTorch file (.pt) {_LATER}")


def _environments(settings: EnvSettings) -> Iterator[tuple[KeyPath, str]]:
    """Those of the run, each with where it is named; the Editor is where none is."""
    path: KeyPath = ("env_settings", "env")
    match settings.environment:
        case str(environment):
            yield path if settings.env is not None else ("env_settings", "env_path"), environment
        case environments:
            yield from (((*path, behavior), environment) for behavior, environment in environments.items())


def _incomplete(config: RunConfig) -> Iterator[Diagnostic]:
    """What a file may hold or leave out, and a run may not."""
    env, path = config.env_settings.environment, ("env_settings", "env")
    has_names = isinstance(env, str) and _names_behaviors(env) and config.default_settings is not None
    if not config.behaviors and not has_names:
        text = "must have a key for each behavior, got none"
        is_one = isinstance(env, str) and not _names_behaviors(env) and config.default_settings is not None
        text += f". {env} has one; choose its name" if is_one else ""
        yield Diagnostic(("behaviors",), text, of_key=True)
    is_offline = config.default_settings is not None and config.default_settings.hyperparameters.learns_offline
    is_unnamed = config.env_settings.env is None and config.env_settings.env_path is None
    if is_unnamed and is_offline and not config.behaviors:
        text = "must have a key for each behavior, got none: the Unity Editor that would name them is not waited for"
        yield Diagnostic(("behaviors",), f"{text} where only demonstrations are learned from", of_key=True)
    yield from _without_agents(config)
    yield from _too_many_editors(config.env_settings)
    yield from _without_wrappers(config.env_settings)
    known = config.environment_parameters or {}
    for name in (name for name in config.env_settings.parameters if name not in known):
        text = must_be("a key under environment_parameters", name, known)
        yield Diagnostic(("env_settings", "parameters", name), text, of_key=True)
    if config.checkpoint_settings.force and config.checkpoint_settings.inference:
        text = f"cannot be combined with {switched_on(_INFERENCE)}, which changes no file of the run"
        yield Diagnostic(("checkpoint_settings", "force"), text)
    if config.checkpoint_settings.resume_or_start and config.checkpoint_settings.inference:
        text = f"cannot be combined with {switched_on(_INFERENCE)}, which needs a run that has learned: use"
        text += f" {switched_on('checkpoint_settings.resume')}"
        yield Diagnostic(("checkpoint_settings", "resume_or_start"), text)
    if isinstance(env, str) and len(config.behaviors) > 1 and (kind := kind_of(env)) and kind.has_one_behavior:
        text = f"must map each of the {len(config.behaviors)} behaviors to an environment"
        yield Diagnostic(path, f"{text}; {env} has only one behavior")


def _names_behaviors(env: str) -> bool:
    """Whether behaviors may have names of their own, for which default_settings are enough."""
    kind = kind_of(env)  # none for a factory, of which that is known once it has been called
    return kind is None or not kind.has_one_behavior


def _without_agents(config: RunConfig) -> Iterator[Diagnostic]:
    """Demonstrations in the place of an environment, for behaviors that need one."""
    for path, environment, name in _behaviors_without_agents(config):
        if not config.behaviors[name].hyperparameters.learns_offline:
            text = f"must be an environment with agents, from which {visible(name)} learns, got {environment}"
            yield Diagnostic(path, text)


def _behaviors_without_agents(config: RunConfig) -> Iterator[tuple[KeyPath, str, str]]:
    """Where such an environment is named, its name, and that of each behavior which has it."""
    for path, environment in _environments(config.env_settings):
        if not has_agents(environment):
            names = [str(path[-1])] if isinstance(config.env_settings.env, dict) else [*config.behaviors]
            yield from ((path, environment, name) for name in names)


def _without_wrappers(settings: EnvSettings) -> Iterator[Diagnostic]:
    """Wrappers for an environment that cannot have any. What a factory returns is not known yet."""
    if not settings.wrappers:
        return
    for _, environment in _environments(settings):
        if (kind := kind_of(environment)) and not kind.takes_wrappers:
            text = f"must be left out: {environment} can have none, only environments of Gymnasium and PettingZoo can"
            yield Diagnostic(("env_settings", "wrappers"), text, of_key=True)


def _too_many_editors(settings: EnvSettings) -> Iterator[Diagnostic]:
    """More than the one that the user has open."""
    editors = [path for path, environment in _environments(settings) if environment == EDITOR]
    if editors and settings.num_envs > 1:
        text = f"must be 1 in the Unity Editor, got {settings.num_envs}. Build a player for several:"
        text += f" {name_of('env_settings.env')} PATH"
        yield Diagnostic(("env_settings", "num_envs"), text)
    for path in editors[1:]:
        yield Diagnostic(path, f"must be another environment than {EDITOR}: there is one Unity Editor in a run")


def _is_default(config: RunConfig, path: KeyPath) -> bool:
    """Whether the value at the path is the one that it has where it is not written."""
    section: object = config
    for part in path[:-1]:
        is_named = isinstance(section, Settings)
        section = getattr(section, str(part)) if is_named else cast(Mapping[object, object], section)[part]
    key = str(path[-1])
    return isinstance(section, Settings) and getattr(section, key) == section.default_of(key)


def _unused(config: RunConfig) -> Iterator[Diagnostic]:
    """Every key that changes nothing in this run, written or not."""
    if config.env_settings.env is not None:
        yield Diagnostic(("env_settings", "env_path"), "env names the environment", of_key=True)
    yield from _unused_of_unity(config)
    if not any(map(_names_agents, (environment for _, environment in _environments(config.env_settings)))):
        for key in ("behaviors", "random_agents"):
            text = "only agents of PettingZoo's environments have names"
            yield Diagnostic(("env_settings", key), text, of_key=True)
    for key, reason in (("load_model", "resume says it"), ("train_model", "training is the default")):
        yield Diagnostic(("checkpoint_settings", key), reason, of_key=True)
    start = config.checkpoint_settings
    if start.force and (start.resume or start.resume_or_start):
        name = "resume" if start.resume else "resume_or_start"
        yield Diagnostic(("checkpoint_settings", "force"), f"{name} replaces nothing", of_key=True)
    if config.checkpoint_settings.inference:
        yield Diagnostic(("writers",), f"with {switched_on(_INFERENCE)} no statistics are recorded", of_key=True)
    for path, behavior in _sections(config):
        yield from _unused_in_behavior(path, behavior)
    for _, _, name in _behaviors_without_agents(config):
        text = "there is no environment to evaluate in: set env"
        yield Diagnostic(("behaviors", name, "evaluation"), text, of_key=True)


def _names_agents(env: str) -> bool:
    """Whether its agents may have names: a factory may return anything."""
    kind = kind_of(env)
    return kind is None or kind.names_agents


def _unused_of_unity(config: RunConfig) -> Iterator[Diagnostic]:
    """What only some environments use."""
    environments = [environment for _, environment in _environments(config.env_settings)]
    if not any(map(is_of_unity, environments)):
        for key in ("env_args", "base_port", "num_areas", "training_analytics"):
            yield Diagnostic(("env_settings", key), _ONLY_UNITY, of_key=True)
        for key in type(config.engine_settings).model_fields:
            yield Diagnostic(("engine_settings", key), _ONLY_UNITY, of_key=True)
        if not config.env_settings.num_workers:
            for key, text in _ONLY_WORKERS.items():
                yield Diagnostic(("env_settings", key), text, of_key=True)
    elif all(map(is_of_unity, environments)):
        text = "each Unity player has a worker process of its own"
        yield Diagnostic(("env_settings", "num_workers"), text, of_key=True)
        text = "Unity players report statistics of their own"
        yield Diagnostic(("env_settings", "metrics"), text, of_key=True)
        text = "Unity players are sent every environment parameter"
        yield Diagnostic(("env_settings", "parameters"), text, of_key=True)
    has_players = any(is_of_unity(environment) and environment != EDITOR for environment in environments)
    if config.engine_settings.no_graphics and has_players:
        for key in ("width", "height", "no_graphics_monitor"):
            yield Diagnostic(("engine_settings", key), "with no_graphics nothing is drawn", of_key=True)
    if set(environments) == {EDITOR}:
        yield from _unused_in_the_editor(config)


def _unused_in_the_editor(config: RunConfig) -> Iterator[Diagnostic]:
    """What is passed to a player when it is started, and what needs a second one."""
    for section, keys in _OF_PLAYERS.items():
        for key in keys:
            yield Diagnostic((section, key), "the Unity Editor is started by you", of_key=True)
    yield Diagnostic(("env_settings", "base_port"), "the Unity Editor uses port 5004", of_key=True)
    yield Diagnostic(("env_settings", "timeout_wait"), "the Unity Editor is waited for", of_key=True)
    for path, _ in _sections(config):
        text = "it needs an environment of its own, and there is one Unity Editor"
        yield Diagnostic((*path, "evaluation"), text, of_key=True)


def _sections(config: RunConfig) -> Iterator[tuple[KeyPath, BehaviorConfig]]:
    if config.default_settings:
        yield ("default_settings",), config.default_settings
    for name, behavior in config.behaviors.items():
        yield ("behaviors", name), behavior


def _unused_in_behavior(path: KeyPath, behavior: BehaviorConfig) -> Iterator[Diagnostic]:
    for name, signal in behavior.reward_signals.items():
        if not signal.learns:
            place = (*path, "reward_signals", name, "network_settings")
            yield Diagnostic(place, f"{name} rewards need no network", of_key=True)
    for key in () if behavior.hyperparameters.learns_from_rewards else _OF_REWARDS:
        yield Diagnostic((*path, key), f"trainer {behavior.trainer_type} learns from no rewards", of_key=True)
    for key in _OF_EXPERIENCE if behavior.hyperparameters.learns_offline else ():
        yield Diagnostic((*path, key), f"trainer {behavior.trainer_type} learns without experience", of_key=True)
    for key, reason in behavior.hyperparameters.unused(behavior.reward_signals):
        yield Diagnostic((*path, "hyperparameters", key), reason, of_key=True)
    if behavior.ignores_interval:
        text = f"even_checkpoints makes it {behavior.checkpoint_interval}"
        yield Diagnostic((*path, "checkpoint_interval"), text, of_key=True)


def _unused_plugins() -> Iterator[str]:
    """Installed plug-ins that no run can use."""
    for plugin in (plugin for kind in registry.BUILT_IN for plugin in registry.hidden(kind)):
        what = f"{plugin.name} of {plugin.package} ({plugin.kind})"
        yield f"{what} is not used: that is the name of a built-in one; give it another name"
    for plugin in registry.misplaced_plugins():
        must = must_be_one_of([f"rl_tui.{kind}" for kind in registry.BUILT_IN], plugin.kind)
        yield f"{plugin.name} of {plugin.package} is not loaded: its group of entry points {must}"
    if found := [f"{plugin.name} of {plugin.package} ({plugin.kind})" for plugin in registry.plugins_of_mlagents()]:
        yield f"plug-ins of ML-Agents are not loaded: {', '.join(found)}. `rl-tui plugins` lists those that are"


def _suspicious(config: RunConfig) -> Iterator[Diagnostic]:
    """What is accepted and probably not intended."""
    yield from _untrained(config)
    for path, behavior in _sections(config):
        yield from _suspicious_in_behavior(config, path, behavior)
    for parameter, value in (config.environment_parameters or {}).items():
        if isinstance(value, CurriculumSettings):
            yield from _suspicious_in_curriculum(config, ("environment_parameters", parameter, "curriculum"), value)


def _untrained(config: RunConfig) -> Iterator[Diagnostic]:
    """Policies that play untrained, because no checkpoint is named for them."""
    settings = config.checkpoint_settings
    if not settings.inference or settings.resume or settings.initialize_from is not None:
        return
    names = [name for name, behavior in config.behaviors.items() if behavior.init_path is None]
    if names:
        resume, origin = switched_on("checkpoint_settings.resume"), name_of("checkpoint_settings.initialize_from")
        text = f"{', '.join(names)} will act untrained. Add {resume}, {origin} or an init_path"
        yield Diagnostic(("checkpoint_settings", "inference"), text)


def _suspicious_in_behavior(config: RunConfig, path: KeyPath, behavior: BehaviorConfig) -> Iterator[Diagnostic]:
    if behavior.summary_freq == OFF:
        text = "no summaries: curves of statistics stay empty, and no warning says that learning goes wrong"
        yield Diagnostic((*path, "summary_freq"), text)
    if behavior.checkpoint_interval == behavior.checkpoint_seconds == OFF:
        text = "no checkpoint before the end: a crash or a power cut then loses everything since the start"
        yield Diagnostic((*path, "checkpoint_interval"), text)
    memory, horizon = behavior.network_settings.memory, behavior.time_horizon
    if memory and memory.sequence_length > horizon:
        text = f"should be at most time_horizon ({horizon}), where sequences end, got {memory.sequence_length}"
        yield Diagnostic((*path, "network_settings", "memory", "sequence_length"), text)
    for key, text in behavior.hyperparameters.suspicious(behavior.time_horizon, behavior.max_steps):
        yield Diagnostic((*path, "hyperparameters", key), text)
    for name in behavior.reward_signals:
        place = (*path, "reward_signals", name, "network_settings", "memory")
        if any(config.source.has((*place, key)) for key in ("memory_size", "sequence_length")):
            yield Diagnostic(place, "ignored: a reward signal's network has no memory", of_key=True)
    if behavior.self_play and not 0 <= behavior.self_play.play_against_latest_model_ratio <= 1:
        text = f"should be from 0 to 1, got {behavior.self_play.play_against_latest_model_ratio}"
        yield Diagnostic((*path, "self_play", "play_against_latest_model_ratio"), text)


def _suspicious_in_curriculum(config: RunConfig, path: KeyPath, parameter: CurriculumSettings) -> Iterator[Diagnostic]:
    lessons = parameter.curriculum
    if lessons[-1].completion_criteria:
        place = (*path, len(lessons) - 1, "completion_criteria")
        yield Diagnostic(place, "ignored: nothing follows the last lesson", of_key=True)
    for position, lesson in enumerate(lessons):
        criteria = lesson.completion_criteria
        if criteria and criteria.behavior not in config.behaviors and not config.default_settings:
            text = must_be("a key under behaviors, or the lesson never ends", criteria.behavior, config.behaviors)
            yield Diagnostic((*path, position, "completion_criteria", "behavior"), text)
        if criteria and criteria.measure == "Elo" and not _plays_itself(config, criteria.behavior):
            text = f"Elo needs self_play of {criteria.behavior}, or the lesson never ends"
            yield Diagnostic((*path, position, "completion_criteria", "measure"), text)


def _plays_itself(config: RunConfig, behavior: str) -> bool:
    settings = config.behaviors.get(behavior, config.default_settings)
    return settings is not None and settings.self_play is not None

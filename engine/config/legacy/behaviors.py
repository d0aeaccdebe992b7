"""Legacy spellings of a behavior's keys."""

from __future__ import annotations

from rl_tui.engine.config.diagnostics import must_be, visible
from rl_tui.engine.config.legacy.rewriting import Section
from rl_tui.engine.config.types import is_positive

PACE = ("num_update", "train_interval")  # mini-batches in each training; environment steps between two
SIGNAL_UPDATES = "reward_signal_num_update"  # mini-batches of the reward signals in each training
SIGNAL_STEPS = "reward_signal_steps_per_update"
_SIZES = ("memory_size", "sequence_length")
MEMORY = ("use_recurrent", *_SIZES)


def rewrite_behavior(behavior: Section) -> None:
    """Rename keys, and convert those whose meaning changed."""
    behavior.rename("trainer", "trainer_type")
    behavior.rename("pretraining", "behavioral_cloning")
    if "framework" in behavior.keys:
        behavior.ignore("framework", "there is one framework")
    if self_play := behavior.inner("self_play"):
        self_play.rename("play_against_current_self_ratio", "play_against_latest_model_ratio")
    _rewrite_pace(behavior)
    _rewrite_memory(behavior)
    if network := behavior.inner("network_settings"):
        _rewrite_encoder(network)
    if signals := behavior.inner("reward_signals"):
        for signal in signals.inners():
            _rewrite_encoding(signal)
            if "samples_per_update" in signal.keys:  # of GAIL, up to 0.13
                signal.ignore("samples_per_update", "there is no such setting any more")


def _rewrite_pace(behavior: Section) -> None:
    """SAC trained num_update times every train_interval steps, and its reward signals reward_signal_num_update times.

    Later pages of ML-Agents use the last name, among the hyperparameters, for what is reward_signal_steps_per_update.
    """
    is_count = behavior.is_flat
    signals = behavior.inner("reward_signals")
    for section in filter(None, (behavior, signals)):
        if old := section.present((*PACE, SIGNAL_UPDATES)):
            is_count = True
            section.move(old, behavior.within("hyperparameters"))
    if signals and SIGNAL_STEPS in signals.keys:
        signals.deprecate([SIGNAL_STEPS], f"hyperparameters.{SIGNAL_STEPS}")
        signals.move([SIGNAL_STEPS], behavior.within("hyperparameters"))
    if hyper := behavior.inner("hyperparameters"):
        _rewrite_updates(hyper, is_count or bool(hyper.present(PACE)))


def _rewrite_updates(hyper: Section, is_count: bool) -> None:
    """Convert numbers of updates to steps per update. is_count: reward_signal_num_update is such a number."""
    updates, steps, signal_updates = map(hyper.number, (*PACE, SIGNAL_UPDATES))
    if updates is None or steps is None or signal_updates is None:
        hyper.remove((*PACE, SIGNAL_UPDATES))  # refused by `number`
        return
    if "steps_per_update" in hyper.keys:  # which ML-Agents 0.16 followed too
        written = hyper.keys["steps_per_update"]
        steps = float(written) if is_positive(written) else 1.0  # the schema refuses any other value
        for key in hyper.present(PACE):
            hyper.ignore(key, "steps_per_update replaces it")
    elif old := hyper.present(PACE):
        hyper.deprecate(old, "hyperparameters.steps_per_update", f": {steps / updates:g}")
        hyper.replace(old, "steps_per_update", steps / updates)
    if SIGNAL_UPDATES in hyper.keys:
        signal_steps = steps / signal_updates if is_count else signal_updates
        hyper.deprecate([SIGNAL_UPDATES], f"hyperparameters.{SIGNAL_STEPS}", f": {signal_steps:g}")
        hyper.replace([SIGNAL_UPDATES], SIGNAL_STEPS, signal_steps)


def _rewrite_memory(behavior: Section) -> None:
    """Whether a network is recurrent, and how, was written next to its other settings."""
    if "use_recurrent" in behavior.keys:
        behavior.move(behavior.present(MEMORY), behavior.within("network_settings"))
    network = behavior.inner("network_settings")
    if not network or "use_recurrent" not in network.keys:
        return
    is_recurrent, old = network.keys["use_recurrent"], network.present(MEMORY)
    if not isinstance(is_recurrent, bool):
        network.refuse("use_recurrent", must_be("true or false", is_recurrent), of_key=False)
        network.remove(old)
        return
    sizes = {key: network.keys[key] for key in network.present(_SIZES)}
    place = network.origin("use_recurrent")[:-1]  # also of a size that is not written
    origins = {key: network.origin(key) if key in sizes else (*place, key) for key in _SIZES}
    shown = ", ".join(f"{key}: {visible(str(size))}" for key, size in sizes.items())
    network.deprecate(old, "network_settings.memory", f": {{{shown}}}" if is_recurrent else ": null")
    network.replace(old, "memory", sizes if is_recurrent else None)
    network.rewriting.written.update({(*network.path, "memory", key): origin for key, origin in origins.items()})


def _rewrite_encoder(network: Section) -> None:
    """The simple encoder was called default."""
    if network.keys.get("vis_encode_type") == "default":
        network.keys["vis_encode_type"] = "simple"
        network.deprecate_value("vis_encode_type", "default", "simple")


def _rewrite_encoding(signal: Section) -> None:
    """A signal's network had a size only."""
    if "encoding_size" not in signal.keys:
        return
    size = signal.keys["encoding_size"]
    if size is None:
        signal.remove(["encoding_size"])  # as in every configuration.yaml of ML-Agents
    elif "network_settings" in signal.keys:
        signal.ignore("encoding_size", "network_settings.hidden_units replaces it")
    else:
        origin = signal.origin("encoding_size")
        signal.deprecate(["encoding_size"], "network_settings.hidden_units", f": {visible(str(size))}")
        signal.replace(["encoding_size"], "network_settings", {"hidden_units": size})
        signal.rewriting.written[*signal.path, "network_settings", "hidden_units"] = origin

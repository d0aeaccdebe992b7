"""The policy in a checkpoint, to act with it outside of its training."""

from __future__ import annotations

from pathlib import Path

import torch

from rl_tui.engine import registry
from rl_tui.engine.config.loading import load_config, load_to_act
from rl_tui.engine.learning.saved_actor import SavedActor
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.running.environments import settings_of
from rl_tui.engine.running.restoring import load_actor, load_trainer
from rl_tui.engine.specs import BehaviorSpec, Policy, State
from rl_tui.engine.storage.checkpoint_format import Checkpoint


def policy_of_checkpoint(
    configuration: Path, spec: BehaviorSpec, state: State, checkpoint: Checkpoint, seed: int, is_greedy: bool
) -> Policy:
    """The policy that the trainer of this checkpoint has learned. spec: of what it acts for; its name does not matter.

    configuration: the file of the checkpoint's run. Raises RlTuiError.
    """
    config = settings_of(load_to_act(configuration), checkpoint.behavior)
    if prefix := vars(registry.implementation("trainers", config.trainer_type)).get("actor_prefix"):
        actor = SavedActor(prefix, spec, config.network_settings, config.hyperparameters.squashes_actions)
        return load_actor(actor, state, checkpoint, seed, is_greedy)
    trainer = _whole_trainer(configuration, spec, state, checkpoint)
    policy = trainer.policy_maker(seed)(is_greedy)
    policy.load(trainer.weights())
    return policy


def _whole_trainer(configuration: Path, spec: BehaviorSpec, state: State, checkpoint: Checkpoint) -> Trainer:
    """With everything that it was trained with, also what acting would not need."""
    without_writers: dict[str, object] = {"writers": {}}
    config = settings_of(load_config(configuration, without_writers), checkpoint.behavior)
    config = config.model_copy(update={"hyperparameters": config.hyperparameters.for_playing()})
    trainer = make_trainer(spec, config, 0, torch.device("cpu"))
    load_trainer(trainer, state, checkpoint)
    return trainer

"""What an exported policy earns, with Gymnasium and onnxruntime alone: nothing of the engine is imported.

python -m tests.benchmarks.evaluate results/<run>/<Behavior>.onnx CartPole-v1 [--episodes 100] [--sampled]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import gymnasium
import numpy as np

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime


def choose(outputs: dict[str, np.ndarray], prefix: str, space: gymnasium.Space) -> object:
    """The action in the environment's own terms. prefix: "deterministic_" or nothing."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(outputs[f"{prefix}discrete_actions"][0, 0]) + int(space.start)
    assert isinstance(space, gymnasium.spaces.Box)
    share = (outputs[f"{prefix}continuous_actions"][0] + 1) / 2
    return (space.low + share * (space.high - space.low)).astype(space.dtype)


def load_session(path: str) -> Callable[[np.ndarray], np.ndarray]:
    """The deterministic continuous actions of an exported policy for one observation, in [-1, 1]."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = ["deterministic_continuous_actions"]
    return lambda observation: session.run(wanted, {"obs_0": observation[None]})[0][0]


def returns(path: str, env_id: str, episodes: int, prefix: str) -> list[float]:
    """The undiscounted return of every episode; episode i starts from seed i."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    masks = [i for i in session.get_inputs() if i.name == "action_masks"]
    env = gymnasium.make(env_id)
    earned = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=episode)
        total, is_over = 0.0, False
        while not is_over:
            inputs = {"obs_0": np.asarray(observation, np.float32)[None]}
            inputs |= {mask.name: np.ones((1, mask.shape[1]), np.float32) for mask in masks}
            action = choose(dict(zip(names, session.run(None, inputs), strict=True)), prefix, env.action_space)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            is_over = terminated or truncated
        earned.append(total)
    return earned


def main() -> None:
    """Print mean and standard deviation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("env_id")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--sampled", action="store_true", help="draw actions, as in training")
    arguments = parser.parse_args()
    earned = returns(
        arguments.path, arguments.env_id, arguments.episodes, "" if arguments.sampled else "deterministic_"
    )
    print(f"{np.mean(earned):.1f} +- {np.std(earned):.1f} over {len(earned)} episodes")


if __name__ == "__main__":
    main()

"""MA-POCA as in Cohen et al. 2021, one agent, one step and one sum at a time: what a fast one must come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.learning.poca.group_episodes import HORIZON, Act, Life

GAMMA, LAMBDA = 0.95, 0.9
HEADS = 4
CHOICES = np.eye(3)


class Critic:
    """weights: the critic's by name. largest: agents of the largest group."""

    def __init__(self, weights: Mapping[str, np.ndarray], largest: int) -> None:
        self._weights, self._largest = {name: array.astype(np.float64) for name, array in weights.items()}, largest

    def value(self, seen: Sequence[np.ndarray]) -> float:
        """V of section 4.1, of what all agents see."""
        return self._head([self._embed("observed", each) for each in seen])

    def baseline(self, seen: np.ndarray, mates: Sequence[Act]) -> float:
        """Q of section 4.2, of what the agent sees, and its mates see and do."""
        acted = [np.concatenate([mate.seen, mate.continuous, *CHOICES[mate.chosen]]) for mate in mates]
        return self._head([self._embed("observed", seen), *(self._embed("acted", each) for each in acted)])

    def _head(self, entities: Sequence[np.ndarray]) -> float:
        hidden = self._attend(np.stack(entities))
        for layer in range(2):
            hidden = _swish(self._weights[f"layers.weights.{layer}"] @ hidden + self._weights[f"layers.biases.{layer}"])
        with_count = np.append(hidden, 2 * len(entities) / self._largest - 1)
        return float((self._weights["values.weight"] @ with_count + self._weights["values.bias"])[0])

    def _embed(self, name: str, inputs: np.ndarray) -> np.ndarray:
        return _swish(self._weights[f"{name}.weight"] @ inputs + self._weights[f"{name}.bias"])

    def _attend(self, entities: np.ndarray) -> np.ndarray:
        size, normal = entities.shape[1], _normalized(entities)
        projected = normal @ self._weights["attention.projections.weight"].T
        queries, keys, values = np.split(projected + self._weights["attention.projections.bias"], 3, axis=1)
        attended = np.zeros_like(normal)
        for part in np.split(np.arange(size), HEADS):
            scores = np.exp(queries[:, part] @ keys[:, part].T / np.sqrt(size))
            attended[:, part] = scores / scores.sum(1, keepdims=True) @ values[:, part]
        result = attended @ self._weights["attention.result.weight"].T + self._weights["attention.result.bias"]
        mean: np.ndarray = _normalized(result + normal).mean(0)
        return mean


def credit(lives: Sequence[Life], critic: Critic) -> dict[bytes, tuple[float, float, float]]:
    """Value, baseline and lambda-return of every act of a group's agents, by what was seen."""
    found: dict[bytes, tuple[float, float, float]] = {}
    for life in lives:
        others = [other for other in lives if other is not life]
        values, baselines, rewards = [], [], []
        for act in life.acts:
            mates = [mate for other in others for mate in other.acts if mate.step <= act.step < mate.until]
            values.append(critic.value([act.seen, *(mate.seen for mate in mates)]))
            baselines.append(critic.baseline(act.seen, mates))
            theirs = [mate.own for other in others for mate in other.acts if act.step <= mate.step < act.until]
            rewards.append(act.own + act.shared + sum(theirs))
        following = 0.0
        for index in reversed(range(len(life.acts))):
            if index == len(life.acts) - 1 or (index + 1) % HORIZON == 0:
                bootstrap = after(life, index, others, critic)
                following = rewards[index] + GAMMA * bootstrap
            else:
                following = rewards[index] + GAMMA * ((1 - LAMBDA) * values[index + 1] + LAMBDA * following)
            found[life.acts[index].seen.tobytes()] = values[index], baselines[index], following
    return found


def after(life: Life, index: int, others: Sequence[Life], critic: Critic) -> float:
    """The value of what follows an act, after which experience is cut or the agent's episode ends."""
    step, is_over = life.acts[index].until, index == len(life.acts) - 1
    mates = [[act.seen for act in other.acts if act.step <= step][-1:] for other in others if other.end > step]
    present = [seen for newest in mates for seen in newest]
    if not is_over:
        return critic.value([life.acts[index + 1].seen, *present])
    if not present:
        ended = [other.final for other in others if other.end == step and other.final is not None]
        return critic.value([life.final, *ended]) if life.truncated and life.final is not None else 0.0
    return critic.value(present if not life.truncated or life.final is None else [life.final, *present])


def _swish(inputs: np.ndarray) -> np.ndarray:
    outputs: np.ndarray = inputs / (1 + np.exp(-inputs))
    return outputs


def _normalized(rows: np.ndarray) -> np.ndarray:
    centered = rows - rows.mean(1, keepdims=True)
    normal: np.ndarray = centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
    return normal

"""PPO and SAC as a single-file implementation has them, in the style of CleanRL: the peer that computes on a device.

Everything is in plain torch on the device, from the storage of a rollout to the loop over its steps for advantages; the
environments are Gymnasium's SyncVectorEnv in the same thread. Settings are those of every peer (settings.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import (
    ClipAction,
    FlattenObservation,
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
    TransformObservation,
    TransformReward,
)
from torch import Tensor, nn
from torch.distributions import Categorical, Normal
from torch.nn import functional

from tests.benchmarks.settings import (
    ADAM_EPSILON,
    CLIP_RANGE,
    ENTROPY_COEFFICIENT,
    GAE_LAMBDA,
    GAMMA,
    HIDDEN_UNITS,
    LEARNING_RATE,
    MAX_GRAD_NORM,
    PIXEL_HIDDEN_UNITS,
    SAC_BATCH_SIZE,
    SAC_HIDDEN_UNITS,
    SAC_START,
    SAC_TAU,
    VALUE_COEFFICIENT,
    SoftWorkload,
    Workload,
)

LIMIT = 10.0  # normalized observations and rewards are clipped to +-10
LOG_SPREADS = (-5.0, 2.0)  # of SAC's policy


def environments(workload: Workload, seed: int) -> SyncVectorEnv:
    """Copies with the wrappers of such a file; each normalizes for itself."""

    def make() -> gymnasium.Env[Any, Any]:
        if workload.is_visual:
            from rl_tui.engine.sampling.environments.toys.frames import Frames

            return RecordEpisodeStatistics(Frames())
        one: Any = RecordEpisodeStatistics(gymnasium.make(workload.environment))
        if isinstance(one.action_space, gymnasium.spaces.Box):
            one = ClipAction(FlattenObservation(one))
        if workload.is_normalized:
            one = NormalizeObservation(one)
            one = TransformObservation(one, lambda seen: np.clip(seen, -LIMIT, LIMIT), one.observation_space)
            one = TransformReward(
                NormalizeReward(one, gamma=GAMMA), lambda reward: float(np.clip(reward, -LIMIT, LIMIT))
            )
        return one

    made = SyncVectorEnv([make] * workload.num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
    made.action_space.seed(seed)
    return made


def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    """With orthogonal weights and no bias."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """PPO's networks: separate ones over vectors, a shared one over images."""

    def __init__(self, made: SyncVectorEnv, is_visual: bool):
        super().__init__()
        actions: Any = made.single_action_space
        self.is_discrete = isinstance(actions, gymnasium.spaces.Discrete)
        outputs = int(actions.n) if self.is_discrete else int(np.prod(actions.shape))
        shape: Any = made.single_observation_space.shape
        self.shared: nn.Module = nn.Identity()
        if is_visual:
            convolutions = [nn.Conv2d(shape[2], 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3, 1)]
            parts = [part for one in convolutions for part in (one, nn.ReLU())]
            self.shared = nn.Sequential(*parts, nn.Flatten(), layer(64 * 7 * 7, PIXEL_HIDDEN_UNITS), nn.ReLU())
            self.actor: nn.Module = layer(PIXEL_HIDDEN_UNITS, outputs, 0.01)
            self.critic: nn.Module = layer(PIXEL_HIDDEN_UNITS, 1, 1.0)
        else:
            self.actor, self.critic = (
                nn.Sequential(
                    layer(int(np.prod(shape)), HIDDEN_UNITS),
                    nn.Tanh(),
                    layer(HIDDEN_UNITS, HIDDEN_UNITS),
                    nn.Tanh(),
                    layer(HIDDEN_UNITS, columns, gain),
                )
                for columns, gain in ((outputs, 0.01), (1, 1.0))
            )
        self.is_visual = is_visual
        self.log_spread = nn.Parameter(torch.zeros(outputs))

    def hidden(self, seen: Tensor) -> Tensor:
        """What both heads read."""
        return self.shared(seen.permute(0, 3, 1, 2) / 255.0) if self.is_visual else seen

    def value(self, seen: Tensor) -> Tensor:
        """f32[B]."""
        return self.critic(self.hidden(seen)).flatten()

    def forward(self, seen: Tensor, action: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The action, its log-probability, the entropy, and the value."""
        hidden = self.hidden(seen)
        head = self.actor(hidden)
        policy: Any = Categorical(logits=head) if self.is_discrete else Normal(head, self.log_spread.exp())
        if action is None:
            action = policy.sample()
        log_prob, entropy = policy.log_prob(action), policy.entropy()
        if not self.is_discrete:
            log_prob, entropy = log_prob.sum(1), entropy.sum(1)
        return action, log_prob, entropy, self.critic(hidden).flatten()


def train_ppo(workload: Workload, seed: int, device: torch.device, on_start: Callable[[], None]) -> list[float]:
    """The returns of the last 100 episodes. on_start: called with the environments reset."""
    np.random.seed(seed)  # as such files do
    torch.manual_seed(seed)
    made = environments(workload, seed)
    agent = Agent(made, workload.is_visual).to(device)
    adam = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=ADAM_EPSILON)
    steps, copies = workload.num_steps, workload.num_envs
    kind = torch.uint8 if workload.is_visual else torch.float32
    shape: Any = made.single_observation_space.shape
    seen = torch.zeros((steps, copies, *shape), dtype=kind, device=device)
    actions = torch.zeros((steps, copies, *(made.single_action_space.shape or ())), device=device)
    log_probs, rewards, ends, values = (torch.zeros((steps, copies), device=device) for _ in range(4))
    ended: deque[float] = deque(maxlen=100)
    now = torch.as_tensor(made.reset(seed=seed)[0], dtype=kind, device=device)
    has_ended = torch.zeros(copies, device=device)
    on_start()
    for _ in range(workload.total_steps // workload.rollout_steps):
        for step in range(steps):
            seen[step], ends[step] = now, has_ended
            with torch.no_grad():
                action, log_probs[step], _, values[step] = agent(now)
            actions[step] = action
            following, reward, terminated, truncated, notes = made.step(action.cpu().numpy())
            rewards[step] = torch.as_tensor(reward, dtype=torch.float32, device=device)
            now = torch.as_tensor(following, dtype=kind, device=device)
            has_ended = torch.as_tensor(terminated | truncated, dtype=torch.float32, device=device)
            if "final_info" in notes:
                ended.extend(notes["final_info"]["episode"]["r"][notes["_final_info"]].tolist())
        advantages = torch.zeros_like(rewards)
        with torch.no_grad():
            following_value, following_end, gathered = agent.value(now), has_ended, torch.zeros(copies, device=device)
            for step in reversed(range(steps)):
                goes_on = 1 - following_end
                delta = rewards[step] + GAMMA * following_value * goes_on - values[step]
                advantages[step] = gathered = delta + GAMMA * GAE_LAMBDA * goes_on * gathered
                following_value, following_end = values[step], ends[step]
        flat = [column.flatten(0, 1) for column in (seen, actions, log_probs, advantages, advantages + values)]
        for _ in range(workload.num_epochs):
            order = np.random.permutation(workload.rollout_steps)
            for begin in range(0, workload.rollout_steps, workload.batch_size):
                rows = torch.as_tensor(order[begin : begin + workload.batch_size], device=device)
                _learn_ppo(agent, adam, *(column[rows] for column in flat))
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    made.close()
    return list(ended)


def _learn_ppo(
    agent: Agent, adam: torch.optim.Adam, seen: Tensor, action: Tensor, before: Tensor, advantage: Tensor, goal: Tensor
) -> None:
    """One mini-batch."""
    _, log_prob, entropy, value = agent(seen, action)
    ratio = (log_prob - before).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy = torch.max(-advantage * ratio, -advantage * ratio.clamp(1 - CLIP_RANGE, 1 + CLIP_RANGE)).mean()
    loss = policy - ENTROPY_COEFFICIENT * entropy.mean() + VALUE_COEFFICIENT * 0.5 * ((value - goal) ** 2).mean()
    adam.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRAD_NORM)
    adam.step()


class Critic(nn.Module):
    """Q(s, a)."""

    def __init__(self, inputs: int):
        super().__init__()
        self.layers = _relu_layers(inputs, 1)

    def forward(self, seen: Tensor, action: Tensor) -> Tensor:
        """f32[B]."""
        return self.layers(torch.cat([seen, action], 1)).flatten()


class SoftActor(nn.Module):
    """A squashed Gaussian."""

    def __init__(self, inputs: int, space: Any):
        super().__init__()
        self.layers = _relu_layers(inputs, 2 * int(np.prod(space.shape)))
        self.register_buffer("scale", torch.as_tensor((space.high - space.low) / 2, dtype=torch.float32))
        self.register_buffer("middle", torch.as_tensor((space.high + space.low) / 2, dtype=torch.float32))

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Actions, and their log-probabilities f32[B]."""
        mean, spread = self.layers(seen).chunk(2, 1)
        low, high = LOG_SPREADS
        policy = Normal(mean, (low + 0.5 * (high - low) * (spread.tanh() + 1)).exp())
        drawn = policy.rsample()
        squashed = drawn.tanh()
        log_prob = policy.log_prob(drawn) - (self.scale * (1 - squashed**2) + 1e-6).log()
        return squashed * self.scale + self.middle, log_prob.sum(1)


def _relu_layers(inputs: int, outputs: int) -> nn.Sequential:
    units = SAC_HIDDEN_UNITS
    return nn.Sequential(
        nn.Linear(inputs, units), nn.ReLU(), nn.Linear(units, units), nn.ReLU(), nn.Linear(units, outputs)
    )


def train_sac(workload: SoftWorkload, seed: int, device: torch.device, on_start: Callable[[], None]) -> list[float]:
    """The returns of the last 100 episodes, with an update of all networks per step after the first hundred."""
    random = np.random.default_rng(seed)
    torch.manual_seed(seed)
    one = RecordEpisodeStatistics(gymnasium.make(workload.environment))
    one.action_space.seed(seed)
    (columns,), (size,) = one.observation_space.shape, one.action_space.shape  # type: ignore[misc]  # a vector each
    actor = SoftActor(columns, one.action_space).to(device)
    critics = nn.ModuleList(Critic(columns + size) for _ in range(2)).to(device)
    targets = nn.ModuleList(Critic(columns + size) for _ in range(2)).to(device)
    targets.load_state_dict(critics.state_dict())
    log_alpha = torch.zeros(1, device=device, requires_grad=True)
    learned = {"critics": critics.parameters(), "actor": actor.parameters(), "alpha": [log_alpha]}
    adams = {name: torch.optim.Adam(parameters, lr=LEARNING_RATE) for name, parameters in learned.items()}
    widths = {"seen": columns, "following": columns, "action": size, "reward": 1, "end": 1}
    kept = {name: np.zeros((workload.total_steps, width), np.float32) for name, width in widths.items()}
    ended: deque[float] = deque(maxlen=100)
    seen, _ = one.reset(seed=seed)
    on_start()
    for step in range(workload.total_steps):
        if step < SAC_START:
            action = one.action_space.sample()
        else:
            with torch.no_grad():
                action = actor(torch.as_tensor(seen, device=device)[None])[0][0].cpu().numpy()
        following, reward, terminated, truncated, notes = one.step(action)
        values = {"seen": seen, "following": following, "action": action, "reward": reward, "end": terminated}
        for name, value in values.items():
            kept[name][step] = value
        seen = following
        if terminated or truncated:
            ended.append(float(notes["episode"]["r"]))
            seen, _ = one.reset()
        if step >= SAC_START:
            rows = random.integers(0, step + 1, SAC_BATCH_SIZE)
            batch = {name: torch.as_tensor(column[rows], device=device) for name, column in kept.items()}
            _learn_sac(batch, actor, critics, targets, log_alpha, adams, -float(size))
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    one.close()
    return list(ended)


def _learn_sac(
    batch: dict[str, Tensor],
    actor: SoftActor,
    critics: nn.ModuleList,
    targets: nn.ModuleList,
    log_alpha: Tensor,
    adams: dict[str, torch.optim.Adam],
    target_entropy: float,
) -> None:
    """One mini-batch."""
    seen, following = batch["seen"], batch["following"]
    alpha = log_alpha.exp().item()
    with torch.no_grad():
        action, log_prob = actor(following)
        value = torch.min(targets[0](following, action), targets[1](following, action)) - alpha * log_prob
        goal = batch["reward"].flatten() + (1 - batch["end"].flatten()) * GAMMA * value
    _step(adams["critics"], sum(functional.mse_loss(critic(seen, batch["action"]), goal) for critic in critics))
    action, log_prob = actor(seen)
    _step(adams["actor"], (alpha * log_prob - torch.min(critics[0](seen, action), critics[1](seen, action))).mean())
    _step(adams["alpha"], (-log_alpha.exp() * (log_prob.detach() + target_entropy)).mean())
    with torch.no_grad():
        for target, critic in zip(targets.parameters(), critics.parameters(), strict=True):
            target.copy_(SAC_TAU * critic + (1 - SAC_TAU) * target)


def _step(adam: torch.optim.Adam, loss: Any) -> None:
    adam.zero_grad()
    loss.backward()
    adam.step()

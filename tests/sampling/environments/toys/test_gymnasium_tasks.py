"""The tasks that any program can be given: images that cost nothing, CartPole without velocities."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector
from rl_tui.engine.sampling.environments.toys.cart_pole import cart_pole_positions
from rl_tui.engine.sampling.environments.toys.frames import EPISODE_STEPS, NUM_FRAMES, Frames
from rl_tui.engine.specs import ActionSpec, ObservationSpec
from tests.sampling.driving import discrete
from tests.sampling.environments.toys.playing import make


def test_frames_come_in_turn_and_pay_for_the_choice_that_belongs_to_them() -> None:
    frames = Frames(size=6)
    first, _ = frames.reset(seed=3)
    seen = [first]
    paying = []
    for number in range(2 * NUM_FRAMES):
        observation, reward, terminated, truncated, _ = frames.step(np.int64(number % 4))
        assert (terminated, truncated) == (False, False)
        seen.append(observation)
        paying.append(reward)
    assert len({image.tobytes() for image in seen}) == NUM_FRAMES
    np.testing.assert_array_equal(seen[0], seen[NUM_FRAMES])
    assert set(paying) in ({0.0}, {1.0}), "the number of the image and the choice rise together"


def test_frames_of_an_episode_end() -> None:
    frames = Frames(size=6)
    frames.reset(seed=3)
    endings = [frames.step(np.int64(0))[2:4] for _ in range(EPISODE_STEPS)]
    assert endings == [(False, False)] * (EPISODE_STEPS - 1) + [(True, False)]


def test_frames_are_a_gymnasium_environment_like_any_other() -> None:
    check_env(Frames(render_mode="rgb_array"), skip_render_check=True)
    environment = make("frames", 2)
    assert environment.specs["B"].observations == (ObservationSpec("observation", (84, 84, 3), "uint8"),)
    assert environment.specs["B"].actions == ActionSpec(0, (4,))


@pytest.mark.parametrize(("num_copies", "form"), [(1, GymnasiumLoop), (3, GymnasiumVector)])
def test_cart_pole_shows_position_and_angle_and_is_otherwise_cart_pole(num_copies: int, form: type) -> None:
    environment = make("cart-pole-positions", num_copies)
    assert isinstance(environment, form)
    assert environment.specs["B"].observations == (ObservationSpec("observation", (2,)),)
    [whole] = make_environments("gymnasium:CartPole-v1", "B", range(num_copies), {})
    steps, expected = environment.reset(5)["B"], whole.reset(5)["B"]
    num_ended = 0
    for _ in range(60):
        np.testing.assert_array_equal(steps.decisions.observations[0], expected.decisions.observations[0][:, [0, 2]])
        assert (steps.terminals is None) == (expected.terminals is None)
        if steps.terminals is not None and expected.terminals is not None:
            num_ended += len(steps.terminals.agent_ids)
            np.testing.assert_array_equal(
                steps.terminals.observations[0], expected.terminals.observations[0][:, [0, 2]]
            )
        choices = {"B": discrete(*[1] * len(steps.decisions.agent_ids))}
        steps, expected = environment.step(choices)["B"], whole.step(choices)["B"]
    assert num_ended >= num_copies
    environment.close()


def test_cart_pole_for_other_programs_lasts_500_steps() -> None:
    env = cart_pole_positions()
    assert env.observation_space.shape == (2,)
    assert env.spec is not None
    assert env.spec.max_episode_steps == 500
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    env.close()

"""Each form of a formula gives what the others give: numpy's and torch's, and those of acting."""

from __future__ import annotations

import numpy as np
import torch

from rl_tui.engine.learning.acting.distributions import (
    choose_to_act,
    gaussian_log_probs_to_act,
    gaussian_scale,
    mask_logits_to_act,
)
from rl_tui.engine.learning.distributions import Categorical, Gaussian, mask_logits, one_hot, squashed_log_probs

RANDOM = np.random.default_rng(0)
LOGITS = (3 * RANDOM.standard_normal((64, 5))).astype(np.float32)
ALLOWED = RANDOM.random((64, 5)) < 0.5
MEAN, NOISE = RANDOM.standard_normal((2, 64, 3)).astype(np.float32)
LOG_SIGMA = np.array([-2, 0, 1], np.float32)


def test_masked_logits_are_the_same_bits_in_every_form() -> None:
    masked = mask_logits_to_act(LOGITS, ALLOWED)
    as_numbers = ALLOWED.astype(np.float32)
    np.testing.assert_array_equal(mask_logits(LOGITS, as_numbers), masked)
    in_torch = mask_logits(torch.from_numpy(LOGITS), torch.from_numpy(as_numbers))
    np.testing.assert_array_equal(in_torch.numpy(), masked)


def test_log_probabilities_of_drawn_numbers_are_those_that_learning_finds() -> None:
    sigma = np.exp(LOG_SIGMA)
    acted = gaussian_log_probs_to_act(sigma * NOISE, *gaussian_scale(np, sigma))
    learned = Gaussian(np, MEAN, LOG_SIGMA, MEAN + sigma * NOISE).log_probs
    np.testing.assert_allclose(acted, learned, rtol=1e-5, atol=1e-5)


def test_log_probabilities_of_choices_are_those_that_learning_finds() -> None:
    for random in (None, np.random.default_rng(1)):
        chosen, log_probs = choose_to_act(LOGITS, random)
        learned = Categorical(np, LOGITS, one_hot(chosen[:, None], (5,)), None).log_probs[:, 0]
        np.testing.assert_allclose(log_probs, learned, rtol=1e-5, atol=1e-6)


def test_squashed_log_probabilities_are_the_same_in_numpy_and_torch_also_where_tanh_is_one() -> None:
    drawn = MEAN + 10 * NOISE
    ours = squashed_log_probs(NOISE, LOG_SIGMA, drawn)
    theirs = squashed_log_probs(*map(torch.from_numpy, (NOISE, LOG_SIGMA, drawn)))
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-5)

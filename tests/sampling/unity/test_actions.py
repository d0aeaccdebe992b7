"""Actions on the wire are what protobuf would write."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.sampling.environments.unity.unity_messages_pb2 import AgentActionListProto
from rl_tui.engine.sampling.environments.unity.wire.actions import write_actions
from rl_tui.engine.specs import Actions


def make_actions(count: int, continuous: int, branches: int, highest: int = 5) -> Actions:
    chance = np.random.default_rng(count)
    return Actions(
        chance.uniform(-1, 1, (count, continuous)).astype(np.float32),
        chance.integers(0, highest, (count, branches), endpoint=True),
    )


@given(
    st.integers(0, 5), st.integers(0, 70), st.integers(0, 4), st.sampled_from([1, 127, 128, 2**31 - 1]), st.booleans()
)
def test_actions_arrive_in_their_order(count, continuous, branches, highest, with_deprecated):
    actions = make_actions(count, continuous, branches, highest)
    read = AgentActionListProto.FromString(write_actions(actions, with_deprecated=with_deprecated)).value
    assert len(read) == count
    for row, action in enumerate(read):
        np.testing.assert_array_equal(np.array(action.continuous_actions, np.float32), actions.continuous[row])
        assert list(action.discrete_actions) == actions.discrete[row].tolist()
        both = [*actions.continuous[row].tolist(), *actions.discrete[row].astype(np.float32).tolist()]
        assert list(action.vector_actions_deprecated) == (both if with_deprecated else [])


@pytest.mark.parametrize("with_deprecated", [True, False])
def test_the_bytes_are_those_of_protobuf(with_deprecated):
    written = write_actions(make_actions(3, 2, 2), with_deprecated=with_deprecated)
    assert AgentActionListProto.FromString(written).SerializeToString() == written


def test_actions_that_are_not_contiguous_are_written_as_well():
    actions = make_actions(4, 6, 2)
    turned = Actions(np.asfortranarray(actions.continuous), np.asfortranarray(actions.discrete))
    assert write_actions(turned, with_deprecated=True) == write_actions(actions, with_deprecated=True)

"""Random environment of known episode lengths."""

import numpy as np
import pytest

from agents.tools.mock_environment import MockEnvironment
from tests import golden


def test_recorded_sequence():
  """`ppo/mock_environment`: all draws of a sequence of calls, to 1e-12."""
  data = golden.load('ppo/mock_environment')
  env = MockEnvironment(
    tuple(data['observ_shape']),
    tuple(data['action_shape']),
    int(data['min_duration']),
    int(data['max_duration']),
  )
  action = np.zeros(env.action_space.shape, np.float32)
  rows = []
  for call in data['calls']:
    if call == 'reset':
      rows.append((env.reset(), np.nan, False))
    else:
      rows.append(env.step(action)[:3])
  tolerance = dict(rtol=1e-12, atol=1e-12)
  for values, key in zip(zip(*rows), ('observ', 'reward', 'done')):
    golden.assert_close(np.array(values), data[key], **tolerance)
  assert env.steps == data['steps'].tolist()
  assert env.durations == data['durations'].tolist()


def test_spaces():
  env = MockEnvironment((2, 3), (2,), 2, 5)
  for space, shape in (
    (env.observation_space, (2, 3)),
    (env.action_space, (2,)),
  ):
    assert (space.shape, space.dtype) == (shape, np.float32)
    assert (space.low == 0).all() and (space.high == 1).all()
  assert env.unwrapped is env


def test_misuse_is_noticed():
  env = MockEnvironment((2,), (2,), 1, 1)
  env.reset()
  with pytest.raises(AssertionError):
    env.step(np.full(2, 7, np.float32))
  env.step(np.zeros(2, np.float32))
  with pytest.raises(AssertionError, match='over'):
    env.step(np.zeros(2, np.float32))

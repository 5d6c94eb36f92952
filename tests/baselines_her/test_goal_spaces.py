"""Goal environments whose parts are no boxes."""

import gymnasium
import numpy as np
import pytest

from agents.envs import check
from agents.envs.contract import GOAL_KEYS
from agents.run import errors
from baselines_her import envs, library
from tests.baselines_her import test_library

BITS = gymnasium.spaces.MultiBinary(3)
PARTS = {
  'bits': BITS,
  'integers': gymnasium.spaces.MultiDiscrete([2, 2, 2]),
  'nested': gymnasium.spaces.Dict(bits=BITS),
  'tuple': gymnasium.spaces.Tuple([BITS]),
  'one': gymnasium.spaces.Discrete(8),
  'text': gymnasium.spaces.Text(3),
}


class Flip(gymnasium.Env):
  """Bit flipping, with continuous actions.

  Args:
    kind: Space of the observation, a key of `PARTS`.
  """

  action_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)

  def __init__(self, kind, render_mode=None):
    goal = BITS if kind != 'integers' else PARTS[kind]
    self.observation_space = gymnasium.spaces.Dict(
      dict(zip(GOAL_KEYS, (PARTS[kind], goal, goal)))
    )

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._bits, self._goal = self.np_random.integers(0, 2, (2, 3), np.int8)
    return self._observe(), {}

  def step(self, action):
    self._bits = self._bits ^ (np.asarray(action) > 0).astype(np.int8)
    reward = float(self.compute_reward(self._bits, self._goal, {}))
    return self._observe(), reward, False, False, {'is_success': reward == 0}

  def compute_reward(self, achieved, desired, info):
    # Fails for floats, in which the replay stores goals.
    return -(achieved ^ desired).any(-1).astype(np.float32)

  def _observe(self):
    return dict(zip(GOAL_KEYS, (self._bits, self._bits, self._goal)))


for _kind in PARTS:
  gymnasium.register(
    f'Flip-{_kind}-v0', Flip, max_episode_steps=5, kwargs={'kind': _kind}
  )


def name_of(kind):
  return f'{__name__}:Flip-{kind}-v0'


@pytest.mark.parametrize('kind', ['bits', 'integers'])
def test_trained(kind, tmp_path):
  name = name_of(kind)
  assert check.check(name, ['her']).problems == {'her': []}
  space = envs.make(name).observation_space['observation']
  assert (space.low == 0).all() and (space.high == 1).all()
  (record,) = library.train(name, tmp_path, 5, test_library.PARAMS, 0)
  assert np.isfinite(record['loss/critic'])


@pytest.mark.parametrize('kind', ['nested', 'tuple', 'one', 'text'])
def test_refused(kind):
  """The same sentence in the check and in the training."""
  with pytest.raises(errors.UsageError, match='vectors, but observation is'):
    envs.make(name_of(kind))
  problems = check.check(name_of(kind), ['her']).problems['her']
  assert any('must be vectors, but observation is' in x for x in problems)

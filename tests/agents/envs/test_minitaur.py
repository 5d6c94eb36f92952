"""The minitaur of PyBullet."""

import types

import numpy as np
import pytest

from agents.envs import minitaur
from agents.run import errors
from agents.tools import continuous


@pytest.mark.needs('pybullet')
@pytest.mark.parametrize('name', ['minitaur', 'duck_minitaur'])
def test_minitaur(name):
  """The original cannot find the one with the duck."""
  settings = {'action_repeat': 3}
  env = continuous.make(name, settings=settings)
  assert env.unwrapped._action_repeat == 15  # with 5 steps of the motors
  with pytest.raises(errors.EnvError, match=f'{name} failed in its const'):
    continuous.make(name, settings={'legs': 3})
  assert env.observation_space.shape == (28,)
  assert env.action_space.shape == (8,)
  assert env.reset().shape == (28,)
  observ, reward, done, info = env.step(np.zeros(8, np.float32))
  assert observ.shape == (28,) and np.isfinite(reward)
  assert isinstance(done, bool) and isinstance(info, dict)
  env.close()


def test_minitaur_takes_its_arguments(monkeypatch):
  """Without a randomizer all episodes are alike."""
  given = {}

  class Minitaur:
    def __init__(self, **kwargs):
      given.update(kwargs)

  module = types.SimpleNamespace(MinitaurBulletEnv=Minitaur)
  monkeypatch.setattr(minitaur, '_import_minitaur', lambda name: module)
  monkeypatch.setattr(minitaur.adapters, 'GymEnv', lambda env: env)
  minitaur.minitaur(pd_control_enabled=False, env_randomizer=None)
  assert given == dict(
    accurate_motor_model_enabled=True,
    motor_overheat_protection=True,
    pd_control_enabled=False,
    env_randomizer=None,
    render=False,
  )

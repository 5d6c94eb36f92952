"""What environments look like, found out in processes of their own."""

import functools
import logging
import os
import types

import gymnasium
import numpy as np
import pytest

from agents.envs import adapters, hosts, opengl, probe, spaces
from agents.pipeline import base
from tests import processes, scripted_envs


def make_env(variable):
  logging.getLogger('agents.some').info('Using something.')
  os.environ[variable] = 'chosen'
  return scripted_envs.ScriptedEnv(low=[-2, -1], high=[2, 1])


def test_measure():
  """Shapes, messages, and what was chosen for OpenGL."""
  with processes.time_limit(60), pytest.MonkeyPatch.context() as patch:
    name = opengl.VARIABLES[0]
    patch.setenv(name, 'before')
    report = probe.inspect(functools.partial(make_env, name), probe.measure)
    assert os.environ[name] == 'chosen'
  assert report == {
    'state': (2,),
    'action': (2,),
    'reward': (),
    'messages': ['Using something.'],
    'renderer': None,
  }


def fail_without_opengl():
  import mujoco

  if 'MUJOCO_GL' not in os.environ:
    raise mujoco.FatalError('no OpenGL')
  return scripted_envs.ScriptedEnv()


def test_opengl_is_selected_when_it_lacks(monkeypatch):
  """Environments that observe what they render do so when they are created."""
  pytest.importorskip('mujoco')
  monkeypatch.delenv('MUJOCO_GL', raising=False)
  chosen = functools.partial(monkeypatch.setenv, 'MUJOCO_GL', 'egl')
  monkeypatch.setattr(opengl, 'select_backend', chosen)
  found = probe.inspect(fail_without_opengl, probe.describe)
  assert found['env_type'] == 'ScriptedEnv'


def test_describe():
  found = probe.describe(scripted_envs.ScriptedEnv())
  assert found['env_type'] == 'ScriptedEnv'
  assert found['max_episode_steps'] is None
  state = found['observation_space']['state']
  assert state == {
    'typ': 'Box',
    'dim': [2],
    'lim': [[-np.inf] * 2, [np.inf] * 2],
  }
  action = {'typ': 'Box', 'dim': [1], 'lim': [[-1.0], [1.0]]}
  assert found['action_space'] == {'agent': action}


def test_time_limit_without_an_entry_in_the_registry():
  class Bare(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Box(-1, 1, (1,))

  env = adapters.create(gymnasium.wrappers.TimeLimit(Bare(), 7))
  assert probe.describe(env)['max_episode_steps'] == 7


def test_actions_that_do_not_start_at_zero():
  """Random actions of the pipeline begin where the environment does."""
  env = types.SimpleNamespace(
    observation_space=spaces.box([-1], [1]),
    action_space=gymnasium.spaces.Discrete(3, start=5),
  )
  space = probe.describe(env)['action_space']['agent']
  assert space == {'typ': 'Discrete', 'dim': 3, 'lim': None, 'start': 5}
  agent = base.AgentBase(None, {}, action_space=space)
  assert set(agent.random_action_generator(None, 200)['actions']) == {5, 6, 7}


def test_failures_arrive():
  with processes.time_limit(60):
    with pytest.raises(hosts.WorkerError, match='broken constructor'):
      probe.inspect(scripted_envs.fail_to_construct, probe.measure)

"""First episodes that somebody drives who can."""

import functools
import glob

import numpy as np
import pytest

from agents.envs import spaces
from agents.run import errors
from planet.control import random_episodes
from planet.envs import constructors
from planet.envs.carla import task_env
from planet.training import collection
from tests.planet.envs.carla.test_task import define

pytest.importorskip('carla')

QUIET = {'map': 'loop', 'vehicles': 0, 'pedestrians': 0, 'seed': 3}


@pytest.mark.parametrize('repeat', [1, 3])
def test_recorded_actions_are_those_that_were_taken(repeat):
  """Played again, they give the same episode; nobody else drives so well."""
  args = (repeat, 60 // repeat, 32, 20, True, QUIET)
  (episode,) = random_episodes(
    lambda: task_env.make(*args, expert='autopilot'), 1
  )
  assert episode['action'].dtype == np.float32
  assert episode['reward'].sum() > 70
  env = task_env.make(*args)
  assert (env.reset()['image'] == episode['image'][0]).all()
  for step, action in enumerate(episode['action'][1:], 1):
    observ, reward, _, _ = env.step(action)
    np.testing.assert_array_equal(observ['image'], episode['image'][step])
    assert reward == pytest.approx(episode['reward'][step], rel=1e-5)


def test_experts_of_several_towns():
  """Their environments are wrapped once more."""
  env_ctor = functools.partial(
    constructors.unified_env,
    functools.partial(task_env.make, 1, 50, 32, 50, True, QUIET),
    [spaces.box(-np.ones(2), np.ones(2))] * 2,
  )
  (episode,) = random_episodes(lambda: env_ctor(expert='autopilot'), 1)
  assert episode['reward'].sum() > 70


def test_only_the_first_episodes_are_of_experts(tmp_path):
  params = dict(
    carla_size=32,
    carla_map='loop',
    carla_vehicles=0,
    carla_pedestrians=0,
    isolate_envs='none',
  )
  config = define(
    logdir=str(tmp_path),
    **params,
    carla_expert='autopilot',
    num_seed_episodes=1,
  )
  assert not config.tasks[0].env_ctor.keywords.get('expert')
  collection.collect_initial_episodes(config)
  names = glob.glob(str(tmp_path / '*_episodes' / '*.npz'))
  assert len(names) == 2
  for name in names:
    assert np.load(name)['reward'].sum() > 150
  assert {x.expert for x in define(**params).random_collects.values()} == {None}


@pytest.mark.parametrize(
  'params, message',
  [
    ({'carla_expert': 'pilot'}, 'carla_expert'),
    ({'carla_expert': 'autopilot', 'tasks': ['carla', 'dummy']}, 'omit it'),
  ],
)
def test_bad_parameters(params, message):
  with pytest.raises(errors.UsageError, match=message):
    define(**params)

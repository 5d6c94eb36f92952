"""First episodes that somebody drives who can."""

import functools
import glob

import numpy as np
import pytest

from agents.envs import spaces
from agents.run import errors
from planet.control import random_episodes
from planet.envs import constructors
from planet.training import collection
from tests.planet.envs.carla.recorded_world import QUIET, constructor
from tests.planet.envs.carla.test_task import define

pytest.importorskip('carla')

DRIVER = dict(QUIET, seed=3, expert='autopilot')


@pytest.mark.parametrize('repeat', [1, 3])
def test_recorded_actions_are_those_that_were_taken(repeat):
  """Played again, they give the same episode; nobody else drives so well."""
  args = (60 // repeat, 20, repeat)
  (episode,) = random_episodes(constructor(*args, **DRIVER, initial=True), 1)
  assert episode['action'].dtype == np.float32
  assert episode['reward'].sum() > 70
  env = constructor(*args, **DRIVER)()
  assert (env.reset()['image'] == episode['image'][0]).all()
  for step, action in enumerate(episode['action'][1:], 1):
    observ, reward, _, _ = env.step(action)
    np.testing.assert_array_equal(observ['image'], episode['image'][step])
    assert reward == pytest.approx(episode['reward'][step], rel=1e-5)


def test_experts_of_several_towns():
  """Also beside tasks with more actions, of which all are recorded."""
  env_ctor = functools.partial(
    constructors.unified_env,
    constructor(50, 50, **DRIVER, initial=True),
    [spaces.box(-np.ones(x), np.ones(x)) for x in (2, 5)],
  )
  (episode,) = random_episodes(env_ctor, 1)
  assert episode['reward'].sum() > 70
  assert episode['action'].shape == (51, 5)


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
  assert 'initial' not in config.tasks[0].settings
  collection.collect_initial_episodes(config)
  names = glob.glob(str(tmp_path / '*_episodes' / '*.npz'))
  assert len(names) == 2
  for name in names:
    assert np.load(name)['reward'].sum() > 150


def test_bad_parameters():
  with pytest.raises(errors.UsageError, match='carla_expert'):
    define(carla_expert='pilot')

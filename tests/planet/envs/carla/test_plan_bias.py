"""Plans that begin by the commands of a route."""

import contextlib

import numpy as np
import pytest

from agents.run import errors
from agents.tools.tf1 import tf
from planet.envs.carla import plan_bias, policies
from planet.training import playing
from tests.planet.envs.carla.test_task import define

pytest.importorskip('carla')


def measured(command='LANE_FOLLOW', goal=0.0, heading=0.0, distance=50.0):
  return {
    'next_command': command,
    'goal_heading_degree': goal,
    'current_heading_degree': heading,
    'distance_to_goal_euclidean': distance,
  }


@pytest.mark.parametrize(
  'measurements, heading, expected',
  [
    (measured(), 0.0, (0.6, 0.0)),
    (measured('GO_STRAIGHT'), 0.0, (0.6, 0.0)),
    (measured('TURN_RIGHT'), 0.0, (0.3, 0.3)),
    (measured('TURN_LEFT'), 0.0, (0.2, -0.5)),
    (measured('REACH_GOAL'), 0.0, (0.6, 0.0)),
    ({}, 0.01, (0.6, 0.0)),
    # The goal is 30 degrees to the right, over the seam of the angles.
    (measured(goal=-170, heading=160), 0.01, (0.6, 0.3)),
    (measured('TURN_LEFT', goal=-170, heading=160), 0.01, (0.2, -0.2)),
    (measured(goal=-150), 0.01, (0.6, -1.0)),
    # Without a goal there is no heading.
    (measured(goal=30, distance=-1.0), 0.01, (0.6, 0.0)),
  ],
)
def test_actions_of_commands(measurements, heading, expected):
  """Those of the fork, where no others are given; steering has limits."""
  biases = plan_bias.complete({'TURN_LEFT': [0.2, -0.5]})
  action = plan_bias.choose(measurements, biases, heading)
  np.testing.assert_allclose(action, expected, atol=1e-6)


@pytest.mark.parametrize(
  'params, message',
  [
    ({'planner_command_bias': 'command'}, 'one of fork, a mapping or null'),
    ({'planner_command_bias': {'LEFT': [0, 0]}}, 'Did you mean TURN_LEFT'),
    ({'planner_command_bias': {'TURN_LEFT': [2, 0]}}, 'from -1 to 1'),
    ({'planner_heading_bias': 0.1}, 'give that, too, such as fork'),
    (
      {'planner_command_bias': 'fork', 'planner_warm_start': True},
      'give one of them',
    ),
    (
      {'planner_command_bias': 'fork', 'tasks': ['carla', 'dummy']},
      'for the carla task alone',
    ),
  ],
)
def test_bad_parameters(params, message):
  with pytest.raises(errors.UsageError, match=message):
    define(**params)


def test_agents_follow_the_commands(monkeypatch):
  """Without iterations, actions are those of commands and headings.

  The route is planned only for the bias; a scripted driver drives along it.
  """
  params = dict(
    carla_size=32,
    carla_map='grid',
    carla_vehicles=0,
    carla_pedestrians=0,
    carla_seed=0,
    planner_iterations=0,
    isolate_envs='none',
  )
  settings = define(**params).tasks[0].env_ctor.keywords['settings']
  assert not settings['enable_planner']
  config = define(
    **params, planner_command_bias='fork', planner_heading_bias=0.001
  )
  (name,) = config.test_collects
  monkeypatch.setattr(tf.train.Saver, 'restore', lambda *unused: None)
  actions, commands = [], []
  with (
    playing.PlaNet('unused', config, name) as agent,
    contextlib.closing(agent.make_env()) as env,
  ):
    observ = env.reset()
    car = env._batch_env[0]
    drive = policies.PurePursuit()
    for _ in range(90):
      now = car.measurements
      action, _ = agent.predict(observ)
      expected = plan_bias.choose(now, plan_bias.complete({}), 0.001)
      np.testing.assert_allclose(action, expected, atol=1e-6)
      actions.append(tuple(action))
      commands.append(now['next_command'])
      observ, *_ = env.step(drive(car))
  assert len(set(actions)) > 10 and len(set(commands)) > 1

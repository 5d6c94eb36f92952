"""Every reward against numbers computed by hand from the formulas."""

import dataclasses

import numpy as np
import pytest

from agents.run import errors
from planet.envs.carla import env_config, rewards

Terms = rewards.Terms

# Name, terms, and what the formula gives.
TABLE = [
  # 3 + 0.05 * 2 - 2e-5 * 5000 - 2 * 0.2 - 2 * 0.1
  (
    'corl2017',
    Terms(
      speed=7,
      last_speed=5,
      distance=97,
      last_distance=100,
      damage=5000,
      offroad=0.4,
      last_offroad=0.2,
      otherlane=0.1,
    ),
    2.4,
  ),
  # The progress is limited to 10 in both directions.
  ('corl2017', Terms(distance=0, last_distance=50), 10.0),
  ('corl2017', Terms(distance=50, last_distance=0), -10.0),
  # 2 + 0.5 - 0.2 - 0.4, then 100 more and 100 less.
  (
    'custom',
    Terms(speed=5, distance=8, last_distance=10, offroad=0.2, otherlane=0.4),
    1.9,
  ),
  ('custom', Terms(arrived=True), 100.0),
  ('custom', Terms(new_damage=True), -100.0),
  ('custom', Terms(speed=45), 3.0),
  ('lane_keep', Terms(speed=12, offroad=0.2, otherlane=0.6), 0.4),
  ('lane_keep', Terms(speed=12, new_damage=True), -98.8),
  # 3 - (46 - 40) / 12
  ('custom1', Terms(speed=46), 2.5),
  # 0.6 - 5 * 6 - 4 * 0.5
  ('custom1', Terms(speed=6, offroad=0.2, otherlane=0.5), -31.4),
  # 2 - 50, whatever the share is.
  ('custom1', Terms(speed=20, offroad=0.001), -48.0),
  ('custom1', Terms(speed=20, offroad=0.0001), 2.0),
  # 0.8 - 100 - 10 * 0.2 - 4 * 0.1
  (
    'custom2',
    Terms(speed=8, new_damage=True, offroad=0.2, otherlane=0.1),
    -101.6,
  ),
  ('custom2', Terms(speed=50), 5.0),
  # 5 m/s are 18 km/h.
  ('custom3', Terms(speed=5), 1.8),
  ('custom3', Terms(speed=30 / 3.6), 3.0),
  ('custom3', Terms(speed=40 / 3.6), 0.0),
  ('custom3', Terms(speed=50 / 3.6), -3.0),
  # 1.8 - 5 * 6 * 0.4 - 2 * 6 * 0.2
  ('custom3', Terms(speed=5, offroad=0.4, otherlane=0.2), -12.6),
  ('custom3', Terms(speed=0, offroad=1.0), -5.0),
  ('custom3', Terms(new_damage=True), -300.0),
  ('custom4', Terms(speed=40 / 3.6), 4.0),
  ('custom4', Terms(speed=50 / 3.6), 0.0),
  # 1.8 - 6 * 6 * 0.4 - 3 * 6 * 0.2
  ('custom4', Terms(speed=5, offroad=0.4, otherlane=0.2), -16.2),
  # Other lanes cost nothing.
  ('custom_depth', Terms(speed=5, offroad=0.4, otherlane=0.2), -10.2),
  ('custom_depth', Terms(speed=20), 3.0),
  # 10 * 0.1 / (1 + 1) - 1 - 0.05 - 0.02
  (
    'highway',
    Terms(lane_speed=10, lane_offset=-1, collided=True, brake=0.5, steer=-0.2),
    -0.57,
  ),
  ('highway', Terms(lane_speed=10, dt=0.05), 0.5),
  # 5 - 5 * 0.04 - 0.2 * 0.2 * 25 - 0.1
  ('speed_tracking', Terms(lane_speed=5, steer=-0.2), 3.7),
  # 9 - 200 - 10 - 1 - 0.1
  (
    'speed_tracking',
    Terms(lane_speed=9, lane_offset=-2.5, collided=True),
    -202.1,
  ),
]


@pytest.mark.parametrize('name, terms, expected', TABLE)
def test_formulas(name, terms, expected):
  assert rewards.REWARDS[name](terms) == pytest.approx(expected, abs=1e-9)


def test_all_are_in_the_table():
  assert {x[0] for x in TABLE} == set(rewards.REWARDS)


@pytest.mark.parametrize('name, knee', [('custom3', 30), ('custom4', 40)])
def test_knee_is_continuous_and_highest(name, knee):
  values = [
    rewards.REWARDS[name](Terms(speed=(knee + gap) / 3.6))
    for gap in (-1, -1e-6, 1e-6, 1)
  ]
  assert values[1] == pytest.approx(values[2], abs=1e-6)
  assert values[1] > values[0] and values[2] > values[3]


@pytest.mark.parametrize('name', rewards.REWARDS)
def test_rewards_are_weighted_sums(name):
  """Of the terms that users give weights of their own."""
  random = np.random.default_rng(0)
  fields = dataclasses.fields(rewards.Terms)
  same = rewards.define(name, {'step': rewards.WEIGHTS[name].get('step', 0)})
  assert rewards.define(name, None) is rewards.REWARDS[name]
  for _ in range(200):
    values = {x.name: float(random.uniform(0, 60)) for x in fields}
    for key, value in values.items():
      if isinstance(getattr(rewards.Terms(), key), bool):
        values[key] = value < 20
      elif 'road' in key or 'lane' in key and 'speed' not in key:
        values[key] = max(value / 60 - 0.3, 0)
    terms = rewards.Terms(**values)
    assert same(terms) == pytest.approx(rewards.REWARDS[name](terms), abs=1e-9)


def test_weights_of_users():
  terms = rewards.Terms(speed=5.0, new_damage=True, last_distance=3.0, steer=-1)
  weighted = rewards.define('custom3', {'new_damage': -10, 'progress': 2})
  assert weighted(terms) == pytest.approx(1.8 - 10 + 6)
  config = env_config.complete({'reward_weights': {'progress': 1.0}})
  assert config['enable_planner'] and config['state'] == 'route'
  weights = {'progress': 0.0, 'arrived': 0}
  config = {'reward_function': 'custom', 'reward_weights': weights}
  assert not env_config.complete(config)['enable_planner']
  assert rewards.is_lane_based('custom3', {'lane_far': -1})
  for wrong in ({'progres': 1}, {'progress': 'x'}, [1]):
    with pytest.raises(errors.UsageError, match='reward_weights'):
      env_config.complete({'reward_weights': wrong})

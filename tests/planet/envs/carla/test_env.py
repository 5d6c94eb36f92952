"""Episodes: measurements, terminations, failures, determinism."""

import hashlib
import json
import math
import types

import numpy as np
import pytest

from agents.run import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import env_config, measure, policies
from planet.envs.carla.backend import Collision
from planet.envs.carla.env import CarlaEnv
from tests.planet.envs.carla.recorded_world import (
  RecordedBackend,
  frame,
  write_bridge,
)

pytest.importorskip('carla')

SMALL = {'map': 'loop', 'x_res': 32, 'y_res': 32, 'seed': 0}
KEYS = """
  episode_id step x y x_orient y_orient forward_speed distance_to_goal
  distance_to_goal_euclidean collision_vehicles collision_pedestrians
  collision_other intersection_offroad intersection_otherlane collided weather
  map start_coord end_coord current_scenario num_vehicles num_pedestrians
  max_steps next_command next_command_id displacement is_near_intersection
  goal_heading_degree current_heading_degree angular_speed_degree action
  control reward total_reward done
""".split()


def recorded(frames, repeat=False, **config):
  backend = RecordedBackend(frames, repeat)
  env = CarlaEnv({'map': 'loop', 'seed': 0, **config}, backend)
  return env, backend


def run(env, count, action=(0.0, 0.0)):
  """Rewards and infos of some steps after a reset."""
  env.reset()
  steps = [env.step(np.float32(action)) for _ in range(count)]
  return [x[1] for x in steps], [x[3] for x in steps]


def digest(env, seed, steps=100):
  env.seed(seed)
  policy, sha = policies.uniform(seed, (-0.2, 1)), hashlib.sha256()
  env.reset()
  for _ in range(steps):
    observ, reward, _, _ = env.step(policy(env))
    sha.update(env.render().tobytes() + observ['state'].tobytes())
    sha.update(np.float64(reward).tobytes())
  return sha.hexdigest()


def test_equal_seeds_give_equal_bytes():
  """Images, states and rewards of 100 steps, in rain with traffic."""
  config = SMALL | {'vehicles': 10, 'pedestrians': 10, 'weather': 6}
  env = CarlaEnv(config)
  first = digest(env, 3)
  assert digest(env, 4) != first
  assert digest(env, 3) == first
  assert digest(CarlaEnv(config), 3) == first


def test_measurements_are_plain_and_complete():
  env = CarlaEnv(SMALL | {'enable_planner': True, 'map': 'grid'})
  _, infos = run(env, 3, (1.0, 0.0))
  assert set(infos[-1]) == set(KEYS)
  assert json.loads(json.dumps(infos[-1]))['step'] == 3
  assert infos[-1]['distance_to_goal'] > 0
  assert infos[-1]['forward_speed'] > 0


def test_observations_and_actions():
  env = CarlaEnv(SMALL)
  assert env.action_space.shape == (2,)
  assert env.reset()['state'].tolist() == [0, 0, 0, 0, 0]
  for _ in range(20):
    observ, _, _, info = env.step(np.float32([1, 0.1]))
  state = observ['state']
  assert state.dtype == np.float32 and env.render().dtype == np.uint8
  assert state[0] == pytest.approx(info['forward_speed'], rel=1e-5)
  assert state[1] == pytest.approx(info['angular_speed_degree'], rel=1e-4)
  assert state[1] > 0
  zero = CarlaEnv(SMALL | {'state': 'zero'})
  assert zero.reset()['state'].tolist() == [0]
  assert zero.observation_space.spaces['state'].shape == (1,)


@pytest.mark.parametrize(
  'action, control',
  [
    ((0.5, -0.25), (0.5, -0.25, 0)),
    ((-0.5, 0.25), (0, 0.25, 0.5)),
    ((5.0, -3.0), (1, -1, 0)),
  ],
)
def test_controls(action, control):
  env, backend = recorded([frame()], repeat=True)
  env.backend._frames = [frame(), frame()]
  env.reset()
  env.step(np.asarray(action))
  assert backend.controls[-1] == pytest.approx(control, abs=1e-5)


def test_rewards_of_recorded_frames():
  """Speed, then leaving the lane, then one damage for a long contact.

  2 m/s are 7.2 km/h: 0.72. With a third on the other lane 2 * 3 / 3 less.
  """
  contact = [Collision('vehicle', 3000.0)]
  frames = [
    frame(0),
    frame(1, speed=2.0),
    frame(2, y=30.3, speed=2.0),
    frame(3, speed=2.0, collisions=contact),
    frame(4, speed=2.0, collisions=contact),
  ]
  frames += [frame(n, speed=2.0) for n in range(5, 10)]
  frames += [frame(10, speed=2.0, collisions=[Collision('walker', 10.0)])]
  env, _ = recorded(frames)
  rewards, infos = run(env, 10)
  expected = [0.72, 0.72 - 2.0, 0.72 - 300] + [0.72] * 6 + [0.72 - 300]
  assert rewards == pytest.approx(expected)
  assert infos[3]['collision_vehicles'] == 6000
  assert infos[-1]['collision_pedestrians'] == 10
  assert [x['collided'] for x in infos] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
  assert infos[-1]['total_reward'] == pytest.approx(sum(expected))


def test_bridges_are_roads(tmp_path):
  """The height of the vehicle tells roads above each other apart."""
  frames = [
    frame(n, x=1.75, y=38.0 - n, yaw=-90, z=9.0, speed=0.0) for n in range(18)
  ]
  env, _ = recorded(frames, map=write_bridge(tmp_path))
  _, infos = run(env, 17)
  assert [x['intersection_offroad'] for x in infos] == [0] * 17
  assert [x['intersection_otherlane'] for x in infos] == [0] * 17
  assert env.location == (1.75, 21.0, 9.0)


def test_scale_changes_rewards_but_not_reports():
  env, _ = recorded([frame(0), frame(1, speed=5.0)], reward_scale=0.1)
  rewards, infos = run(env, 1)
  assert rewards[0] == pytest.approx(0.18)
  assert infos[0]['reward'] == pytest.approx(1.8)


@pytest.mark.parametrize(
  'touched, collided, new',
  [
    # A wall, for a while.
    ('AAAA', '1000', '1000'),
    # Again, after four and after five steps without it.
    ('A----A', '100000', '100000'),
    ('A-----A', '1000001', '1000001'),
    # Something else meanwhile is a contact, but not yet new damage.
    ('AABAA', '10100', '10000'),
    ('AAAAAABA', '10000010', '10000010'),
  ],
)
def test_contacts_count_when_they_begin(touched, collided, new):
  damage, found = measure.Damage(), []
  for name in touched:
    hits = [] if name == '-' else [Collision('other', 5.0, ord(name))]
    damage.update(hits)
    found.append((int(damage.collided), int(damage.new)))
  assert [''.join(map(str, x)) for x in zip(*found)] == [collided, new]
  assert damage.total == 5.0 * sum(x != '-' for x in touched)


def test_stuck_ends_at_step_90_only():
  """Not before, and not for a car that has moved in the last 30 steps."""
  env, _ = recorded([frame(0), frame(1)], repeat=True)
  _, infos = run(env, 120)
  assert [x['step'] for x in infos if x['done']] == list(range(90, 121))
  moving = [frame(0)] + [frame(n, x=n * 0.01) for n in range(1, 121)]
  env, _ = recorded(moving)
  _, infos = run(env, 120)
  assert not any(x['done'] for x in infos)
  assert infos[-1]['displacement'] == pytest.approx(0.3)
  late = [frame(0)] + [frame(n, x=min(n, 70) * 1.0) for n in range(1, 121)]
  env, _ = recorded(late)
  _, infos = run(env, 120)
  assert [x['step'] for x in infos if x['done']] == [120]


@pytest.mark.parametrize(
  'frames, config, ends',
  [
    # The table allows DEFAULT_SCENARIO 200 steps.
    ([frame(n) for n in range(206)], {}, list(range(201, 206))),
    (
      [frame(0), frame(1, collisions=[Collision('other', 1.0)]), frame(2)],
      {'reward_function': 'lane_keep'},
      [1],
    ),
    (
      [frame(0), frame(1, collisions=[Collision('other', 1.0)]), frame(2)],
      {'reward_function': 'lane_keep', 'early_terminate_on_collision': False},
      [],
    ),
    (
      [frame(0)] + [frame(n, y=60) for n in range(1, 25)],
      {},
      list(range(21, 25)),
    ),
  ],
)
def test_termination_of_rllib(frames, config, ends):
  """Too many steps, a collision, or a return below -100."""
  env, _ = recorded(
    frames, termination='rllib', scenarios='DEFAULT_SCENARIO', **config
  )
  _, infos = run(env, len(frames) - 1)
  assert [x['step'] for x in infos if x['done']] == ends


def test_time_never_ends():
  crash = frame(1, collisions=[Collision('other', 1.0)])
  env, _ = recorded([frame(0), crash], repeat=True, termination='time')
  _, infos = run(env, 150)
  assert not any(x['done'] for x in infos)


def test_goals_end_episodes_or_move_on():
  """`rllib` ends at the goal, `fork` draws another one."""
  for rule in ('rllib', 'fork'):
    env = CarlaEnv(SMALL | {'reward_function': 'custom', 'termination': rule})
    env.reset()
    policy, goal = policies.PurePursuit(), env.route
    for _ in range(1000):
      _, reward, done, info = env.step(policy(env))
      if info['next_command'] == 'REACH_GOAL':
        break
    assert info['next_command_id'] == 0
    assert reward > 90
    assert done == (rule == 'rllib')
    assert (env.route is goal) == (rule == 'rllib')
    # Episodes may go on at the goal, to be long enough for training.
    assert abs(env.step(policy(env))[1]) < 20
    moved = not np.allclose(env.step(policy(env))[3]['end_coord'], goal.goal)
    assert moved == (rule == 'fork')


def test_way_over_a_junction():
  """It goes on straight: from 179 to -179 degrees, they are two, not 358."""

  def at(driven, y=0.0, yaw=179.0):
    def look(ahead):
      end = driven + ahead
      return [at(end)] if end <= 8 else [at(end, 10.0, 90.0), at(end, yaw=-179)]

    location = types.SimpleNamespace(x=-driven, y=y)
    rotation = types.SimpleNamespace(yaw=yaw)
    transform = types.SimpleNamespace(location=location, rotation=rotation)
    return types.SimpleNamespace(transform=transform, next=look)

  env = types.SimpleNamespace(
    measurements={'current_heading_degree': 179.0, 'x': 0.0, 'y': 0.0},
    location=None,
    surroundings=types.SimpleNamespace(nearest=lambda unused_place: at(0.0)),
  )
  _, *way = policies.PurePursuit()._look_for_way(env, range(0, 20, 2))
  assert way == [(-x, 0) for x in range(0, 20, 2)]


def test_progress_is_the_way_driven():
  env = CarlaEnv(SMALL | {'reward_function': 'custom', 'map': 'grid'})
  env.reset()
  policy = policies.PurePursuit()
  infos = [env.step(policy(env))[3] for _ in range(40)]
  gain = infos[0]['distance_to_goal'] - infos[-1]['distance_to_goal']
  driven = sum(x['forward_speed'] for x in infos[1:]) * 0.1
  assert gain == pytest.approx(driven, abs=2.5)


def test_failed_steps_end_episodes_without_an_error():
  """All further steps say so; the next reset begins anew."""
  lost = backend_lib.BackendError('lost')
  env, backend = recorded([frame(0), frame(1, speed=3.0), lost])
  env.reset()
  assert env.step(np.zeros(2))[1] > 0
  observ = env.step(np.zeros(2))
  for _ in range(3):
    observ, reward, done, info = env.step(np.zeros(2))
    assert (reward, done, info) == (0.0, True, {'step_error': True})
    assert observ['state'][0] == 3.0
  env.reset()
  assert 'step_error' not in env.step(np.zeros(2))[3]


def test_five_failed_episodes_are_too_many():
  lost = backend_lib.BackendError('lost')
  env, backend = recorded([frame(0), frame(1), lost])
  for _ in range(5):
    env.reset()
    env.step(np.zeros(2))
    assert env.step(np.zeros(2))[2]
  with pytest.raises(errors.WorkerDeath, match='5 episodes in a row'):
    env.reset()


def test_scripted_drivers():
  """Section 6.4: stand still 0, random about 7, pure pursuit above 200."""
  env = CarlaEnv(SMALL | {'vehicles': 0, 'pedestrians': 0})
  assert policies.play(env, policies.straight_on(0))['return'] == 0
  random = [
    policies.play(env, policies.uniform(seed))['return'] for seed in range(5)
  ]
  assert -8 < np.mean(random) < 22
  result = policies.play(env, policies.PurePursuit(8.0))
  assert result['return'] > 200 and result['collisions'] == 0
  assert policies.play(env, policies.straight_on(1))['return'] < 0


def test_highway_and_speed_tracking_follow_the_lane():
  """Good drivers get about the way driven, or the speed, per step."""
  for name, low, high in (('highway', 40, 80), ('speed_tracking', 200, 700)):
    env = CarlaEnv(SMALL | {'reward_function': name, 'vehicles': 0})
    result = policies.play(env, policies.PurePursuit(7.0))
    assert low < result['return'] < high


@pytest.mark.parametrize(
  'config, message',
  [
    ({'reward_fucntion': 'custom'}, 'Did you mean reward_function'),
    ({'reward_function': 'custom5'}, 'reward_function'),
    ({'scenarios': 'TOWN2_CURVE'}, 'Did you mean'),
    ({'weather': 'Snow'}, 'one of Default'),
    ({'weather': 15}, 'from 0 to 14'),
    ({'x_res': 401}, 'render_x_res is only 400'),
    ({'dt': 2}, 'dt'),
    ({'port': 70000}, 'port'),
    ({'port': '2000'}, 'port'),
    ({'port': 2000.5}, 'port'),
    ({'vehicles': -1}, 'vehicles'),
    ({'log_images': 'False'}, 'log_images'),
    ({'use_sensor': 'depth'}, 'use_sensor'),
  ],
)
def test_bad_settings(config, message):
  with pytest.raises(errors.UsageError, match=message):
    env_config.complete(config)


def test_settings_are_not_shared():
  """The original changed its module-level dictionary."""
  before = dict(env_config.ENV_CONFIG)
  config = env_config.complete({'reward_function': 'custom'})
  config['fov'] = 90
  assert config['enable_planner'] and env_config.ENV_CONFIG == before


def test_headings_are_wrapped():
  assert measure.wrap_degrees(190) == -170
  turning = [frame(0, yaw=179), frame(1, yaw=182)]
  env, _ = recorded(turning)
  _, infos = run(env, 1)
  assert infos[0]['angular_speed_degree'] == pytest.approx(3)
  assert math.isclose(infos[0]['current_heading_degree'], -178)

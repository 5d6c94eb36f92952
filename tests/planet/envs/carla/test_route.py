"""Routes that agents observe, and metrics of episodes."""

import json
import math
import types

import numpy as np
import pytest

from agents.run import files
from planet.envs.carla import (
  env_config,
  planner,
  policies,
  rewards,
  score,
)
from planet.envs.carla import settings as settings_lib
from planet.envs.carla.backend import Collision
from planet.envs.carla.env import CarlaEnv
from planet.scripts import evaluate
from planet.training import playing
from tests.planet.envs.carla.recorded_world import (
  RecordedBackend,
  constructor,
  frame,
)
from tests.planet.envs.carla.test_task import define
from tests.planet.scripts import training_runs

pytest.importorskip('carla')

GRID = dict(map='grid', vehicles=0, pedestrians=0, x_res=32, y_res=32, seed=0)
FOLLOW, STRAIGHT, LEFT, RIGHT = np.eye(4).tolist()


def make(**config):
  return CarlaEnv({**GRID, 'reward_function': 'custom', **config})


def test_routes_are_observed_if_rewards_need_them():
  for name in ('custom', 'corl2017'):
    assert env_config.complete({'reward_function': name})['state'] == 'route'
  assert env_config.complete({})['state'] == 'full'
  assert make().reset()['state'].shape == (14,)
  assert make().observation_space['state'].shape == (14,)
  assert make(state='full').reset()['state'].shape == (5,)
  env = make(reward_function='custom3', state='route')
  assert env.reset()['state'].shape == (14,) and env.route


def test_all_else_stays():
  """Images, rewards and the first five numbers, to the bit."""
  envs = [make(state=x) for x in ('full', 'route')]
  for _ in range(2):
    old, new = (x.reset()['state'] for x in envs)
    for number in range(60):
      assert old.tobytes() == new[:5].tobytes()
      action = np.float32([0.5, 0.1 * math.sin(number)])
      (old, *plain), (new, *more) = (x.step(action) for x in envs)
      assert plain == more
      old, new = old['state'], new['state']
      assert (envs[0].render() == envs[1].render()).all()


def play_back(frames, **config):
  scenario = {'start_pose': [0, 31.75, 0, 0], 'end_pose': [40, 31.75, 0, 0]}
  config = dict(
    map='loop', reward_function='custom', scenarios=scenario, **config
  )
  env = CarlaEnv(config, RecordedBackend(frames, repeat=True))
  return env, env.reset()['state']


def test_what_is_seen_of_a_route():
  """Forward and right in 10 m, the distance in 100 m; it ends at the goal."""
  _, state = play_back([frame()])
  np.testing.assert_allclose(state[5:9], FOLLOW)
  np.testing.assert_allclose(state[9:13], [1, 0, 2, 0], atol=0.01)
  assert state[13] == pytest.approx(0.4, abs=0.01)
  # A car that heads to the right sees the route at its left.
  _, state = play_back([frame(yaw=90.0)])
  np.testing.assert_allclose(state[9:13], [0, -1, 0, -2], atol=0.01)
  _, state = play_back([frame(x=35.0)])
  np.testing.assert_allclose(state[9:13], [0.5, 0, 0.5, 0], atol=0.05)


def drive(env, steps, driver=None):
  """States of an episode."""
  driver = driver or policies.PurePursuit()
  states = [env.reset()['state']]
  for _ in range(steps):
    states.append(env.step(driver(env))[0]['state'])
  return np.array(states)


def test_commands_are_those_of_the_next_junction():
  """Before a turn to the left the way leads to the left, and so on."""
  env = make(termination='time')
  seen = {}
  for _ in range(6):
    for state in drive(env, 120):
      command = tuple(state[5:9])
      seen.setdefault(command, []).append(state[9:13])
  assert set(seen) <= set(map(tuple, (FOLLOW, STRAIGHT, LEFT, RIGHT)))
  right = {x: np.array(seen[tuple(x)])[:, 3] for x in map(tuple, (LEFT, RIGHT))}
  assert np.mean(right[tuple(LEFT)]) < -0.3 < 0.3 < np.mean(right[tuple(RIGHT)])
  sideways = np.abs(np.array(seen[tuple(STRAIGHT)])[:, 3])
  assert sideways.mean() < 0.3


@pytest.mark.slow
def test_a_driver_that_sees_the_route_turns_where_it_is_told():
  """One that does not takes the straightest way at each junction."""
  shares = {}
  for name in ('custom', 'custom3'):
    env = make(reward_function=name, termination='time')
    found = []
    for _ in range(5):
      drive(env, 250)
      found.append(env.metrics)
    together = settings_lib.Settings.summarize(found)
    assert sum(x['junctions'] for x in found) > 5
    shares[name] = together['share of junctions']
  assert shares['custom'] > 0.95 > 0.8 > shares['custom3']


def test_progress_does_not_jump_in_junctions():
  """Lanes overlap there; the distance to the goal is that on the route."""
  env = make(termination='time')
  driver, inside = policies.PurePursuit(), 0
  for _ in range(4):
    env.reset()
    before = env.measurements
    for _ in range(150):
      env.step(driver(env))
      now = env.measurements
      lane, _ = env.surroundings.locate(env.location)
      progress = before['distance_to_goal'] - now['distance_to_goal']
      if env.backend.lanes.all[lane].junction is not None:
        inside += 1
        assert abs(progress - now['forward_speed'] * env.dt) < 2
      if now['next_command'] == 'REACH_GOAL':
        break
      before = now
  assert inside > 50


def test_leaving_the_route_can_cost():
  """Once for each time; a driver that obeys pays nothing."""
  weights = {x: 0 for x in rewards.WEIGHTS['custom']}
  env = make(reward_weights={**weights, 'left_route': -30}, termination='time')
  drive(env, 200)
  assert env.metrics['junctions'] and not env.metrics['unscaled return']
  found = []
  for _ in range(8):
    env.reset()
    straight = policies.PurePursuit()
    ways = []
    for _ in range(120):
      # This driver sees no route and takes the straightest way.
      route, env.route = env.route, None
      action = straight(env)
      env.route = route
      ways.append(env.step(action)[1])
    now = env.metrics
    missed = now['junctions'] - now['junctions as commanded']
    assert set(ways) <= {0, -30} and sum(ways) == -30 * missed
    found.append(missed)
  assert sum(found) > 3


def test_a_car_that_passes_its_goal_has_not_left_the_route():
  lanes = make().backend.lanes
  first = next(n for n, x in enumerate(lanes.all) if x.length > 40)
  other = next(n for n in range(len(lanes.all)) if n != first)
  route = planner.Route(lanes, (first, 20.0))
  for arc in (10.0, 19.0, 30.0):
    route.track(first, arc, lanes.all[first].at(arc)[:2])
    assert not route.departed
  far = 1e4, 1e4
  route.track(other, 0.0, far)
  assert route.departed
  route.track(other, 1.0, far)
  assert not route.departed


def test_scripted_driver_of_towns():
  """It slows down before curves and for others; see the table in results."""
  for vehicles in (0, 10):
    env = CarlaEnv({**GRID, 'vehicles': vehicles})
    found = [policies.play(env, policies.PurePursuit(8.0)) for _ in range(6)]
    assert np.mean([x['return'] for x in found]) > 150
    assert sum(x['collisions'] > 0 for x in found) <= vehicles / 5


def test_stored_runs_keep_their_state(tmp_path):
  """A run of before did not observe routes, whatever it has stored."""
  for number, values in enumerate([{}, {'carla_state': 'full'}]):
    stored = {'version': 1, 'config': 'debug', 'seed': None}
    stored['params'] = {'tasks': ['carla'], 'carla_reward': 'custom'}
    stored['values'] = values
    folder = tmp_path / str(number)
    folder.mkdir()
    files.write_yaml(str(folder / 'config.yaml'), stored)
    (task,) = define(logdir=str(folder)).tasks
    assert task.settings['reward_function'] == 'custom'
    assert task.settings['state'] == 'full'
  (task,) = define(carla_reward='custom').tasks
  assert task.settings['state'] == 'auto'


def test_metrics():
  """Contacts and departures count once; only progress in the lane counts."""
  at = [frame(x=float(x), speed=10.0) for x in range(4)]
  # Off the road, then in the other lane, which is one departure.
  at += [frame(x=4.0, y=40.0, speed=10.0), frame(x=5.0, y=28.25, speed=10.0)]
  at += [
    frame(
      x=20.0, speed=10.0, collisions=[Collision('vehicle', 1.0, n)], number=n
    )
    for n in (1, 1, 2)
  ]
  env, _ = play_back(at, reward_scale=0.2)
  total = sum(env.step(np.zeros(2))[1] for _ in range(8))
  found = env.metrics
  assert found['unscaled return'] == pytest.approx(5 * total)
  assert found['route completion'] == pytest.approx(0.5, abs=0.02)
  assert found['kilometres'] == pytest.approx(0.008)
  assert found['collisions'] == 2 and found['lane departures'] == 1
  # Two of eight meters were elsewhere, and two cars were hit.
  expected = 100 * found['route completion'] * 0.75 * 0.6**2
  assert found['driving score'] == pytest.approx(expected)
  assert found['collisions per km'] is None
  many = score.rates([found] * 5)
  assert many['collisions per km'] == pytest.approx(250)
  assert many['share of junctions'] is None


def test_goals_complete_routes():
  frames = [frame(x=x, speed=10.0) for x in (0.0, 20.0, 39.0, 60.0, 80.0)]
  env, _ = play_back(frames)
  for _ in range(4):
    env.step(np.zeros(2))
  assert env.metrics['route completion'] == 1


@pytest.mark.slow
def test_model_of_images_and_states(tmp_path, capsys):
  """It trains and plays; an evaluation prints and keeps the metrics."""
  params = dict(
    tasks=['carla'],
    observations='both',
    env=dict(
      backend='offline', map='grid', image_size=32, reward_function='custom'
    ),
  )
  training_runs.train_here(tmp_path, params)
  run = training_runs.run_dir(tmp_path)
  args = ['--logdir', str(tmp_path), '--episodes', '2', '--video']
  assert evaluate.run(args) == 0
  output = capsys.readouterr().out
  assert '(scaled)' in output and 'unscaled return' in output
  assert 'All episodes of carla: unscaled return' in output
  with open(f'{run}/evaluations.jsonl') as file_:
    row = json.loads(file_.read())
  assert row['all'].keys() == row['episodes'][0].keys()
  assert 'route completion' in row['all'] and len(row['episodes']) == 2


def test_observations_of_both_kinds():
  """Images and vectors in one array, as the graph takes them."""
  from planet.envs import constructors

  env = constructor(20, 20, map='grid', reward_function='custom')()
  keys = ['image', 'state']
  joined = constructors.join(env, keys)
  size = 32 * 32 * 3
  assert joined.observation_space.shape == (size + 14,)
  joined.seed(0)
  observ = joined.reset()
  assert observ.dtype == np.float32
  env.seed(0)
  parts = env.reset()
  assert (observ[:size] == parts['image'].ravel()).all()
  assert (observ[size:] == parts['state']).all()
  agent = types.SimpleNamespace(_image=(32, 32, 3))
  (image,) = playing.PlaNet.split_images(agent, observ[None])
  assert image.dtype == np.uint8 and (image == parts['image']).all()

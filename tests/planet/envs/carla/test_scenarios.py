"""Scenarios of the table and own ones, and the trips that they lead to."""

import pytest

from agents.run import errors
from planet.envs.carla import env_config, planner, scenarios
from planet.envs.carla.env import CarlaEnv
from tests.planet.envs.carla.recorded_world import RecordedBackend, frame

pytest.importorskip('carla')

SMALL = {'map': 'loop', 'x_res': 32, 'y_res': 32, 'seed': 0}


def test_scenarios():
  """Names, towns and maps of the table."""
  assert len(scenarios.SCENARIOS) == 21
  (default,) = scenarios.find('TOWN2_ONE_CURVE_0')
  assert (default.num_vehicles, default.num_pedestrians) == (20, 70)
  assert {x.city for x in scenarios.find('TOWN1_ALL')} == {'Town01'}
  assert len(scenarios.find('TOWN2_ALL')) == 13
  assert env_config.complete({})['map'] == 'grid'
  assert env_config.complete({'scenarios': 'LANE_KEEP'})['map'] == 'loop'


def test_lists_of_scenarios():
  """Each episode draws one of them, which may be names or mappings."""
  config = SMALL | {
    'scenarios': ['LANE_KEEP', {'name': 'mine', 'num_vehicles': 3}]
  }
  env = CarlaEnv(config)
  names = set()
  for _ in range(8):
    env.reset()
    now = env.measurements
    assert (
      now['num_vehicles']
      == {'LANE_KEEP': 0, 'mine': 3}[now['current_scenario']]
    )
    names.add(now['current_scenario'])
  assert names == {'LANE_KEEP', 'mine'}
  assert len(scenarios.find(['TOWN1_ALL', 'TOWN2_ALL'])) == 17
  assert scenarios.find(scenarios.find('TOWN2_ALL')) == scenarios.find(
    'TOWN2_ALL'
  )


def test_own_scenario():
  """Start, goal, weather and traffic are the given ones."""
  mine = {
    'city': 'Town02',
    'num_vehicles': 2,
    'num_pedestrians': 1,
    'weather_distribution': ['WetNoon', 6],
    'max_steps': 300,
    'start_pose': [-40, 31.75, 0, 0],
    'end_pose': [40, 31.75, 0, 0],
  }
  env = CarlaEnv(SMALL | {'scenarios': mine, 'enable_planner': True})
  weathers = set()
  for _ in range(8):
    env.reset()
    now = env.measurements
    assert now['start_coord'] == (now['x'], now['y']) == (-40, 31.75)
    assert now['end_coord'] == pytest.approx((40, 31.75), abs=0.6)
    assert now['distance_to_goal'] == pytest.approx(80, abs=1.5)
    assert (now['num_vehicles'], now['num_pedestrians']) == (2, 1)
    assert now['max_steps'] == 300 and now['current_scenario'] == 'own'
    weathers.add(now['weather'])
  assert weathers == {'WetNoon', 'HardRainNoon'}


def test_own_scenario_of_the_original_form():
  """The seven keys of the record, with indices of spawn points."""
  mine = {
    'city': 'Town02',
    'num_vehicles': 0,
    'num_pedestrians': 0,
    'weather_distribution': [0],
    'start_pos_id': 3,
    'end_pos_id': 8,
    'max_steps': 200,
  }
  env = CarlaEnv(SMALL | {'scenarios': [mine]})
  env.reset()
  points, now = env.backend.spawn_points(), env.measurements
  assert now['start_coord'] == points[3][:2]
  assert now['end_coord'] == pytest.approx(points[8][:2], abs=0.6)


@pytest.mark.parametrize(
  'scenario, message',
  [
    ({'start_pose': [0, 60, 0, 0]}, 'start_pose.*28 m from the nearest lane'),
    ({'end_pos_id': 1000}, 'end_pos_id 1000, but the map'),
    (
      {'start_pose': [0, 31.75, 0, 0], 'end_pose': [0, 28.25, 0, 180]},
      'has no route from its start',
    ),
  ],
)
def test_own_scenario_that_the_map_cannot_have(scenario, message):
  """Said when the environment is created, before any episode."""
  with pytest.raises(errors.UsageError, match=message):
    CarlaEnv(SMALL | {'scenarios': scenario})


@pytest.mark.parametrize(
  'config, message',
  [
    ({'scenarios': []}, 'scenarios'),
    ({'scenarios': ['LANE_KEEP', 'TOWN2_CURVE']}, 'Did you mean'),
    ({'scenarios': [3]}, 'Scenario 3 is unknown'),
    ({'scenarios': {'num_vehicle': 3}}, 'Did you mean num_vehicles'),
    ({'scenarios': {'num_vehicles': -3}}, 'num_vehicles'),
    ({'scenarios': {'max_steps': 0}}, 'max_steps'),
    ({'scenarios': {'city': 2}}, 'name of a town'),
    ({'scenarios': {'kinds': 'curve'}}, 'straight, one_curve, nav'),
    ({'scenarios': {'weather_distribution': ['Snow']}}, 'one of Default'),
    ({'scenarios': {'weather_distribution': []}}, 'weather_distribution'),
    ({'scenarios': {'start_pose': [0, 0]}}, 'x, y and z in meters'),
    ({'scenarios': {'start_pose': [0, 0, 0, 'a']}}, 'x, y and z in meters'),
    (
      {'scenarios': {'end_pose': [0, 0, 0, 0], 'end_pos_id': 3}},
      'end_pose and end_pos_id; give one',
    ),
  ],
)
def test_bad_scenarios(config, message):
  with pytest.raises(errors.UsageError, match=message):
    env_config.complete(config)


@pytest.mark.parametrize(
  'scenario, kinds', [('LANE_KEEP', {'straight'}), ('TOWN2_ONE_CURVE_0', None)]
)
def test_blocked_start(scenario, kinds, caplog):
  """The car stands on the other lane, from which no way led to the goal."""
  caplog.set_level('INFO')
  elsewhere = frame(0, x=45.0, y=28.25, yaw=180.0)
  config = {'map': 'loop', 'seed': 0, 'scenarios': scenario}
  env = CarlaEnv(
    {**config, 'enable_planner': True}, RecordedBackend([elsewhere])
  )
  env.reset()
  now = env.measurements
  assert now['start_coord'] == (45.0, 28.25)
  assert 80 <= now['distance_to_goal'] <= 600
  assert now['end_coord'] == env.route.goal
  if kinds:
    lanes = env.backend.lanes
    start = lanes.locate(env.surroundings.nearest(env.location))
    path = env.route.lanes_from(*start)
    goal = env.route.goal_arc
    assert planner.classify(lanes, path, start[1], goal) in kinds
  assert 'is blocked' in caplog.text


@pytest.mark.parametrize(
  'actual, goal',
  [
    (frame(0, x=-20.0), (40, 31.75)),
    (frame(0, x=45.0, y=28.25, yaw=180.0), None),
  ],
)
def test_blocked_start_with_a_goal(actual, goal):
  """A goal that the scenario names is kept if a way leads there."""
  mine = {'start_pose': [-40, 31.75, 0, 0], 'end_pose': [40, 31.75, 0, 0]}
  config = {'map': 'loop', 'seed': 0, 'scenarios': mine}
  env = CarlaEnv({**config, 'enable_planner': True}, RecordedBackend([actual]))
  env.reset()
  now = env.measurements
  if goal:
    assert now['end_coord'] == pytest.approx(goal, abs=0.6)
    assert now['distance_to_goal'] == pytest.approx(60, abs=1.5)
  else:
    assert 80 <= now['distance_to_goal'] <= 600


FILE = """
# Two of the table, and two of our own.
- TOWN1_STRAIGHT
- name: market
  city: Town02
  start_pose: [-40, 31.75, 0, 0]
  end_pose: [40, 31.75, 0, 0]
  weather_distribution: [WetNoon, 6]
- {num_vehicles: 3, kinds: straight}
- TOWN1_NAVIGATION
"""


def test_scenarios_of_a_file(tmp_path):
  """As if they were given themselves, also beside others."""
  path = str(tmp_path / 'mine.yaml')
  (tmp_path / 'mine.yaml').write_text(FILE)
  found = scenarios.find(path)
  names = ['TOWN1_STRAIGHT', 'market', 'own', 'TOWN1_NAVIGATION']
  assert [x.name for x in found] == names
  assert found[1].start_pose == (-40, 31.75, 0, 0)
  assert found[1].weather_distribution == (3, 6)
  both = scenarios.find(['LANE_KEEP', path])
  assert both == scenarios.SCENARIOS['LANE_KEEP'] + found
  assert scenarios.find(scenarios.load(['LANE_KEEP', path])) == both
  (tmp_path / 'one.yml').write_text('{name: alone, num_vehicles: 1}')
  (one,) = scenarios.find(str(tmp_path / 'one.yml'))
  assert one.name == 'alone' and one.num_vehicles == 1
  env = CarlaEnv(SMALL | {'scenarios': str(tmp_path / 'one.yml')})
  env.reset()
  assert env.measurements['current_scenario'] == 'alone'


@pytest.mark.parametrize(
  'text, message',
  [
    (None, 'mine.yaml: No such file or directory. Give a YAML file'),
    ('', 'no scenarios in .*mine.yaml'),
    ('[]', 'no scenarios in .*mine.yaml'),
    ('- {city: [', 'Cannot read scenarios from .*mine.yaml.*line'),
    (
      '- LANE_KEEP\n- {num_vehicle: 3}',
      'mine.yaml, scenario 2: .*num_vehicles',
    ),
    (
      '- LANE_KEEP\n- LANE_KEEP1',
      "mine.yaml, scenario 2: .*'LANE_KEEP1' is un",
    ),
    ('- {city: Town01, city: Town02}', 'duplicate'),
    ('- 3', 'scenario 1: Scenario 3 is unknown'),
    ('- other.yaml', "scenario 1: Scenario 'other.yaml' is unknown"),
    ('market: {city: Town01}', "scenario 1: Key 'market' of a scenario"),
  ],
)
def test_bad_files_of_scenarios(tmp_path, text, message):
  """Errors name the file, and which of its scenarios is wrong."""
  path = tmp_path / 'mine.yaml'
  if text is not None:
    path.write_text(text)
  with pytest.raises(errors.UsageError, match=message):
    scenarios.find(str(path))

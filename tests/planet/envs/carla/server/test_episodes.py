"""How episodes are driven on a server."""

import contextlib

import numpy as np
import pytest

carla = pytest.importorskip('carla')

from agents.run import errors  # noqa: E402
from planet.envs.carla import scenarios, sensors  # noqa: E402
from planet.envs.carla.env import CarlaEnv  # noqa: E402
from planet.envs.collect_dataset import CollectGymDataset  # noqa: E402
from tests.planet.envs.carla.recorded_world import constructor  # noqa: E402


@pytest.fixture
def make_env(server):
  """Function that makes an environment on the server, with other settings."""
  with contextlib.ExitStack() as stack:
    yield lambda **changes: stack.enter_context(
      contextlib.closing(CarlaEnv(server.config(**changes)))
    )


def find(server, kind):
  return [x for x in server.look().actors if x.type.startswith(kind)]


def connect(server):
  """Client of another user."""
  client = carla.Client('127.0.0.1', server.port)
  client.set_timeout(10.0)
  return client


def find_others(server):
  return [x for x in find(server, 'vehicle') if not x.role.endswith('_ego')]


def test_session_and_episode(server):
  """Synchronous while we drive, everything as before when we have left."""
  env = CarlaEnv(server.config())
  state = server.look()
  assert state.synchronous and state.dt == pytest.approx(0.1)
  env.reset()
  actors = server.look().actors
  kinds = sorted(x.type.split('.')[0] for x in actors)
  assert kinds == ['controller'] * 2 + ['sensor'] * 2 + (
    ['vehicle'] * 4 + ['walker'] * 2
  )
  # The next run finds what a killed one has left by its role.
  roles = 'ego', 'traffic', 'walker', 'controller', 'camera', 'collision'
  assert {x.role for x in actors} == {f'reference_agents_{x}' for x in roles}
  speed = 0
  for _ in range(10):
    _, reward, done, info = env.step(np.float32([0.5, 0.2]))
    assert info['forward_speed'] > speed and not done
    speed = info['forward_speed']
  assert reward != 0 and info['angular_speed_degree'] > 0
  assert info['control'] == pytest.approx((0.5, 0.2, 0.0))
  # The image is the one of this tick, in the order RGB.
  image = env.render()
  assert image.shape == (32, 32, 3)
  assert image[0, 0, :2].tolist() == [server.look().frame % 200, 20]
  env.close()
  state = server.look()
  assert not state.actors and not state.managers and not state.synchronous
  assert not state.unknown
  gone = [x.split('.')[0] for x in state.destroyed]
  assert gone[:3] == ['sensor', 'sensor', 'controller']


@pytest.mark.parametrize('expert', [None, 'autopilot'])
def test_cars_obey_the_throttle_at_once(server, make_env, expert):
  """Those of CARLA do not for 50 ticks, unless a gear is engaged by hand."""
  server.set(neutral=50)
  env = make_env(vehicles=0, pedestrians=0, expert=expert)
  env.reset()
  for _ in range(10):
    info = env.step(np.float32([1.0, 0.0]))[3]
  assert info['forward_speed'] > 1


def test_traffic_and_pedestrians_move(server, make_env):
  """The client drives them, each on its ground."""
  env = make_env(vehicles=5, pedestrians=5)
  env.reset()
  before = {x.id: x.position for x in server.look().actors}
  for _ in range(20):
    env.step(np.zeros(2))
  others = find_others(server)
  for actors, least in ((others, 5.0), (find(server, 'walker'), 0.5)):
    moved = [
      np.hypot(*np.subtract(x.position, before[x.id])[:2]) for x in actors
    ]
    assert len(moved) == 5 and sum(x > least for x in moved) >= 3
  places = [(x.position[0], x.position[1]) for x in others]
  np.testing.assert_allclose(sorted(env.backend.others()), sorted(places), 1e-4)


def test_traffic_manager_exists_only_with_traffic(server):
  env = CarlaEnv(server.config(vehicles=0))
  env.reset()
  assert not server.look().managers
  env.close()
  env = CarlaEnv(server.config())
  for _ in range(2):
    env.reset()
    assert len(server.look().managers) == 1
  env.close()
  assert not server.look().managers


def test_resets_do_not_pile_up_actors(server, make_env):
  env = make_env()
  for _ in range(4):
    env.reset()
    env.step(np.zeros(2))
    assert len(server.look().actors) == 10


def test_blocked_starts(server, make_env):
  """The route begins where the car has found a place."""
  env = make_env(reward_function='custom', vehicles=0, retries=1)
  for blocked in range(4):
    server.set(blocked=blocked)
    env.reset()
    x, y, _ = env.location
    now = env.measurements
    assert now['start_coord'] == pytest.approx((x, y), abs=1)
    assert 80 <= now['distance_to_goal'] <= 600
    lane, arc = env.backend.lanes.locate(env.surroundings.nearest(env.location))
    assert now['distance_to_goal'] == env.route.distance(lane, arc)
  server.set(blocked=1000)
  with pytest.raises(errors.WorkerDeath, match='is free for the ego vehicle'):
    env.reset()


def test_traffic_keeps_away_from_the_start(server, make_env):
  """Though clients do not know where a new car is until the next tick."""
  env = make_env(vehicles=100)
  env.reset()
  others = [x.position[:2] for x in find_others(server)]
  distances = np.hypot(*(np.array(others) - env.location[:2]).T)
  # There are 18 places; the neighbors of the start stay free.
  assert len(others) in (15, 16) and min(distances) > 8


def test_what_finds_no_place_is_left_out(server, make_env):
  """The rest of its batch is there."""
  others = connect(server).get_world()
  points = others.get_map().get_spawn_points()[::3]
  blueprint = others.get_blueprint_library().find('vehicle.audi.tt')
  parked = [others.spawn_actor(blueprint, point).id for point in points]
  env = make_env(vehicles=100)
  env.reset()
  cars = find_others(server)
  assert {x.id for x in cars if x.role == 'autopilot'} == set(parked)
  ours = [x for x in cars if x.role == 'reference_agents_traffic']
  assert 7 <= len(ours) <= 18 - len(parked)
  assert len(env.backend.others()) == len(ours)


@pytest.mark.parametrize('dt', [0.02, 0.5])
def test_physics_keep_the_limits_of_the_library(make_env, server, dt):
  """There may be 16 substeps."""
  make_env(dt=dt)
  *_, substeps, longest, count, _, _, _, _, _ = server.look().settings
  assert server.look().dt == pytest.approx(dt)
  assert substeps and 1 <= count <= 16 and longest * count >= dt


def test_collisions_of_a_tick(server, make_env):
  env = make_env()
  env.reset()
  server.hit('vehicle', 500.0)
  server.hit('walker', 20.0)
  server.hit('wall', 7.0)
  # The image comes after all three events, which may arrive apart.
  server.set(image_delay=0.3)
  _, reward, _, info = env.step(np.zeros(2))
  assert reward == -300
  kinds = 'vehicles', 'pedestrians', 'other'
  assert [info[f'collision_{x}'] for x in kinds] == [500, 20, 7]
  assert info['collided'] == 1
  assert env.step(np.zeros(2))[3]['collided'] == 0


def test_weather_reaches_the_server(server, make_env):
  """The pictures of this server are brighter the higher the sun stands."""
  bright = []
  for weather in ('ClearNoon', 'CloudySunset'):
    env = make_env(weather=weather)
    env.reset()
    bright.append(env.render()[..., 2].mean())
    env.close()
  assert bright[0] > bright[1] + 20


@pytest.mark.parametrize('name', scenarios.WEATHERS)
def test_weathers_are_those_of_the_package(name):
  weather = getattr(carla.WeatherParameters, name)
  assert isinstance(weather, carla.WeatherParameters)


@pytest.mark.parametrize('name', sensors.SENSORS)
def test_sensors(server, make_env, name):
  """Each has its blueprint and its bytes; two see from the left and right."""
  sensor = sensors.SENSORS[name]
  env = make_env(vehicles=0, pedestrians=0, use_sensor=name)
  env.reset()
  env.step(np.zeros(2))
  cameras = find(server, 'sensor.camera')
  kinds = [f'sensor.camera.{sensor.camera}'] * sensor.cameras
  assert [x.type for x in cameras] == kinds
  sides = [x.position[1] for x in cameras]
  assert sides == [[], [0.0], [-0.25, 0.25]][len(cameras)]
  image = env.render()
  assert image.shape == (32, 32, sensor.channels) and image.dtype == np.uint8
  if sensor.camera == 'rgb':
    number = server.look().frame % 200
    for index, side in enumerate(sides):
      # The picture from above comes last.
      red, green, _ = image[0, 0, 3 * index : 3 * index + 3].tolist()
      assert (red, green) == (number, 20 + round(40 * side))
  if sensor.camera == 'semantic_segmentation':
    colors = set(map(tuple, sensors.PALETTE.tolist()))
    assert set(map(tuple, image.reshape(-1, 3).tolist())) <= colors
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 20


def test_routes_are_observed(make_env):
  env = make_env(reward_function='custom', vehicles=0, pedestrians=0)
  state = env.reset()['state']
  before = state[13]
  assert state.shape == (14,) and state[5:9].tolist() == [1, 0, 0, 0]
  np.testing.assert_allclose(state[9:13], [1, 0, 2, 0], atol=0.1)
  for _ in range(20):
    state = env.step(np.float32([1, 0]))[0]['state']
  way = env.metrics['kilometres'] * 10
  assert before - state[13] == pytest.approx(way, abs=0.05) and way > 0.02
  assert 0 < env.metrics['route completion'] < 1


def test_autopilot(server):
  """The traffic manager drives, also without traffic; we record what it did."""
  settings = server.config(vehicles=0, pedestrians=0)
  settings = {k: v for k, v in settings.items() if k not in ('x_res', 'y_res')}
  settings.update(expert='autopilot', initial=True)
  env = constructor(20, 20, 2, **settings)()
  env = CollectGymDataset(env, None)
  env.reset()
  (ego,) = find(server, 'vehicle')
  for _ in range(20):
    # Nobody asks what the policy wants.
    info = env.step(-np.ones(2, np.float32))[3]
  assert len(server.look().managers) == 1
  (after,) = find(server, 'vehicle')
  assert np.hypot(*np.subtract(after.position, ego.position)[:2]) > 5
  throttle = info['episode']['action'][1:, 0]
  assert throttle.max() > 0.3 and throttle.min() > -1
  env.close()
  assert not server.look().managers

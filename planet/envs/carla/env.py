"""Driving environment: episodes, measurements and rewards."""

import dataclasses
import functools
import logging
import math
from typing import Any

import numpy as np

from agents.envs import spaces
from agents.run import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import (
  birdseye,
  env_config,
  episode_log,
  places,
  planner,
  rewards,
  scenarios,
  score,
  sensors,
  termination,
  trips,
)
from planet.envs.carla import measure as measure_lib
from planet.envs.carla.offline import world as offline
from planet.envs.carla.server import isolated

_FAILED_EPISODES = 5
_STATE = """
  forward_speed angular_speed_degree intersection_offroad
  intersection_otherlane collided
""".split()


class CarlaEnv:
  """Driving environment; see docs/carla.md for rewards and terminations.

  Observations are dicts with `state`, float32 [5]: forward speed in m/s, turn
  in degrees per step, fractions of the car off the road and on wrong lanes, and
  whether it collided. If the route is observed, there are nine more numbers,
  see `planner.Route.observe`. `render` returns the image of the sensor. Actions
  are float32 [2] in [-1, 1]: throttle, or brake if negative; and steering,
  positive to the right. An episode may continue after `done`.

  If the world fails, this and all further steps of the episode return the last
  image, reward zero, done, and `info['step_error']`.

  Args:
    config: Dict with any keys of `env_config.ENV_CONFIG`.
    backend: `Backend` that is not open; by default, created from the settings.

  Attributes:
    backend: World.
    surroundings: Positions relative to the map.
    dt: Seconds per step.
    image_channels: Number of channels that `render` returns.
    seconds_to_close: Additional time that `close` may take.

  After the first reset:
    frame: Last frame of the world.
    location: Location of the vehicle.
    measurements: Measurements of the last step, a dict of plain values.
    damage: Collisions of the episode.
    route: Route to the goal if the reward or the state needs one, otherwise
      None.

  Raises:
    UsageError: If the settings are wrong or the world is not available.
  """

  def __init__(
    self,
    config: dict[str, Any] | None = None,
    backend: backend_lib.Backend | None = None,
  ):
    self._config = env_config.complete(config or {})
    self._log = episode_log.EpisodeLog(self._config)
    self.backend = backend or make_backend(self._config['backend'])
    self.seconds_to_close: float = (
      self.backend.seconds_to_close + self._log.seconds_to_close
    )
    self.backend.open(self._config)
    try:
      self.surroundings = measure_lib.Surroundings(
        self.backend.map, self.backend.lanes
      )
      self._trips = trips.Trips(self.backend, self.surroundings)
      for scenario in self._config['scenarios']:
        self._trips.check(scenario)
    except BaseException:
      self.backend.close()
      raise
    reward = self._config['reward_function'], self._config['reward_weights']
    self._reward = rewards.define(*reward)
    self._is_lane_based = rewards.is_lane_based(*reward)
    self.seed(self._config['seed'])
    self._episode = 0
    self._step = self._failures = self._failed_step = 0
    self._failed, self._reason = False, ''
    full = len(_STATE)
    sizes = {'zero': 1, 'full': full, 'route': full + planner.OBSERVATIONS}
    size = sizes[self._config['state']]
    high = np.full(size, np.inf)
    self.observation_space = spaces.dictionary(
      {'state': spaces.box(-high, high)}
    )
    self.action_space = spaces.box(-np.ones(2), np.ones(2))
    self.dt: float = self._config['dt']
    sensor = sensors.SENSORS[self._config['use_sensor']]
    self.image_channels: int = sensor.channels
    self._view: birdseye.View | None = None
    if sensor.above:
      self._view = birdseye.View(
        self.backend.lanes, self._config['x_res'], self._config['y_res']
      )

  @functools.cached_property
  def _roads_above(self):
    return birdseye.Map(self.backend.lanes)

  @property
  def birdseye(self) -> np.ndarray:
    """Bird's-eye map with goal, route, traffic and vehicle; uint8 image."""
    view = self._roads_above.copy()
    if self._goal:
      place = self._trips.locate(self.location)
      view.path(self._goal.way_from(*place), birdseye.WAY)
      view.dot(*self._goal.goal, (90, 230, 250), 3)
    for other in self.backend.others():
      view.dot(*other, birdseye.OTHERS)
    view.dot(*self.location[:2], birdseye.OWN, 3)
    return view.image

  def seed(self, seed: int | None) -> None:
    """Seed all random choices; None for a random seed."""
    self._random = np.random.default_rng(seed)

  def reset(self) -> dict[str, np.ndarray]:
    """Start an episode.

    Returns:
      Observation.

    Raises:
      WorkerDeath: If the last five episodes failed, or the backend is no longer
        available.
    """
    if self._failures >= _FAILED_EPISODES:
      raise errors.WorkerDeath(
        f'{self._failures} episodes in a row have failed; check the CARLA '
        f'server and its log. The last one: {self._reason}'
      )
    if (
      self._failures
      and not self._failed
      and (self._step > self._failed_step or self.measurements['done'])
    ):
      # Shorter episodes, such as the rest of a simulation, prove nothing.
      self._failures = self._failed_step = 0
    self._failed = False
    self._episode += 1
    choices = self._config['scenarios']
    self._scenario = choices[self._random.integers(len(choices))]
    weathers = self._scenario.weather_distribution
    self._weather = weathers[self._random.integers(len(weathers))]
    start, route = self._trips.draw(self._scenario, self._random)
    wanted = backend_lib.Episode(
      start,
      self._weather,
      self._scenario.num_vehicles,
      self._scenario.num_pedestrians,
      seed=int(self._random.integers(2**31 - 1)),
    )
    try:
      frame = self.backend.reset(wanted)
    except backend_lib.BackendError as error:
      raise errors.WorkerDeath(str(error)) from None
    start, self._goal = self._trips.follow(
      self._scenario, start, route, (*frame.location, frame.yaw), self._random
    )
    self.route: planner.Route | None = None
    if self._config['enable_planner']:
      self.route = self._goal
    self._coords = start[:2], self._goal.goal if self._goal else None
    self._step, self._total = 0, 0.0
    self.damage = measure_lib.Damage()
    self._stuck = termination.Stuck(frame.location[:2])
    self._log.begin(self._episode)
    self._place: tuple[int, float] | None = None
    self._follow(frame)
    self._keep(frame, self._measure(frame, None))
    self._score = score.Score(self._find_rest(), self.dt)
    return self._observe()

  def step(
    self, action: np.ndarray
  ) -> tuple[dict[str, np.ndarray], float, bool, dict[str, Any]]:
    """Apply an action for one tick.

    Returns:
      Tuple of observation, reward, whether the episode should end, and dict of
      measurements.
    """
    if self._failed:
      return self._observe(), 0.0, True, {'step_error': True}
    drive, steer = (min(max(float(x), -1.0), 1.0) for x in action)
    control = backend_lib.Control(max(drive, 0.0), steer, max(-drive, 0.0))
    try:
      frame = self.backend.tick(control)
    except backend_lib.BackendError as error:
      return self._fail(error)
    self._step += 1
    last = self.measurements
    self.damage.update(frame.collisions)
    stuck = self._stuck.update(frame.location[:2])
    self._follow(frame)
    now = self._measure(frame, last)
    reward = self._compute_reward(frame, now, last)
    self._total += reward
    now.update(
      action=np.asarray(action).tolist(),
      reward=reward,
      total_reward=self._total,
    )
    now['done'] = termination.should_end(self._config, now, stuck)
    self._keep(frame, now)
    self._score.add(now, self._find_rest())
    goal = self._goal
    if goal and math.dist(frame.location[:2], goal.goal) < planner.ARRIVED:
      self._score.reach()
    info = dict(now)
    if now['next_command'] == 'REACH_GOAL':
      self._renew_goal(frame)
    scaled = reward * self._config['reward_scale']
    return self._observe(), scaled, now['done'], info

  @property
  def metrics(self) -> dict[str, float | None]:
    """Metrics of the episode so far, see `score.Score.summarize`.

    The `unscaled return` ignores `reward_scale`.
    """
    found = self._score.summarize(self.damage, self._goal)
    return {'unscaled return': self._total, **found}

  def find_points(self, distances: list[float]) -> list[places.Point]:
    """Return positions ahead of the car on its route; none without a route."""
    if not (self.route and self._place):
      return []
    return self.route.points(self._place[1], distances)

  def render(self, *unused_args, **unused_kwargs) -> np.ndarray:
    """Return the last image, uint8 [height, width, channels]."""
    return self.frame.image

  def close(self) -> None:
    """Close the world and finish the log."""
    self.backend.close()
    self._log.finish()

  def _renew_goal(self, frame):
    """Choose another goal, if episodes do not end at goals."""
    if self._config['termination'] != 'rllib':
      place = self._trips.locate(frame.location)
      route = planner.draw_goal(self.backend.lanes, place, None, self._random)
      if route:
        assert self.route
        route.junctions, route.obeyed = self.route.junctions, self.route.obeyed
        self.route = self._goal = route
        self._follow(frame)
        self._coords = self._coords[0], route.goal
      # The next reward depends on the change of the distance to the new goal.
      new = self._measure(frame, self.measurements)
      for name in ('distance_to_goal', 'distance_to_goal_euclidean'):
        self.measurements[name] = new[name]

  def _measure(self, frame, last):
    """Return measurements of a frame, without action and reward."""
    scenario = self._scenario
    return {
      **self.surroundings.measure(
        frame, last, self.damage, self.route, self._place
      ),
      'episode_id': self._episode,
      'step': self._step,
      'weather': scenarios.WEATHERS[self._weather],
      'map': self.backend.map.name,
      'start_coord': self._coords[0],
      'end_coord': self._coords[1],
      'current_scenario': scenario.name,
      'num_vehicles': scenario.num_vehicles,
      'num_pedestrians': scenario.num_pedestrians,
      'max_steps': scenario.max_steps,
      'displacement': self._stuck.displacement,
      'action': None,
      'reward': 0.0,
      'total_reward': self._total,
      'done': False,
    }

  def _compute_reward(self, frame, now, last):
    lane = 0.0, 0.0
    if self._is_lane_based:
      lane = self.surroundings.on_lane(
        frame.location, frame.velocity[:2], math.radians(frame.yaw)
      )
    left = bool(self.route and self.route.departed)
    terms = measure_lib.reward_terms(
      now, last, self.damage, left, lane, self.dt
    )
    return float(self._reward(terms))

  def _keep(self, frame, now):
    """Store and log a frame and its measurements."""
    self.location, self.measurements = frame.location, now
    if self._view:
      image = self._see_above(self._view, frame)
      frame = dataclasses.replace(frame, image=image)
    self.frame = frame
    self._log.add_measurements(now)
    self._log.add_image(frame.image)

  def _see_above(self, view, frame):
    """Return the image of a frame with the picture from above."""
    way = np.zeros((0, 2))
    if self.route and self._place:
      way = self.route.way_from(*self._place)
    above = view.draw(frame.location[:2], frame.yaw, way, self.backend.others())
    parts = [x for x in (frame.image, above) if x is not None]
    return np.concatenate(parts, -1)

  def _follow(self, frame):
    """Find the place of the car on its route, or keep the last one."""
    lane, arc = self.surroundings.locate(frame.location)
    if self._goal and lane is not None:
      self._place = self._goal.track(lane, arc, frame.location[:2])

  def _find_rest(self):
    """Return the meters to the goal, or None if they are unknown."""
    if not (self._goal and self._place):
      return None
    rest = self._goal.distance(*self._place)
    return rest if math.isfinite(rest) else None

  def _fail(self, error):
    logging.getLogger(__name__).warning(
      'Step %d of the episode failed: %s', self._step + 1, error
    )
    self._failed, self._reason = True, str(error)
    self._failures += 1
    self._failed_step = max(self._failed_step, self._step)
    self._log.add_measurements(
      {'episode_id': self._episode, 'step_error': str(error)}
    )
    return self._observe(), 0.0, True, {'step_error': True}

  def _observe(self):
    if self._config['state'] == 'zero':
      return {'state': np.zeros(1, np.float32)}
    state = [self.measurements[key] for key in _STATE]
    if self._config['state'] == 'route':
      state += self._observe_route()
    return {'state': np.array(state, np.float32)}

  def _observe_route(self):
    if not (self.route and self._place):
      return [0.0] * planner.OBSERVATIONS
    yaw = math.radians(self.frame.yaw)
    return self.route.observe(*self._place, self.location[:2], yaw)


def make_backend(name: str) -> backend_lib.Backend:
  """Create a backend by its name, `server` or `offline`."""
  worlds = (isolated.IsolatedBackend, offline.OfflineBackend)
  return {x.name: x for x in worlds}[name]()

"""Driving environment: episodes, measurements and rewards over a backend."""

import logging
import math
from typing import Any

import numpy as np

from agents.envs import spaces, video
from agents.run import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import (
  birdseye,
  choice,
  env_config,
  episode_log,
  planner,
  rewards,
  scenarios,
  sensors,
  termination,
  trips,
)
from planet.envs.carla import measure as measure_lib

_FAILED_EPISODES = 5


class CarlaEnv:
  """Drive a car; see docs/carla.md for rewards and terminations.

  Observations are dicts of `state`, float32 [5]: forward speed in m/s, turn
  in degrees per step, shares of the car off the road and on wrong lanes, and
  whether it collided. `render` returns the camera image. Actions are float32
  [2] in [-1, 1]: throttle, or brake if negative; and steering, positive to
  the right. After wanting to end, an episode may be continued.

  A step in which the world fails returns the last image, reward zero, done,
  and `info['step_error']`, as do all further steps of the episode.

  Args:
    config: Dict of some of the keys of `env_config.ENV_CONFIG`.
    backend: `Backend`, by default made and opened by configuration.

  Attributes:
    backend: World.
    surroundings: What is where on the map.
    dt: Seconds per step.
    image_channels: Number of channels that `render` returns.
    seconds_to_close: Time that `close` may take, beyond a few seconds.
    location: Place of the vehicle, from the first reset on.
    route: Way to the goal of this episode, None if there is none.

  Raises:
    UsageError: If the configuration is wrong or the world cannot be had.
  """

  def __init__(
    self,
    config: dict[str, Any] | None = None,
    backend: backend_lib.Backend | None = None,
  ):
    self._config = env_config.complete(config or {})
    self._scenarios = self._config['scenarios']
    self._log = episode_log.EpisodeLog(self._config)
    self.backend = backend or choice.make(self._config['backend'])
    self.seconds_to_close: float = (
      self.backend.seconds_to_close + self._log.seconds_to_close
    )
    self.backend.open(self._config)
    try:
      self.surroundings = measure_lib.Surroundings(self.backend.map)
      self._trips = trips.Trips(self.backend, self.surroundings)
      for scenario in self._scenarios:
        self._trips.check(scenario)
    except BaseException:
      self.backend.close()
      raise
    self._reward = rewards.REWARDS[self._config['reward_function']]
    self.seed(self._config['seed'])
    self._episode = 0
    self._failures = 0
    self._failed = False
    self._roads_above: birdseye.Map | None = None
    self._goal: planner.Route | None = None
    size = 5 if self._config['state'] == 'full' else 1
    high = np.full(size, np.inf)
    self.observation_space = spaces.dictionary(
      {'state': spaces.box(-high, high)}
    )
    self.action_space = spaces.box(-np.ones(2), np.ones(2))
    self.dt: float = self._config['dt']
    sensor = sensors.SENSORS[self._config['use_sensor']]
    self.image_channels: int = sensor.channels
    self.route: planner.Route | None = None
    # Known from the first reset on.
    self.location: Any = None
    self._measurements: Any = None
    self._image: Any = None

  @property
  def measurements(self) -> dict[str, Any]:
    """Measurements of the last step, a dict of plain values."""
    return dict(self._measurements)

  @property
  def birdseye(self) -> np.ndarray:
    """Map from above with goal, way, traffic and vehicle; uint8 image."""
    if self._roads_above is None:
      self._roads_above = birdseye.Map(self.backend.lanes)
    view = self._roads_above.copy()
    x, y = self.location[:2]
    if self._goal:
      place = self._trips.locate(self.location)
      view.path(self._goal.way_from(*place), (70, 120, 230))
      view.dot(*self._goal.goal, (90, 230, 250), 3)
    for other in self.backend.others():
      view.dot(*other, (250, 200, 60))
    view.dot(x, y, (240, 50, 50), 3)
    return view.image

  @property
  def new_damage(self) -> bool:
    """Whether a contact began in the last step."""
    return self._damage.new

  def seed(self, seed: int | None) -> None:
    """Start all random choices anew; None is different each time."""
    self._random = np.random.default_rng(seed)

  def reset(self) -> dict[str, np.ndarray]:
    """Begin an episode.

    Returns:
      Observation.

    Raises:
      UsageError: If the last five episodes all failed, or the backend cannot
        be had any more.
    """
    if self._failures >= _FAILED_EPISODES:
      raise errors.UsageError(
        f'{self._failures} episodes in a row have failed; the CARLA server '
        'does not work.'
      )
    if not self._failed:
      self._failures = 0
    self._failed = False
    self._episode += 1
    self._scenario = self._draw_scenario()
    start, route = self._trips.draw(self._scenario, self._random)
    traffic = self._scenario.num_vehicles, self._scenario.num_pedestrians
    seed = int(self._random.integers(2**31 - 1))
    try:
      frame = self.backend.reset(start, self._weather, *traffic, seed)
    except backend_lib.BackendError as error:
      raise errors.UsageError(str(error)) from None
    start, self._goal = self._trips.follow(
      self._scenario, start, route, (*frame.location, frame.yaw), self._random
    )
    self.route = self._goal if self._config['enable_planner'] else None
    self._coords = start[:2], self._goal.goal if self._goal else None
    self._step, self._total = 0, 0.0
    self._damage = measure_lib.Damage()
    self._stuck = termination.Stuck(frame.location[:2])
    self._measurements = self._measure(frame, None)
    self._record(self._measurements, None, 0.0, False)
    self._image = frame.image
    self._log.begin(self._episode)
    self._log_step(frame, self._measurements)
    return self._observe()

  def step(
    self, action: np.ndarray
  ) -> tuple[dict[str, np.ndarray], float, bool, dict[str, Any]]:
    """Apply an action for one tick.

    Returns:
      Tuple of observation, reward, whether the episode should end, and a dict
      of measurements.
    """
    if self._measurements is None:
      raise RuntimeError('Must reset environment.')
    if self._failed:
      return self._observe(), 0.0, True, {'step_error': True}
    control = self._to_control(action)
    try:
      frame = self.backend.tick(control)
    except backend_lib.BackendError as error:
      return self._fail(error)
    self._step += 1
    last = self._measurements
    self._damage.update(frame.collisions)
    now = self._measure(frame, last)
    reward = self._compute_reward(frame, now, last)
    self._total += reward
    stuck = self._stuck.update(frame.location[:2])
    self._record(now, action, reward, False)
    now['done'] = termination.should_end(
      self._config['termination'],
      now,
      stuck,
      self._config['early_terminate_on_collision'],
    )
    self._measurements = now
    self._image = frame.image
    self._log_step(frame, now)
    info = dict(now)
    if now['next_command'] == 'REACH_GOAL':
      self._renew_goal(frame)
    scaled = reward * self._config['reward_scale']
    return self._observe(), scaled, now['done'], info

  def render(self, *unused_args, **unused_kwargs) -> np.ndarray:
    """Return the last image, uint8 [height, width, channels]."""
    return self._image

  def close(self) -> None:
    """Give the world back, and complete what is logged."""
    self.backend.close()
    self._log.finish()

  def _draw_scenario(self):
    scenario = self._scenarios[self._random.integers(len(self._scenarios))]
    config = self._config
    weathers = scenario.weather_distribution
    self._weather = config['weather']
    if self._weather is None:
      self._weather = int(weathers[self._random.integers(len(weathers))])
    traffic = {
      f'num_{kind}': config[kind]
      for kind in ('vehicles', 'pedestrians')
      if config[kind] is not None
    }
    return scenario.model_copy(update=traffic)

  def _renew_goal(self, frame):
    """Drive on to another goal, if episodes do not end at goals."""
    if self._config['termination'] != 'rllib':
      route = self._trips.draw_goal(frame.location, None, self._random)
      self.route = self._goal = route or self.route
      # The next reward compares with the distance to the new goal.
      new = self._measure(frame, self._measurements)
      for name in ('distance_to_goal', 'distance_to_goal_euclidean'):
        self._measurements[name] = new[name]

  def _measure(self, frame, last):
    self.location = frame.location
    return measure_lib.measure(
      self.surroundings,
      self.backend.lanes,
      frame,
      last,
      self._damage,
      self.route,
    )

  def _compute_reward(self, frame, now, last):
    lane = None
    if self._config['reward_function'] in rewards.LANE_BASED:
      lane = self.surroundings.on_lane(
        frame.location, frame.velocity[:2], math.radians(frame.yaw)
      )
    terms = measure_lib.reward_terms(now, last, self._damage, lane, self.dt)
    return float(self._reward(terms))

  def _record(self, now, action, reward, done):
    """Complete the measurements by what concerns the episode."""
    now.update(
      episode_id=self._episode,
      step=self._step,
      weather=scenarios.WEATHERS[self._weather],
      map=self.backend.map.name,
      start_coord=tuple(self._coords[0]),
      end_coord=self._coords[1] and tuple(self._coords[1]),
      current_scenario=self._scenario.name,
      num_vehicles=self._scenario.num_vehicles,
      num_pedestrians=self._scenario.num_pedestrians,
      max_steps=self._scenario.max_steps,
      displacement=self._stuck.displacement,
      action=None if action is None else np.asarray(action).tolist(),
      reward=reward,
      total_reward=self._total,
      done=done,
    )

  def _to_control(self, action):
    drive, steer = (float(x) for x in action)
    return backend_lib.Control(
      throttle=min(max(drive, 0.0), 1.0),
      brake=min(max(-drive, 0.0), 1.0),
      steer=min(max(steer, -1.0), 1.0),
    )

  def _fail(self, error):
    logging.getLogger(__name__).warning(
      'Step %d of the episode failed: %s', self._step + 1, error
    )
    self._failed = True
    self._failures += 1
    self._log.add_measurements(
      {'episode_id': self._episode, 'step_error': str(error)}
    )
    return self._observe(), 0.0, True, {'step_error': True}

  def _log_step(self, frame, now):
    self._log.add_measurements(now)
    if frame.image is not None:
      self._log.add_image(video.to_rgb(frame.image))

  def _observe(self):
    if self._config['state'] == 'zero':
      return {'state': np.zeros(1, np.float32)}
    keys = (
      'forward_speed',
      'angular_speed_degree',
      'intersection_offroad',
      'intersection_otherlane',
      'collided',
    )
    state = [self._measurements[key] for key in keys]
    return {'state': np.array(state, np.float32)}

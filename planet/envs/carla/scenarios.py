"""Scenarios: town, traffic, weather and kind of route of an episode."""

import dataclasses

from agents.tools import errors

WEATHERS = (
  'Default',
  'ClearNoon',
  'CloudyNoon',
  'WetNoon',
  'WetCloudyNoon',
  'MidRainyNoon',
  'HardRainNoon',
  'SoftRainNoon',
  'ClearSunset',
  'CloudySunset',
  'WetSunset',
  'WetCloudySunset',
  'MidRainSunset',
  'HardRainSunset',
  'SoftRainSunset',
)
_TRAIN = (1, 3, 4, 6, 8, 14)
_TEST = (0, 2, 5, 7, 9, 10, 11, 12, 13)
_ALL = ('straight', 'one_curve', 'nav')


@dataclasses.dataclass(frozen=True)
class Scenario:
  """What an episode consists of.

  Attributes:
    name: Name of the scenario.
    city: Name of the town.
    num_vehicles, num_pedestrians: Traffic.
    weather_distribution: Indices into `WEATHERS` to draw from.
    kinds: Kinds of routes to draw from, see `planner.classify`.
    max_steps: Steps that the original allowed; see termination `rllib`.
    start_pos_id, end_pos_id: Indices of spawn points, drawn if None.
  """

  name: str
  city: str
  num_vehicles: int
  num_pedestrians: int
  max_steps: int
  weather_distribution: tuple
  kinds: tuple
  start_pos_id: int | None = None
  end_pos_id: int | None = None


def _scenario(town, vehicles, pedestrians, steps, weather, *kinds):
  return dict(
    city=f'Town0{town}',
    num_vehicles=vehicles,
    num_pedestrians=pedestrians,
    max_steps=steps,
    weather_distribution=tuple(weather),
    kinds=kinds,
  )


_TABLE = {
  'DEFAULT_SCENARIO': _scenario(2, 20, 40, 200, [0], 'straight'),
  'LANE_KEEP': _scenario(2, 0, 0, 2000, [0], 'straight'),
  'TOWN1_STRAIGHT': _scenario(1, 0, 0, 300, _TEST, 'straight'),
  'TOWN1_ONE_CURVE': _scenario(1, 0, 0, 600, _TEST, 'one_curve'),
  'TOWN1_NAVIGATION': _scenario(1, 0, 0, 900, _TEST, 'nav'),
  'TOWN1_NAVIGATION_DYNAMIC': _scenario(1, 20, 50, 900, _TEST, 'nav'),
  'TOWN2_STRAIGHT': _scenario(2, 0, 0, 300, _TRAIN, 'straight'),
  'TOWN2_STRAIGHT_DYNAMIC': _scenario(2, 20, 50, 300, _TRAIN, 'straight'),
  'TOWN2_STRAIGHT_0': _scenario(2, 0, 0, 1000, [0], 'straight'),
  'TOWN2_STRAIGHT_DYNAMIC_0': _scenario(2, 10, 20, 1000, [0], 'straight'),
  'TOWN2_ONE_CURVE': _scenario(2, 20, 320, 600, _TRAIN, 'one_curve'),
  'TOWN2_ONE_CURVE_0': _scenario(2, 20, 70, 2000, [0], 'one_curve'),
  'TOWN2_NAVIGATION': _scenario(2, 0, 0, 900, _TRAIN, 'nav'),
  'TOWN2_NAVIGATION_DYNAMIC': _scenario(2, 20, 50, 900, _TRAIN, 'nav'),
  'TOWN2_ONE_CURVE_STRAIGHT_NAV': _scenario(2, 0, 0, 2000, [0], *_ALL),
  'TOWN2_WEATHER': _scenario(2, 0, 0, 2000, range(11), *_ALL),
  'TOWN2_NPC': _scenario(2, 500, 0, 2000, [0], *_ALL),
  'TOWN2_WEATHER_NPC': _scenario(2, 500, 0, 2000, range(11), *_ALL),
  'TOWN2_CARS': _scenario(2, 300, 0, 2000, [0], *_ALL),
}
SCENARIOS = {
  name: (Scenario(name, **values),) for name, values in _TABLE.items()
}
for _town in (1, 2):
  SCENARIOS[f'TOWN{_town}_ALL'] = tuple(
    SCENARIOS[x][0] for x in _TABLE if x.startswith(f'TOWN{_town}_')
  )


def find(name):
  """Scenarios of a name, from which each episode draws one.

  Raises:
    UsageError: If there is no such scenario.
  """
  if name not in SCENARIOS:
    raise errors.UsageError(
      f'Scenario {name!r} is unknown. {errors.suggest(name, SCENARIOS)}'
    )
  return SCENARIOS[name]


def find_weather(name):
  """Index of a weather by its name or its number.

  Raises:
    UsageError: If there is no such weather.
  """
  if isinstance(name, int) and not isinstance(name, bool):
    if 0 <= name < len(WEATHERS):
      return name
  elif name in WEATHERS:
    return WEATHERS.index(name)
  raise errors.UsageError(
    f'Weather {name!r} is unknown; give a number from 0 to '
    f'{len(WEATHERS) - 1} or one of {", ".join(WEATHERS)}.'
  )

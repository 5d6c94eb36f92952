"""Scenarios: town, traffic, weather and routes of episodes."""

from typing import Annotated, Any, ClassVar, Literal

import pydantic
from annotated_types import Interval, MinLen

from agents.run import errors, files, schema
from agents.run.schema import (
  Count,
  Finite,
  Name,
  Positive,
  Whole,
  described,
  setting,
)

WEATHERS = (
  'Default ClearNoon CloudyNoon WetNoon WetCloudyNoon MidRainyNoon '
  'HardRainNoon SoftRainNoon ClearSunset CloudySunset WetSunset '
  'WetCloudySunset MidRainSunset HardRainSunset SoftRainSunset'
).split()
_TRAIN = (1, 3, 4, 6, 8, 14)
_TEST = (0, 2, 5, 7, 9, 10, 11, 12, 13)
_ALL = ('straight', 'one_curve', 'nav')


Weather = Annotated[
  Whole,
  Interval(ge=0, lt=len(WEATHERS)),
  pydantic.BeforeValidator(lambda x: WEATHERS.index(x) if x in WEATHERS else x),
  described(f'a number from 0 to 14 or one of {", ".join(WEATHERS)}'),
]
_AS_LIST = pydantic.BeforeValidator(
  lambda x: x if isinstance(x, (list, tuple)) else [x]
)
_Pose = Annotated[
  tuple[Finite, Finite, Finite, Finite],
  described('x, y and z in meters and the heading in degrees'),
]


class Scenario(schema.Settings):
  """Scenario of an episode, with the defaults of user-defined scenarios.

  Each episode samples start and goal unless given.

  Attributes:
    name: Name of the scenario.
    city: Name of the town that a server loads.
    num_vehicles: Number of other vehicles.
    num_pedestrians: Number of pedestrians.
    max_steps: Maximum number of steps with the termination `rllib`.
    weather_distribution: Indices into `WEATHERS` to sample from.
    kinds: Kinds of routes to sample from, see `planner.classify`.
    start_pos_id: Index of the spawn point to start at.
    end_pos_id: Index of the spawn point to drive to.
    start_pose: Pose to start at instead: x, y, z in meters, yaw in degrees.
    end_pose: Pose to drive to instead; the heading is unused.
  """

  called: ClassVar[str] = 'Key {!r} of a scenario'

  name: Name = setting('own')
  city: Annotated[Name, described('the name of a town')] = setting('Town02')
  num_vehicles: Count = setting(0)
  num_pedestrians: Count = setting(0)
  max_steps: Positive = setting(2000)
  weather_distribution: Annotated[tuple[Weather, ...], MinLen(1), _AS_LIST] = (
    setting((0,))
  )
  kinds: Annotated[
    tuple[Literal[_ALL], ...],  # type: ignore[valid-type]
    MinLen(1),
    described(f'one or more of {", ".join(_ALL)}'),
    _AS_LIST,
  ] = setting(_ALL)
  start_pos_id: Count | None = setting(None)
  end_pos_id: Count | None = setting(None)
  start_pose: _Pose | None = setting(None)
  end_pose: _Pose | None = setting(None)


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
SCENARIOS: dict[str, tuple[Scenario, ...]] = {
  name: (Scenario(name=name, **values),) for name, values in _TABLE.items()
}
for _town in (1, 2):
  SCENARIOS[f'TOWN{_town}_ALL'] = tuple(
    SCENARIOS[x][0] for x in _TABLE if x.startswith(f'TOWN{_town}_')
  )


def load(given: Any) -> Any:
  """Replace file names by the scenarios in the files.

  Args:
    given: Argument of `find`.

  Returns:
    The argument without file names.

  Raises:
    UsageError: If a file is missing or a scenario in it is wrong.
  """
  if not isinstance(given, (list, tuple)):
    return _read(given) if _is_file(given) else given
  found: list[Any] = []
  for item in given:
    found += _read(item) if _is_file(item) else [item]
  return found


def find(given: Any) -> tuple[Scenario, ...]:
  """Return the scenarios that episodes sample from.

  Args:
    given: Name in `SCENARIOS`, mapping with attributes of a `Scenario`, a
      `Scenario`, or path of a .yaml or .yml file with one or more names and
      mappings; or a list of these.

  Raises:
    UsageError: If a scenario is unknown or a value is not allowed.
  """
  loaded = load(given)
  found: list[Scenario] = []
  for item in loaded if isinstance(loaded, (list, tuple)) else [loaded]:
    found += _find_one(item)
  if not found:
    raise errors.UsageError(
      f'There are no scenarios in {given}; give a list of names and mappings, '
      'such as [LANE_KEEP, {city: Town03, num_vehicles: 5}].'
    )
  return tuple(found)


def _find_one(given):
  """Return the scenarios of a name or mapping."""
  if isinstance(given, Scenario):
    return [given]
  if isinstance(given, dict):
    return [_define(given)]
  if isinstance(given, str) and given in SCENARIOS:
    return SCENARIOS[given]
  raise errors.UsageError(
    f'Scenario {given!r} is unknown; give a name, a mapping, or a list of '
    f'these. {errors.suggest(str(given), SCENARIOS)}'
  )


def _is_file(given):
  return isinstance(given, str) and given.endswith(('.yaml', '.yml'))


def _read(filename):
  """Return the names and mappings in a file."""
  try:
    found = files.read_yaml(filename) or []
  except (OSError, ValueError) as error:
    raise errors.UsageError(
      f'Cannot read scenarios from {filename}: {errors.reason_of(error)}. Give '
      'a YAML file with names and mappings, see docs/carla-scenarios.md.'
    ) from None
  found = found if isinstance(found, list) else [found]
  for number, scenario in enumerate(found, 1):
    try:
      _find_one(scenario)
    except errors.UsageError as error:
      raise errors.UsageError(
        f'{filename}, scenario {number}: {error}'
      ) from None
  return found


def find_town(scenarios: tuple[Scenario, ...]) -> str:
  """Return the only town of the scenarios.

  Raises:
    UsageError: If they use several towns.
  """
  towns = sorted({x.city for x in scenarios})
  if len(towns) > 1:
    raise errors.UsageError(
      f'The scenarios use {" and ".join(towns)}, but a server has one map; '
      'give scenarios of one town or set the map.'
    )
  return towns[0]


def _define(given):
  """Return the scenario of a user's mapping."""
  given = {key: value for key, value in given.items() if value is not None}
  values = Scenario.check(given)
  for end in ('start', 'end'):
    keys = f'{end}_pose', f'{end}_pos_id'
    if values.keys() >= set(keys):
      raise errors.UsageError(
        f'A scenario has {keys[0]} and {keys[1]}; give one of them.'
      )
  return Scenario.model_construct(**values)

"""Load shipped and other OpenDRIVE maps as `carla.Map`."""

import gzip
import os
import types
import typing
import zlib

from agents.run import errors, files

if typing.TYPE_CHECKING:
  import carla

VERSION = '0.9.16'
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'maps')
SHIPPED = {'loop': 'loop.xodr', 'grid': 'grid.xodr.gz'}


def import_carla() -> types.ModuleType:
  """Import the optional package `carla`.

  Raises:
    UsageError: If it is not installed.
  """
  try:
    import carla

    # Fails if `carla` is something else, such as a source folder.
    carla.Map  # noqa: B018
  except (ImportError, AttributeError) as error:
    raise errors.UsageError(
      f'The carla task needs the package carla {VERSION} ({error}), even for '
      'the offline backend; wheels exist for Python 3.10 to 3.12 on x86-64 '
      f'Linux and Windows: {errors.how_to_install("carla")}.'
    ) from None
  return carla


def read(name: str) -> tuple[str, str]:
  """Read the text of a map.

  Args:
    name: Name of a shipped map, or path of a `.xodr` or `.xodr.gz` file.

  Returns:
    Tuple of the name without folder and extension, and the OpenDRIVE text.

  Raises:
    UsageError: If the map is unknown or unreadable.
  """
  path = files.expand(name)
  if name in SHIPPED:
    path = os.path.join(_FOLDER, SHIPPED[name])
  elif not path.endswith(('.xodr', '.xodr.gz')):
    raise errors.UsageError(
      f'Map {name!r} does not exist offline. '
      f'{errors.suggest(name, SHIPPED)} Or give the path of a .xodr file.'
    )
  try:
    opener = gzip.open if path.endswith('.gz') else open
    with opener(path, 'rt', encoding='utf-8') as file_:
      text = file_.read()
  except (OSError, UnicodeDecodeError, EOFError, zlib.error) as error:
    raise errors.UsageError(
      f'Cannot read the map {path}: {errors.reason_of(error)}. Give the path '
      'of a .xodr file.'
    ) from None
  return os.path.basename(path).partition('.xodr')[0], text


def load(name: str) -> 'carla.Map':
  """Load a map by name or file.

  Args:
    name: See `read`.

  Returns:
    `carla.Map` with at least one driving lane.

  Raises:
    UsageError: If the file is missing or contains no usable map.
  """
  return parse(name, *read(name))


def parse(name: str, short: str, text: str) -> 'carla.Map':
  """Return the map of an OpenDRIVE text.

  Args:
    name: Name or file for messages.
    short: Name of the map.
    text: OpenDRIVE text.

  Returns:
    `carla.Map` with at least one driving lane.

  Raises:
    UsageError: If the text is no usable map.
  """
  try:
    road_map = import_carla().Map(short, text)
    lanes = road_map.get_topology()
  except RuntimeError as error:
    raise errors.UsageError(
      f'The map {name} is not a valid OpenDRIVE file ({error}); check its XML.'
    ) from None
  if not lanes:
    raise errors.UsageError(
      f'The map {name} has no driving lane; give an OpenDRIVE file with '
      'connected roads.'
    )
  return road_map

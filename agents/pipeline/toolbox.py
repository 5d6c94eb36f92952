"""Classes by their names, and the random numbers of a whole process."""

import functools
import importlib
import random
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agents.run import errors, plain_data, references


def get_module(name: str, trust: references.Trust) -> types.ModuleType:
  """Import a module by its dotted name.

  Args:
    name: Dotted name.
    trust: `references.Trust`; everything if the user has typed the name.

  Raises:
    NotTrusted: If the module may not be imported.
    UsageError: If there is no such module. Errors within it are raised as
      they are.
  """
  references.check_place(name, name, trust)
  try:
    return importlib.import_module(name)
  except ModuleNotFoundError as error:
    missing = error.name or ''
    if name != missing and not name.startswith(missing + '.'):
      raise
    raise errors.UsageError(
      f'There is no module {missing!r}, which {name!r} needs; give the dotted '
      'name of a module, such as agents.pipeline.params.ppo_pendulum.'
    ) from None


def get_class(
  name: str, trust: references.Trust, base: type | None = None
) -> Any:
  """Return what a dotted name such as `package.module.Class` refers to.

  Args:
    name: Dotted name.
    trust: `references.Trust`; everything if the name comes from the user's
      own module of parameters instead of a stored session.
    base: Class that a part of this project has to be derived from when a
      stored session names it; see `references.check_value`.

  Raises:
    NotTrusted: If a stored session may not name it.
    UsageError: If there is no such module or name in it.
  """
  place, dot, attribute = name.rpartition('.')
  if not dot:
    raise errors.UsageError(
      f'The class {name!r} has no module; name it like '
      'agents.pipeline.runner.Runner.'
    )
  references.check_place(place, name, trust)
  module = get_module(place, references.EVERYTHING)
  if not hasattr(module, attribute):
    known = [x for x in vars(module) if not x.startswith('_')]
    raise errors.UsageError(
      f'Module {place} has no {attribute!r}. {errors.suggest(attribute, known)}'
    )
  value = getattr(module, attribute)
  references.check_value(value, name, trust, base)
  return value


def get_part(
  node: Mapping[str, Any], trust: references.Trust
) -> Callable[..., Any]:
  """Return what a node of a tree names, with the arguments that it has.

  Args:
    node: Dict of `name`, a dotted name, and optional `args`, plain data that
      may refer to functions; see `agents.run.plain_data`.
    trust: `references.Trust` in what the node names.

  Raises:
    NotTrusted: If a stored session may not name it.
    UsageError: If it does not exist.
  """
  try:
    args = plain_data.from_plain(node.get('args', {}), trust)
  except errors.UsageError:
    raise
  except ValueError as error:
    raise errors.UsageError(
      f'The arguments of {node["name"]} refer to something unknown: {error}'
    ) from None
  return functools.partial(get_class(node['name'], trust), **args)


def set_seeds(seed: int | None) -> None:
  """Seed Python, NumPy's global generator and the default graph.

  Args:
    seed: Whole number, or None to leave everything as it is.
  """
  if seed is None:
    return
  from agents.tools.tf1 import tf

  tf.set_random_seed(seed)
  np.random.seed(seed % 2**32)
  random.seed(seed)


def get_random_state() -> dict[str, Any]:
  """Return the state of the generators of Python and NumPy."""
  version, words, gauss = random.getstate()
  name, keys, position, has_gauss, cached = np.random.get_state()
  return {
    'python': {'version': version, 'words': list(words), 'gauss': gauss},
    'numpy': {
      'name': name,
      'keys': keys,
      'position': int(position),
      'has_gauss': int(has_gauss),
      'cached': float(cached),
    },
  }


def set_random_state(state: Mapping[str, Any]) -> None:
  """Undo `get_random_state`."""
  python, numpy = state['python'], state['numpy']
  random.setstate((python['version'], tuple(python['words']), python['gauss']))
  np.random.set_state(
    (
      numpy['name'],
      np.asarray(numpy['keys'], np.uint32),
      numpy['position'],
      numpy['has_gauss'],
      numpy['cached'],
    )
  )

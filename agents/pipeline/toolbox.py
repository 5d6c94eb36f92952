"""Classes by their names, and the random numbers of a whole process."""

import importlib
import random

import numpy as np

from agents.tools import errors


def get_module(name):
  """Import a module by its dotted name.

  Raises:
    UsageError: If there is no such module. Errors within it are raised as
      they are.
  """
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


def get_class(name):
  """What a dotted name such as `package.module.Class` refers to.

  Raises:
    UsageError: If there is no such module or name in it.
  """
  place, dot, attribute = name.rpartition('.')
  if not dot:
    raise errors.UsageError(
      f'The class {name!r} has no module; name it like '
      'agents.pipeline.runner.Runner.'
    )
  module = get_module(place)
  if not hasattr(module, attribute):
    known = [x for x in vars(module) if not x.startswith('_')]
    raise errors.UsageError(
      f'Module {place} has no {attribute!r}. {errors.suggest(attribute, known)}'
    )
  return getattr(module, attribute)


def set_seeds(seed):
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


def get_random_state():
  """State of the generators of Python and NumPy, as lists and arrays."""
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


def set_random_state(state):
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

"""Report mistakes of environments as `EnvError`, in one sentence each."""

import contextlib
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from agents.run import errors, stopping

# Not mistakes of the environment, or explained already.
_EXPLAINED = (
  errors.UsageError,
  errors.WorkerDeath,
  errors.EnvError,
  errors.NotFinite,
  stopping.StopRequested,
)


# What code of an environment may raise. One that exits would end a training
# without a word.
MISTAKES = Exception, SystemExit, GeneratorExit
_NUMBERS = 'biuf'
_MOST_SHOWN = 80


class BadNumber(errors.EnvError, ValueError):
  """An environment returned NaN or an infinite number."""


def not_finite(value: Any) -> str:
  """Return 'NaN' or 'infinite' if any number is; '' if all are finite.

  Numbers too large for the 32 bits of all agents are infinite, too.
  """
  with np.errstate(over='ignore'):
    value = np.asarray(value, np.float32)
  if np.isfinite(value).all():
    return ''
  return 'NaN' if np.isnan(value).any() else 'infinite'


def check_finite(value: Any, what: str, env: Any) -> None:
  """Raise `BadNumber` if a number is infinite or NaN.

  Args:
    value: Number or float array.
    what: What it is, such as `reward`.
    env: Environment that returned it, or its name.
  """
  kind = not_finite(value)
  if kind:
    name = env if isinstance(env, str) else find_name(env)
    kind = kind[0].upper() + kind[1:]
    raise BadNumber(
      f'{kind} {what} encountered in {name}; return finite numbers.'
    )


def check_image(image: Any, name: Any) -> np.ndarray:
  """Return what an environment renders as an array.

  Args:
    image: Result of its `render`, which may be one of another library.
    name: Name that the user gave to the environment.

  Raises:
    EnvError: If it is not an image.
  """
  array = to_array(image)
  fits = array.ndim in (2, 3) and array.size > 0
  if not fits or array.dtype.kind not in 'iuf':
    what = image if image is None else f'shape {array.shape} of {array.dtype}'
    what = what if array.dtype.kind in _NUMBERS else f'{_show(image)}'
    raise errors.EnvError(
      f'render of environment {name} returns {what}; with render_mode '
      'rgb_array it must return a uint8 image [height, width, 3].'
    )
  return array


def check_number(value: Any, what: str, name: Any, when: str) -> Any:
  """Raise `EnvError` if a value is not one number; return it as one.

  Numbers of types whose sums overflow soon become floats, as do fractions,
  decimals, and integers of more than 64 bits, which NumPy keeps as objects.

  Args:
    value: Number or, as some environments return, an array of one number.
    what: What it is, such as `reward`.
    name: Name that the user gave to the environment.
    when: When it was returned, such as `in step 3`.
  """
  array = to_array(value)
  if array.dtype.kind == 'O' and array.size == 1:
    with contextlib.suppress(TypeError, ValueError, OverflowError):
      array = np.array(float(array.item()))
  if array.size != 1 or array.dtype.kind not in _NUMBERS:
    raise errors.EnvError(
      f'Environment {name} returned {what} {_show(value)} {when}; return a '
      'number.'
    )
  number = np.squeeze(array)[()]
  small = array.dtype.kind in 'bu' or array.dtype.itemsize < 4
  return float(number) if small else number


def check_observation(
  value: Any, space: Any, name: Any, when: str, part: str = ''
) -> None:
  """Raise `EnvError` unless an observation has the form of its space.

  Bounds of boxes need not hold, but numbers to choose from must be there.

  Args:
    value: The observation, or the part of one.
    space: Its space, with a shape.
    name: Name that the user gave to the environment.
    when: When it was returned, such as `in step 3`.
    part: Keys in dictionaries and tuples of observations.
  """
  what = part or 'an observation'
  array = to_array(value)
  if array.dtype.kind not in _NUMBERS:
    raise errors.EnvError(
      f'Environment {name} returned as {what} {_show(value)} {when}; return '
      'numbers.'
    )
  if array.shape != space.shape:
    raise errors.EnvError(
      f'Environment {name} returned {what} of shape {array.shape} {when}, but '
      f'its observation_space has shape {space.shape}; make them match.'
    )
  if not is_choice(array, space):
    raise errors.EnvError(
      f'Environment {name} returned as {what} {_show(value)} {when}, which is '
      f'not in its space {space}; return integers of it.'
    )


def is_choice(array: np.ndarray, space: Any) -> bool:
  """Return whether numbers are choices that a space has.

  Args:
    array: Numbers with the shape of the space, or a batch of them.
    space: Space; in those without choices, any number is one.
  """
  count = getattr(space, 'nvec', getattr(space, 'n', None))
  if count is None or type(space).__name__ == 'MultiBinary':
    return True
  chosen = array - getattr(space, 'start', 0)
  return not ((chosen < 0) | (chosen >= count) | (chosen % 1 != 0)).any()


def check_rewards(values: Any, count: int, name: Any) -> None:
  """Raise `EnvError` if `compute_reward` does not return a number per goal.

  Args:
    values: Result for a batch.
    count: Size of the batch.
    name: Name that the user gave to the environment.
  """
  array = to_array(values)
  if array.size != count or array.dtype.kind not in _NUMBERS:
    raise errors.EnvError(
      f'compute_reward of environment {name} returns shape {array.shape} and '
      f'dtype {array.dtype} for a batch of {count} goals; return one number '
      'per goal.'
    )
  if kind := not_finite(array):
    raise BadNumber(
      f'compute_reward of environment {name} returns a reward that is {kind}; '
      'return finite numbers.'
    )


def has_failed(info: Mapping[str, Any]) -> bool:
  """Return whether `step_error` in an info is True or text: the step failed.

  A number does not count: environments may call the error of a controller so.
  """
  value = info.get('step_error')
  return isinstance(value, bool | np.bool_ | str) and bool(value)


def to_array(value: Any) -> np.ndarray:
  """Return an array, which may be the value itself.

  What cannot become an array, such as lists of different lengths or tensors of
  other libraries that require gradients, gives an array that holds None.
  """
  try:
    return np.asarray(value)
  except Exception:  # Whatever the class of the value raises.
    return np.array(None)


def _show(value):
  words = ' '.join(repr(value).split())
  return words if len(words) < _MOST_SHOWN else f'{words[:_MOST_SHOWN]}...'


def find_declared(env: Any, name: str, kind: Any, default: Any = None) -> Any:
  """Return an attribute that an environment may declare, or the default.

  Environments of users may have methods or arrays of this name, a property that
  fails before a reset, or an answer to every name.

  Args:
    env: Environment.
    name: Name of the attribute.
    kind: Class of its values; any other value is not meant for this project.
    default: Result if the environment does not declare it.
  """
  try:
    value = getattr(env, name, default)
  except MISTAKES:
    return default
  return value if isinstance(value, kind) else default


def find_name(env: Any) -> str:
  """Return the id of an environment, or its class if it has none."""
  spec = getattr(env, 'spec', None)
  known = getattr(env, 'requested_id', None) or getattr(spec, 'id', None)
  while '_env' in getattr(env, '__dict__', {}):
    env = env._env
  return known or type(env).__name__


@contextlib.contextmanager
def explained(name: Any, when: str) -> Iterator[None]:
  """Turn errors of an environment into `EnvError`.

  Args:
    name: Name that the user gave to the environment.
    when: Where it failed, such as `in reset`.

  Yields:
    Nothing.
  """
  try:
    yield
  except MISTAKES as error:
    raise translate(error, name, when) from None


def translate(error: BaseException, name: Any, when: str) -> BaseException:
  """Return the error to raise for an environment's error; see `explained`."""
  if isinstance(error, _EXPLAINED):
    return error
  # gymnasium raises some errors again, caused by those of the environment.
  cause = error.__cause__ if isinstance(error, TypeError) else None
  sentence = f'Environment {name} failed {when} with {error!r}.'
  return errors.EnvError(
    sentence, ''.join(traceback.format_exception(cause or error))
  )

"""Report mistakes of environments as `EnvError`, in one sentence each."""

import contextlib
import traceback
from collections.abc import Iterator
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


class BadNumber(errors.EnvError, ValueError):
  """An environment returned NaN or an infinite number."""


def not_finite(value: Any) -> str:
  """Return 'NaN' or 'infinite' if any number is; '' if all are finite."""
  if np.isfinite(value).all():
    return ''
  return 'NaN' if np.isnan(value).any() else 'infinite'


def check_finite(value: Any, what: str, env: Any) -> None:
  """Raise `BadNumber` if a number is infinite or NaN.

  Args:
    value: Number or float array.
    what: What it is, `observation` or `reward`.
    env: Environment that returned it, or its name.
  """
  kind = not_finite(value)
  if kind:
    name = env if isinstance(env, str) else find_name(env)
    kind = kind[0].upper() + kind[1:]
    raise BadNumber(f'{kind} {what} encountered in {name}.')


def check_image(image: Any, name: Any) -> None:
  """Raise `EnvError` if an environment does not render an image.

  Args:
    image: Result of its `render`.
    name: Name that the user gave to the environment.
  """
  if np.ndim(image) != 3:
    what = image if image is None else f'shape {np.shape(image)}'
    raise errors.EnvError(
      f'render of environment {name} returns {what}; with render_mode '
      'rgb_array it must return a uint8 image [height, width, 3].'
    )


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
  except Exception as error:  # Whatever the user's code may raise.
    raise translate(error, name, when) from None


def translate(error: Exception, name: Any, when: str) -> Exception:
  """Return the error to raise for an environment's error; see `explained`."""
  if isinstance(error, _EXPLAINED):
    return error
  # gymnasium raises some errors again, caused by those of the environment.
  cause = error.__cause__ if isinstance(error, TypeError) else None
  sentence = f'Environment {name} failed {when} with {error!r}.'
  return errors.EnvError(
    sentence, ''.join(traceback.format_exception(cause or error))
  )

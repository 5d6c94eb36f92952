"""Mistakes of environments, in one sentence each."""

import contextlib
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from agents.run import errors, stopping
from agents.tools.wrappers.base import Wrapper

# What is no mistake of the environment, or has a sentence already.
_OTHERS = (
  errors.UsageError,
  errors.WorkerDeath,
  errors.EnvError,
  stopping.StopRequested,
)


class Guard(Wrapper):
  """Turn what an environment must not do into `EnvError`.

  That is: to raise an error, to return an observation that is not shaped as
  the space says, and to render nothing.

  Args:
    env: Environment with a box of observations.
    name: What the user calls it.
  """

  def __init__(self, env: Any, name: Any):
    super().__init__(env)
    self._name = name
    self._steps = 0
    self._shape = env.observation_space.shape

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    self._steps = 0
    observ = self._call('when it is reset', self._env.reset, *args, **kwargs)
    self._check_shape(observ, 'when it is reset')
    return observ

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    self._steps += 1
    # Words are only put together when they are needed: steps are many.
    try:
      transition = self._env.step(action, *args, **kwargs)
    except Exception as error:  # Whatever the user's code may raise.
      raise _translate(error, self._name, f'in step {self._steps}') from None
    if getattr(transition[0], 'shape', None) != self._shape:
      self._check_shape(transition[0], f'in step {self._steps}')
    return transition

  def render(self, mode: str = 'rgb_array', *args: Any, **kwargs: Any) -> Any:
    """Return what the environment shows, which has to be an image."""
    render = self._env.render
    image = self._call('when it renders', render, mode, *args, **kwargs)
    if mode == 'rgb_array' and np.ndim(image) != 3:
      what = image if image is None else f'shape {np.shape(image)}'
      raise errors.EnvError(
        f'render of environment {self._name} returns {what}; with render_mode '
        'rgb_array it must return a uint8 image [height, width, 3].'
      )
    return image

  def _call(self, when: str, function: Callable[..., Any], *args, **kwargs):
    with explained(self._name, when):
      return function(*args, **kwargs)

  def _check_shape(self, observ, when):
    if np.shape(observ) != self._shape:
      raise errors.EnvError(
        f'Environment {self._name} returns an observation of shape '
        f'{np.shape(observ)} {when}, but its observation_space has shape '
        f'{self._shape}; make them equal.'
      )


@contextlib.contextmanager
def explained(name: Any, when: str) -> Iterator[None]:
  """Turn errors of an environment into `EnvError`, with a sentence.

  Args:
    name: What the user calls the environment.
    when: Words such as `when it is reset`.

  Yields:
    Nothing.
  """
  try:
    yield
  except Exception as error:  # Whatever the user's code may raise.
    raise _translate(error, name, when) from None


def _translate(error, name, when):
  """Error to raise instead, the same one if it has a sentence already."""
  if isinstance(error, _OTHERS):
    return error
  return explain(error, f'Environment {name} fails {when} with {error!r}.')


def explain(error: Exception, sentence: str) -> errors.EnvError:
  """Return an error with a sentence above the traceback of another one."""
  # gymnasium raises some errors a second time, from those of the environment.
  cause = error.__cause__ if isinstance(error, TypeError) else None
  lines = traceback.format_exception(cause or error)
  return errors.EnvError(sentence, ''.join(lines))

"""Build an environment once to learn what it looks like."""

import logging
import os

import numpy as np

from agents.envs import opengl
from agents.tools.wrappers import Async
from planet.tools.bind import bind


def inspect(env_ctor):
  """Build and reset an environment in a process of its own.

  What was found out about OpenGL is kept for the processes to come.

  Args:
    env_ctor: Function without arguments that returns an environment with
      dictionaries as observations.

  Returns:
    Dict of `shapes`, from the names of what is recorded to the shape of one
    step; `renderer`, the name of the OpenGL renderer or None; and `messages`,
    a list of lines for the user.

  Raises:
    UsageError: If the environment misses something.
    WorkerError: If it fails, with its traceback.
  """
  probe = Async(bind(_Probe, env_ctor), 'process')
  try:
    report = probe.report
  finally:
    probe.close()
  os.environ.update(report.pop('environ'))
  return report


class _Probe:
  """Stands in for an environment in a worker, which asks for the spaces."""

  def __init__(self, env_ctor):
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger('agents').addHandler(handler)
    logging.getLogger('agents').setLevel(logging.INFO)
    env = env_ctor()
    observ = env.reset()
    shapes = {key: np.shape(value) for key, value in observ.items()}
    shapes.update(action=env.action_space.shape, reward=())
    environ = {
      key: os.environ[key] for key in opengl.VARIABLES if key in os.environ
    }
    self.report = {
      'shapes': shapes,
      'environ': environ,
      'renderer': opengl.selected_renderer(),
      'messages': messages,
    }
    try:
      env.close()
    except AttributeError:
      pass

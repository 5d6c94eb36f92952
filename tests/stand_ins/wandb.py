"""Stands for Weights & Biases where that is not installed.

Keeps what it gets in one file per run, whose name ends like those of the real
one. Without WANDB_MODE=offline, it knows no account.
"""

import json
import os


class Error(Exception):
  """Base class of the errors of the real package."""


class Settings:
  """Takes those of a version.

  Args:
    **given: Settings.
  """

  model_fields = 'silent', 'console', 'finish_timeout', 'finish_timeout_raises'

  def __init__(self, **given):
    assert set(given) <= set(self.model_fields)
    self.finish_timeout = given.get('finish_timeout')


class Run:
  """Run whose rows go to a file.

  Args:
    path: Name of the file.
    settings: See `Settings`.

  Attributes:
    answers: Whether its server does.
  """

  answers = True

  def __init__(self, path, settings):
    self.url, self._settings = None, settings
    self._file = open(path, 'w')

  def define_metric(self, name, step_metric=None):
    pass

  def log(self, row):
    self._file.write(json.dumps(row) + '\n')

  def finish(self):
    self._file.close()
    if not self.answers:
      assert self._settings.finish_timeout, 'it would wait for ever'
      raise TimeoutError('Timed out finishing run.')


def init(project, name, id, dir, config, settings, **unused_kwargs):
  """Begin a run."""
  if os.environ.get('WANDB_MODE') != 'offline':
    raise Error('No API key configured.')
  assert project and json.dumps(config) is not None
  count = len([x for x in os.listdir(f'{dir}/wandb') if x.startswith('off')])
  folder = f'{dir}/wandb/offline-run-{count}-{id}'
  os.makedirs(folder)
  return Run(f'{folder}/run-{id}.wandb', settings)

"""Folders of PPO runs: which one to continue, and with what configuration."""

import contextlib
import dataclasses
import glob
import inspect
import os
import re
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

from agents import configs
from agents.run import errors
from agents.run import files
from agents.run import folders
from agents.run import plain_data
from agents.run import references
from agents.tools.attr_dict import AttrDict

# What may differ when a run is continued.
_FREE_ON_RESUME = ('steps', 'logdir')


def find_config(name: str | None) -> Callable[[], dict[str, Any]]:
  """Return a function of `agents.configs` by its name.

  Raises:
    UsageError: If there is no name, or no such function.
  """
  known = [
    key
    for key, value in vars(configs).items()
    if inspect.isfunction(value)
    and value.__module__ == configs.__name__
    and not key.startswith('_')
  ]
  if not name:
    raise errors.UsageError(
      'You must specify a configuration. Give --config with one of '
      f'{", ".join(known)}.'
    )
  if name not in known:
    raise errors.UsageError(
      f'Configuration {name!r} is unknown. {errors.suggest(name, known)}'
    )
  return getattr(configs, name)


@contextlib.contextmanager
def claim(
  name: str | None,
  logdir: str | None = None,
  timestamp: str | None = None,
  overrides: dict[str, Any] | None = None,
  trust: references.Trust = references.NOTHING,
) -> Iterator[tuple[AttrDict, str]]:
  """Do what `prepare` does, and keep other processes away from the run.

  The folder of a new run is created.

  Args:
    name: See `prepare`; also the other arguments.

  Yields:
    Tuple of the configuration, and a sentence that says which run this is and
    why.

  Raises:
    UsageError: See `prepare`; also if nothing can be written there.
  """
  with contextlib.ExitStack() as held:
    yield _prepare(name, logdir, timestamp, overrides, trust, held)


def prepare(
  name: str | None,
  logdir: str | None = None,
  timestamp: str | None = None,
  overrides: dict[str, Any] | None = None,
  trust: references.Trust = references.NOTHING,
) -> AttrDict:
  """Choose the folder of a run and put its configuration together.

  A folder without a timestamp is searched for runs of this configuration: the
  newest one is continued that has the same settings, is not finished, and that
  no other process works on. The number of steps may differ. Without such a run
  there is a new one. Nothing is written.

  Args:
    name: Name of the configuration.
    logdir: Folder of the runs, None to keep nothing.
    timestamp: Time that names the run; for a new run the current one.
    overrides: Dict of values that the user has given.
    trust: `agents.run.references.Trust` in what stored runs may name.

  Returns:
    Locked AttrDict, with the folder of the run as `logdir`.

  Raises:
    UsageError: If an argument is wrong or does not fit the stored run.
  """
  config, _ = _prepare(name, logdir, timestamp, overrides, trust)
  return config


def load(
  logdir: str, trust: references.Trust = references.NOTHING
) -> tuple[str, AttrDict]:
  """Load the configuration of an existing run.

  Args:
    logdir: Folder of the run, or one that holds a single run.
    trust: `agents.run.references.Trust` in what the run may name.

  Returns:
    Tuple of the folder of the run and a locked AttrDict.

  Raises:
    UsageError: If there is no run, more than one, the file is damaged, or the
      run is not one of PPO.
  """
  logdir = os.path.abspath(os.path.expanduser(logdir))
  found = [logdir]
  if not os.path.exists(os.path.join(logdir, 'config.yaml')):
    pattern = os.path.join(glob.escape(logdir), '*', 'config.yaml')
    found = sorted(os.path.dirname(x) for x in glob.glob(pattern))
  if not found:
    raise errors.UsageError(
      f'There is no run in {logdir}; give the --logdir of the training.'
    )
  if len(found) > 1:
    raise errors.UsageError(
      f'There are {len(found)} runs in {logdir}; choose one of them, such as '
      f'--logdir={found[-1]}.'
    )
  if 'algorithm' not in _read_plain(found[0]):
    raise errors.UsageError(
      f'The run in {found[0]} is not one of PPO; show it with the program '
      'that wrote it.'
    )
  return found[0], _read(found[0], trust)


def total_steps(config: AttrDict) -> int:
  """Return the global step at which a run ends, evaluation included."""
  per_update = config.update_every + config.eval_episodes
  return int(config.steps / config.update_every * per_update)


def last_step(run: str) -> int:
  """Return the step in the name of the newest checkpoint of a run, else 0."""
  steps = [0]
  for name in glob.glob(os.path.join(glob.escape(run), 'model.ckpt-*.index')):
    match = re.search(r'model\.ckpt-(\d+)\.index$', name)
    steps += [int(match.group(1))] if match else []
  return max(steps)


def _prepare(name, logdir, timestamp, overrides, trust, held=None):
  """Configuration of a run, and why it is this one; see `run.folders`."""
  overrides = {k: v for k, v in (overrides or {}).items() if v is not None}
  trust = _trust_env(trust, overrides.get('env'))
  config = AttrDict(find_config(name)())
  _apply(config, overrides)
  run, exists, reason = None, False, 'Start a run without --logdir.'
  if logdir:
    logdir = os.path.abspath(os.path.expanduser(logdir))
    if timestamp:
      run, exists, reason = folders.choose_named(logdir, name, timestamp, held)
    else:
      run, exists, reason = folders.choose(
        logdir, name, lambda x: _find_obstacle(x, config, overrides), held
      )
  if exists:
    config = _resume(run, overrides, trust)
  if not config.env:
    raise errors.UsageError(
      f'Configuration {name} names no environment; give one with --env, such '
      'as --env=Pendulum-v1.'
    )
  with config.unlocked:
    config.logdir = run
  return config, reason


def _find_obstacle(run, config, overrides):
  """Why a command cannot continue a run; None if it can."""
  stored = plain_data.current(_read_plain(run))
  wanted = plain_data.to_plain(config)
  # Settings of later versions do not count, unless the user gives them.
  keys = set(stored) | (set(wanted) & set(overrides))
  different = [
    _describe(key, stored.get(key), wanted.get(key))
    for key in sorted(keys - set(_FREE_ON_RESUME))
    if stored.get(key) != wanted.get(key)
  ]
  if different:
    return f'has other settings ({", ".join(different)})'
  stored = AttrDict(stored)
  if 'steps' in overrides:
    stored['steps'] = config.steps
  if last_step(run) >= total_steps(stored):
    return 'is finished (to train it for longer, raise --steps)'
  return None


def _describe(key, was, wanted):
  if any(isinstance(x, (dict, list)) for x in (was, wanted)):
    return key
  was, wanted = ('unset' if x is None else x for x in (was, wanted))
  return f'{key} {was} instead of {wanted}'


def _resume(run, overrides, trust):
  config = _read(run, trust)
  before = dict(config)
  _apply(config, overrides)
  changed = [
    key
    for key in overrides
    if key not in _FREE_ON_RESUME and before.get(key) != config.get(key)
  ]
  if changed:
    was = ', '.join(f'{key}={before.get(key)}' for key in changed)
    raise errors.UsageError(
      f'The run in {run} is not finished and has {was}. Leave '
      f'{", ".join(changed)} away to continue it, or use another logdir.'
    )
  return config


def _read_plain(run):
  """Dict of the stored configuration; imports nothing that it refers to."""
  try:
    values = files.read_yaml(os.path.join(run, 'config.yaml'))
  except ValueError:
    values = None
  return (
    values if isinstance(values, dict) else dict(_read(run, references.NOTHING))
  )


def _trust_env(trust, env):
  """Trust in the module of an id such as `my_package:MyEnv-v0`, too."""
  return dataclasses.replace(trust, names=trust.names + references.typed([env]))


def _read(run, trust):
  from agents import utility

  try:
    return utility.load_config(run, trust)
  except ValueError as error:
    raise errors.UsageError(str(error)) from None


def _apply(config, overrides):
  """Set values of the declared types."""
  configs.Config.check_names(overrides)
  with config.unlocked:
    for key, value in overrides.items():
      config[key] = _convert(key, value)


def _convert(key: str, value: Any) -> Any:
  value = configs.Config.check_value(key, value)
  if key == 'network':
    from agents import networks

    return getattr(networks, value)
  if key == 'optimizer':
    return _find_optimizer(value)
  return value


def _find_optimizer(name: str) -> type:
  from agents.tools.tf1 import tf

  known = _find_optimizers()
  if name not in known:
    raise errors.UsageError(
      f"Parameter 'optimizer' is {name!r}; give one of {', '.join(known)}."
    )
  return getattr(tf.train, name)


def _find_optimizers():
  """Names of TensorFlow's optimisers that need a learning rate only."""
  from agents.tools.tf1 import tf

  names = []
  for name in sorted(dir(tf.train)):
    value = getattr(tf.train, name)
    if isinstance(value, type) and issubclass(value, tf.train.Optimizer):
      first, *others = inspect.signature(value).parameters.values()
      if first.name == 'learning_rate' and all(
        x.default is not x.empty for x in others
      ):
        names.append(name)
  return names


def check_env(config: AttrDict) -> None:
  """Build the environment once, to refuse early what cannot work.

  Raises:
    UsageError: Saying what is wrong with the environment.
  """
  from agents.envs import continuous

  env = continuous.make(config.env)
  close = getattr(env, 'close', None)
  if close:
    close()

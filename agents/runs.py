"""Folders of PPO runs: which one to continue, and with what configuration."""

import contextlib
import dataclasses
import datetime
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any

from agents import configs, utility
from agents.run import checkpoint, errors, files, folder, plain_data, references
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
  run = folder.find_single(logdir)
  if 'algorithm' not in _read_plain(run):
    raise errors.UsageError(
      f'The run in {run} is not one of PPO; show it with the program that '
      'wrote it.'
    )
  return run, _read(run, trust)


def store(config: AttrDict) -> None:
  """Write the configuration of a run that begins, or gets more steps.

  Args:
    config: What `claim` yields. Without a folder, nothing is written.
  """
  if not config.logdir or not folder.has(config.logdir, 'config.yaml'):
    utility.save_config(config, config.logdir)
  elif last_step(config.logdir) < total_steps(config):
    filename = os.path.join(config.logdir, 'config.yaml')
    files.write_yaml(filename, plain_data.to_plain(config))


def total_steps(config: AttrDict) -> int:
  """Return the global step at which a run ends, evaluation included."""
  per_update = config.update_every + config.eval_episodes
  return int(config.steps / config.update_every * per_update)


def last_step(run: str) -> int:
  """Return the step of the checkpoint to continue a run from, else 0.

  Raises:
    UsageError: If there are checkpoints, but all of them are damaged.
  """
  return checkpoint.newest_step(run)


def _prepare(name, logdir, timestamp, overrides, trust, held=None):
  """Configuration of a run, and why it is this one."""
  overrides = {k: v for k, v in (overrides or {}).items() if v is not None}
  trust = _trust_env(trust, overrides.get('env'))
  config = AttrDict(find_config(name)())
  _apply(config, overrides)
  if 'env' in overrides and 'network' not in overrides:
    _choose_network(config)
  run, reason = None, 'Start a run without --logdir.'
  if logdir:
    logdir = os.path.abspath(os.path.expanduser(logdir))
    if timestamp:
      run = os.path.join(logdir, f'{timestamp}-{name}')
      reason = _take_named(run, held)
    else:
      run, reason = _choose(
        logdir, name, lambda x: _find_obstacle(x, config, overrides), held
      )
  if run and folder.has(run, 'config.yaml'):
    config = _resume(run, overrides, trust)
  if not config.env:
    raise errors.UsageError(
      f'Configuration {name} names no environment; give one with --env, such '
      'as --env=Pendulum-v1.'
    )
  with config.unlocked:
    config.logdir = run
  return config, reason


def _take_named(run, held):
  """Hold the run that the user has named; return a sentence about it."""
  lock = folder.lock(run) if held else None
  if lock:
    held.enter_context(lock)
  elif held or folder.is_locked(run):
    raise errors.UsageError(
      f'Another process works on the run in {run}. Wait until it has ended, '
      'or leave --timestamp away to begin another run.'
    )
  exists = folder.has(run, 'config.yaml')
  # Refuses one whose checkpoints are all damaged.
  last_step(run)
  words = 'Continue the' if exists else 'Start a new'
  return f'{words} run in {run}, as --timestamp says.'


def _choose(logdir, name, find_obstacle, held):
  """Folder of the newest run that can go on, or of a new one, and why."""
  runs = folder.find(logdir, 'config.yaml', f'-{name}')
  found, words = folder.choose(
    reversed(runs), lambda x: find_obstacle(x.folder), held is not None
  )
  if found:
    if held:
      held.enter_context(found)
    run = found.folder
    return run, (
      f'Continue the run in {run}, the newest one with these settings that '
      'is neither finished nor in use.'
    )
  names = _make_names(name)
  if held:
    run, own = folder.create(logdir, names)
    held.enter_context(own)
  else:
    run = next(
      os.path.join(logdir, x) for x in names if not folder.has(logdir, x)
    )
  words = words or 'it is the first one of this configuration'
  return run, f'Start a new run in {run}: {words}.'


def _make_names(name):
  """Generate the time of now, of the next second, and so on, as names."""
  moment = datetime.datetime.now()
  while True:
    yield f'{moment:%Y%m%dT%H%M%S}-{name}'
    moment += datetime.timedelta(seconds=1)


def _find_obstacle(run, config, overrides):
  """Why a command cannot continue a run; None if it can."""
  stored = _read_plain(run)
  wanted = plain_data.to_plain(config)
  # Settings of later versions do not count, unless the user gives them.
  keys = set(stored) | (set(wanted) & set(overrides))
  different = utility.compare(stored, wanted, keys - set(_FREE_ON_RESUME))
  if different:
    return f'has other settings ({folder.describe(different)})'
  stored = AttrDict(stored)
  if 'steps' in overrides:
    stored['steps'] = config.steps
  if last_step(run) >= total_steps(stored):
    return 'is finished (to train it for longer, raise --steps)'
  return None


def _resume(run, overrides, trust):
  config = _read(run, trust)
  before = dict(config)
  _apply(config, overrides)
  changed = utility.compare(
    plain_data.to_plain(before),
    plain_data.to_plain(config),
    set(overrides) - set(_FREE_ON_RESUME),
  )
  advice = f'Leave {", ".join(changed)} away to continue it, or use another '
  utility.check_same(run, changed, advice + 'logdir.')
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


def _choose_network(config):
  """Use the network that suits the actions of the user's environment."""
  from agents import networks

  with config.unlocked:
    config.network = networks.choose(
      config.network, _has_discrete_actions(config.env)
    )


def check_env(config: AttrDict) -> None:
  """Build the environment once, to refuse early what cannot work.

  Raises:
    UsageError: Saying what is wrong with the environment, or that the network
      does not suit its actions.
    EnvError: If its first step shows a mistake, see `agents.check_env`.
  """
  from agents import networks

  discrete = _has_discrete_actions(config.env)
  if networks.choose(config.network, discrete) is not config.network:
    raise networks.explain_misfit(config.network, discrete)


@functools.cache
def _has_discrete_actions(env):
  """Build an environment, or refuse it; an id or a function is asked once."""
  from agents.envs import check, continuous, spaces

  created = continuous.make(env)
  try:
    check.try_step(created, env)
    return spaces.is_discrete(created.action_space)
  finally:
    getattr(created, 'close', lambda: None)()

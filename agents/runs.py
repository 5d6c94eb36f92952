"""Folders of PPO runs: which one to continue, and with what configuration."""

import contextlib
import datetime
import os
from collections.abc import Iterator
from typing import Any

from agents import configs, utility
from agents.run import checkpoint, errors, files, folder, references
from agents.tools.attr_dict import AttrDict

# What may differ when a run is continued.
_FREE = {'steps', 'logdir', 'version'}


@contextlib.contextmanager
def claim(
  name: str | None,
  logdir: str | None = None,
  timestamp: str | None = None,
  overrides: dict[str, Any] | None = None,
  trust: references.Trust = references.NOTHING,
  write: bool = True,
) -> Iterator[folder.Run]:
  """Choose a run, lock it, and put its configuration together.

  A folder without a timestamp is searched for runs of this configuration: the
  newest one is continued that has the same settings, is not finished, and that
  no other process works on. The number of steps may differ. Without such a run
  there is a new one. Nothing is left of a new one that is refused.

  Args:
    name: Name of the configuration.
    logdir: Folder of the runs, None to keep nothing.
    timestamp: Time that names the run; for a new run the current one.
    overrides: Dict of values that the user has given.
    trust: `agents.run.references.Trust` in what stored runs may name.
    write: Whether to create and lock the folder, and to try a step of the
      environment.

  Yields:
    `Run` with `config`, a locked AttrDict with the folder as `logdir`, and
    `reason`, a sentence that says which run this is and why.

  Raises:
    UsageError: If an argument is wrong or does not fit the stored run.
    EnvError: If the environment makes a mistake, see `agents.check_env`.
  """
  given = {k: v for k, v in (overrides or {}).items() if v is not None}
  given = configs.Config.check(given)
  config = {'version': configs.VERSION, **configs.make(name), **given}
  typed = references.typed([config.get(x) for x in configs.NAMES])
  trust = references.Trust((*trust.names, *typed), trust.everything)
  logdir = logdir and os.path.abspath(os.path.expanduser(logdir))
  missing = files.first_missing(logdir) if logdir else None
  with contextlib.ExitStack() as stack:
    run = folder.Run(None, reason='Start a run without --logdir.')
    if logdir and timestamp:
      run = _choose_named(os.path.join(logdir, f'{timestamp}-{name}'), write)
    elif logdir:
      run = _choose_newest(logdir, name, config, given, write)
    stack.enter_context(run)
    if write and run.folder and not run.settings:
      path = run.folder
      stack.enter_context(
        folder.removed_if_refused(
          path, missing or path, lambda: folder.has(path, 'config.yaml')
        )
      )
    if run.settings:
      config = _merge(run, given)
    config = configs.from_plain(config, trust, run.folder)
    if not config.get('env'):
      raise errors.UsageError(
        f'Configuration {name} names no environment; give one with --env, such '
        'as --env=Pendulum-v1.'
      )
    run.config = AttrDict({**config, 'logdir': run.folder})
    if write:
      _check_env(run.config)
    yield run


def prepare(
  name: str | None,
  logdir: str | None = None,
  timestamp: str | None = None,
  overrides: dict[str, Any] | None = None,
  trust: references.Trust = references.NOTHING,
) -> AttrDict:
  """Return the configuration that `claim` yields; nothing is written."""
  with claim(name, logdir, timestamp, overrides, trust, write=False) as run:
    return run.config


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
    UsageError: If there is no run, more than one, or it is damaged or not one
      of PPO.
  """
  run = folder.find_single(logdir)
  return run, utility.load_config(run, trust)


def store(run: folder.Run) -> None:
  """Write the configuration of a run that begins, or gets more steps.

  Args:
    run: What `claim` yields. Without a folder, nothing is written.
  """
  if not run.settings:
    utility.save_config(run.config, run.folder)
  elif run.step < total_steps(run.config):
    filename = os.path.join(run.config.logdir, 'config.yaml')
    files.write_yaml(filename, configs.to_plain(run.config))


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


def _choose_named(path, write):
  """Run that the user has named."""
  if not write and folder.is_locked(path):
    folder.refuse(path)
  run = folder.Run.open(path) if write else folder.Run(path)
  words = 'Continue the' if run.settings else 'Start a new'
  run.reason = f'{words} run in {path}, as --timestamp says.'
  return run


def _choose_newest(logdir, name, config, given, write):
  """Newest run that can go on, or a new one."""
  runs = folder.find(logdir, 'config.yaml', f'-{name}')
  run, words = folder.choose(
    reversed(runs), lambda x: _why_not(x, config, given), write
  )
  if run:
    run.reason = (
      f'Continue the run in {run.folder}, the newest one with these settings '
      'that is neither finished nor in use.'
    )
    return run
  names = _make_names(name)
  if write:
    run = folder.Run(*folder.create(logdir, names))
  else:
    new = next(x for x in names if not folder.has(logdir, x))
    run = folder.Run(os.path.join(logdir, new))
  words = words or 'it is the first one of this configuration'
  run.reason = f'Start a new run in {run.folder}: {words}.'
  return run


def _make_names(name):
  """Generate the time of now, of the next second, and so on, as names."""
  moment = datetime.datetime.now()
  while True:
    yield f'{moment:%Y%m%dT%H%M%S}-{name}'
    moment += datetime.timedelta(seconds=1)


def _why_not(run, config, given):
  """Why a command cannot continue a run; None if it can."""
  stored, wanted = run.settings, configs.to_plain(config)
  # Settings of later versions do not count, unless the user gives them.
  keys = set(stored) | (set(wanted) & set(given))
  different = folder.compare(stored, wanted, keys - _FREE)
  if different:
    return f'has other settings ({folder.describe(different)})'
  if run.step >= total_steps(AttrDict({**stored, 'steps': config['steps']})):
    return 'is finished (to train it for longer, raise --steps)'
  return None


def _merge(run, given):
  """Stored settings, with what is given as far as it may differ."""
  plain = configs.to_plain(given)
  changed = folder.compare(run.settings, plain, set(given) - _FREE)
  advice = f'Omit {", ".join(changed)} to continue it, or use another '
  folder.check_same(run.folder, changed, advice + 'logdir.')
  # Refuses one whose checkpoints are all damaged.
  assert run.step >= 0
  return {**run.settings, **given}


def _check_env(config):
  """Try a step of the environment, to refuse early what cannot work."""
  from agents.envs import check, continuous, spaces

  created = continuous.make(config.env)
  try:
    check.try_step(created, config.env)
    discrete = spaces.is_discrete(created.action_space)
    if discrete and config.network == 'recurrent_gaussian':
      raise errors.UsageError(
        'The network recurrent_gaussian does not suit discrete actions; omit '
        'the parameter network.'
      )
  finally:
    getattr(created, 'close', lambda: None)()

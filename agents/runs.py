"""Folders of PPO runs: which one to continue, and with what configuration."""

import contextlib
import datetime
import itertools
import os
from collections.abc import Iterator
from typing import Any

from agents import configs, utility
from agents.run import errors, files, folder, references
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

  Yields:
    `Run` with `config`, a locked AttrDict with the folder as `logdir`, and
    `reason`, a sentence that says which run this is and why.

  Raises:
    UsageError: If an argument is wrong or does not fit the stored run.
    EnvError: If the environment makes a mistake, see `agents.check_env`.
  """
  config, given = _combine(name, overrides)
  logdir = logdir and os.path.abspath(os.path.expanduser(logdir))
  missing = files.first_missing(logdir) if logdir else None
  with _choose(logdir, timestamp, name, config, given) as run:
    path = run.folder
    if run.settings:
      trust = trust.and_typed([given.get('env')])
      config = configs.from_plain(_merge(run, given), trust, path)
    elif path:
      run.enter_context(
        folder.removed_if_refused(
          path, missing or path, lambda: folder.has(path, 'config.yaml')
        )
      )
    run.config = _complete(name, config, path)
    _try_env(run.config.env)
    yield run


def prepare(
  name: str | None, overrides: dict[str, Any] | None = None
) -> AttrDict:
  """Return the configuration of a run that keeps nothing, see `claim`."""
  config, _ = _combine(name, overrides)
  return _complete(name, config, None)


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
  if not run.settings or run.step < total_steps(run.config):
    utility.save_config(run.config)


def total_steps(config: AttrDict) -> int:
  """Return the global step at which a run ends, evaluation included."""
  per_update = config.update_every + config.eval_episodes
  return int(config.steps / config.update_every * per_update)


def _combine(name, overrides):
  """Return the configuration of a new run, and what is given of it."""
  given = {k: v for k, v in (overrides or {}).items() if v is not None}
  given = configs.Config.check(given)
  config = {**configs.make(name), **given}
  config = configs.import_own(config, references.EVERYTHING)
  return config, {x: config[x] for x in given}


def _complete(name, config, path):
  """Return what a training gets."""
  if not config.get('env'):
    raise errors.UsageError(
      f'Configuration {name} names no environment; give one with --env, such '
      'as --env=Pendulum-v1.'
    )
  return AttrDict({**config, 'logdir': path})


def _choose(logdir, timestamp, name, config, given):
  """Return the run that a command begins or continues, locked."""
  if not logdir:
    return folder.Run(None, reason='Start a run without --logdir.')
  if timestamp:
    run = folder.Run.open(os.path.join(logdir, f'{timestamp}-{name}'))
    words = 'Continue the' if run.settings else 'Start a new'
    run.reason = f'{words} run in {run.folder}, as --timestamp says.'
    return run
  older = folder.find(logdir, 'config.yaml', f'-{name}')
  newest, words = folder.choose(
    reversed(older), lambda x: _why_not(x, config, given)
  )
  if newest:
    newest.reason = (
      f'Continue the run in {newest.folder}, the newest one with these '
      'settings that is neither finished nor in use.'
    )
    return newest
  now = datetime.datetime.now()
  times = (now + datetime.timedelta(seconds=x) for x in itertools.count())
  run = folder.create(logdir, (f'{x:%Y%m%dT%H%M%S}-{name}' for x in times))
  words = words or 'it is the first one of this configuration'
  run.reason = f'Start a new run in {run.folder}: {words}.'
  return run


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


def _try_env(name):
  """Try a step of an environment, to refuse early what cannot work."""
  from agents.envs import check, continuous

  created = continuous.make(name)
  try:
    check.try_step(created, name)
  finally:
    getattr(created, 'close', lambda: None)()

"""Log directories of PPO runs: which to continue, with which configuration."""

import contextlib
import datetime
import functools
import itertools
import math
import os
from typing import Any

from agents import configs, utility
from agents.envs import (
  adapters,
  contract,
  hosts,
  observations,
  probe,
  spaces,
)
from agents.run import errors, files, folder, references
from agents.tools import continuous
from agents.tools.attr_dict import AttrDict

# What a run keeps when it is continued.
_FIXED = {x for x in configs.Config.names() if configs.Config.fixed(x)}


def claim(
  name: str | None,
  logdir: str | os.PathLike[str] | None = None,
  timestamp: str | None = None,
  overrides: dict[str, Any] | None = None,
  trust: references.Trust = references.NOTHING,
  env_processes: bool = True,
) -> contextlib.AbstractContextManager[folder.Run]:
  """Choose a run, lock it, and assemble its configuration.

  Without a timestamp, continues the newest run of this configuration in the
  folder that has the same settings, is not finished, and is not in use.
  `Config.fixed` tells which settings may change. If all such runs are finished,
  chooses the newest of them. If there are none, creates a new run; it is
  removed again if the command is refused.

  Args:
    name: Name of the configuration; may be None for the folder of a run.
    logdir: Folder of the runs, or of a run; None to write nothing.
    timestamp: Timestamp in the name of the run; the current time for new runs.
    overrides: Dict of values that the user has given.
    trust: `agents.run.references.Trust` in names that stored runs may contain.
    env_processes: Whether environments are stepped in other processes. Then
      the environment of a user takes its first step in one, too.

  Returns:
    Context of a `Run` with `config`, a locked AttrDict with the log directory
    as `logdir`; `reason`, a sentence that says which run this is and why;
    `changes`, a list of descriptions of what the command changes; and `over`, a
    sentence if the run is finished.

  Raises:
    UsageError: If an argument is not valid; raised by the context if an
      argument, including the configuration, does not fit the stored run.
    EnvError: If the environment makes a mistake, see `agents.check_env`.
  """
  if logdir == '':
    raise errors.UsageError(
      'The logdir is empty; give the path of a folder, or omit it to save '
      'nothing.'
    )
  logdir = None if logdir is None else files.absolute(logdir)
  path = logdir if logdir and folder.is_run(logdir) else None
  is_named = bool(name)
  if path and not name:
    # The run has settings of its own.
    name = 'default'
  config, given = _combine(name, overrides)
  if name:
    name = name.rpartition(':')[2]
  if logdir and timestamp and not path:
    path = os.path.join(logdir, f'{timestamp}-{name}')
  elif path and timestamp not in (None, os.path.basename(path).split('-')[0]):
    raise errors.UsageError(
      f'Flag --timestamp is {timestamp}, but --logdir is already the log '
      f'directory of a run, {path}; omit --timestamp, or give the folder of '
      'the runs.'
    )
  found = None
  if not (path and folder.is_run(path)) or given.get('env'):
    found = _try_env(_complete(name, config, None), env_processes)
    config['network'] = choose_network(config, given, found[0])

  @contextlib.contextmanager
  def open_run():
    merged = config
    with _choose(logdir, path, name, config, given) as run:
      if run.settings:
        configs.check_origin(run.folder, run.settings)
        if run.folder == logdir and is_named:
          _check_name(run, name, config, given)
        trusted = trust.and_typed([given.get('env')])
        merged = configs.from_plain(_merge(run, given), trusted, run.folder)
      elif run.folder:
        run.enter_context(
          folder.removed_if_refused(
            run.folder, run.missing, lambda: folder.is_run(run.folder)
          )
        )
      pair = found or _try_env(merged, env_processes)
      known = (run.settings or {}).get('spaces')
      if run.step and known and known != pair:
        raise errors.UsageError(
          f'The spaces of the environment of the run in {run.folder} have '
          'changed; start a new run in another log directory.'
        )
      run.config = _complete(name, {**merged, 'spaces': pair}, run.folder)
      run.over = _find_end(run)
      yield run

  return open_run()


def prepare(
  name: str | None, overrides: dict[str, Any] | None = None
) -> AttrDict:
  """Return the configuration of a run that writes nothing, see `claim`."""
  config, _ = _combine(name, overrides)
  return _complete(name, config, None)


def prepare_for(
  name: str | None, overrides: dict[str, Any] | None = None
) -> tuple[AttrDict, observations.Layout]:
  """Prepare a configuration for its environment, which takes a step.

  Returns:
    Tuple of the configuration, with convolutions for images, see `prepare`,
    and how observations become the input of its network.

  Raises:
    UsageError: If PPO cannot use the environment.
    EnvError: If the environment makes a mistake.
  """
  config, given = _combine(name, overrides)
  observed, _ = _try_env(_complete(name, config, None))
  config['network'] = choose_network(config, given, observed)
  layout = observations.Layout(
    spaces.from_plain(observed), configs.sees_images(config)
  )
  return _complete(name, config, None), layout


def choose_network(
  config: dict[str, Any], given: dict[str, Any], observed: dict[str, Any]
) -> Any:
  """Return the network of a configuration: with convolutions for images.

  Args:
    config: Configuration.
    given: Values of it that the user has given; their network stays.
    observed: Observation space, see `spaces.to_plain`.

  Raises:
    UsageError: If the user asks for convolutions, but there are no images.
  """
  space = spaces.from_plain(observed)
  if 'network' not in given and observations.find_images(space):
    return configs.for_images(config['network'])
  observations.Layout(space, configs.sees_images(config))
  return config['network']


def load(
  logdir: str, trust: references.Trust = references.NOTHING
) -> tuple[str, AttrDict]:
  """Load the configuration of an existing run.

  Args:
    logdir: Log directory of the run, or a folder that contains a single run.
    trust: `agents.run.references.Trust` in names that the run may contain.

  Returns:
    Tuple of the log directory of the run and a locked AttrDict.

  Raises:
    UsageError: If there is no run, more than one, or it is damaged or not a
      PPO run.
  """
  run = folder.find_single(logdir)
  return run, utility.load_config(run, trust)


def store(run: folder.Run) -> None:
  """Write the configuration of a run that starts or gets more steps.

  Args:
    run: Value yielded by `claim`. Without a folder, nothing is written.
  """
  if not run.settings or run.step < total_steps(run.config):
    utility.save_config(run.config)


def epoch_steps(config: AttrDict) -> tuple[int, int]:
  """Return the steps of training and of evaluation in an epoch."""
  length = config.max_length
  return config.update_every * length, config.eval_episodes * length


def total_steps(config: AttrDict) -> int:
  """Return the global step at which a run ends, evaluation included."""
  training, evaluation = epoch_steps(config)
  epochs, rest = divmod(math.ceil(config.steps), training)
  return epochs * (training + evaluation) + rest


def training_steps(config: AttrDict, step: int) -> int:
  """Return the number of training steps up to a global step."""
  training, evaluation = epoch_steps(config)
  epochs, rest = divmod(step, training + evaluation)
  return epochs * training + min(rest, training)


def add_budget(
  overrides: dict[str, Any], total_env_steps: float | None
) -> dict[str, Any]:
  """Return the overrides with the number of steps to train.

  Raises:
    UsageError: If it is not positive, or the overrides already set it.
  """
  if total_env_steps is None:
    return overrides
  if 'steps' in overrides:
    raise errors.UsageError('Give either steps or total_env_steps, not both.')
  given = {'steps': total_env_steps}
  return {**overrides, **configs.Config.check(given, 'total_env_steps')}


def _find_end(run):
  """Return a sentence if a run is finished, None otherwise."""
  if run.step < total_steps(run.config):
    return None
  return (
    f'Nothing to do: the run in {run.folder} is finished; raise '
    'total_env_steps to continue training.'
  )


def _combine(name, overrides):
  """Return the configuration of a new run, and its given part."""
  given = {k: v for k, v in (overrides or {}).items() if v is not None}
  own = configs.call(name)
  given = configs.Config.check({**(own or {}), **given})
  config = {**configs.make(name if own is None else 'default'), **given}
  config = configs.import_own(config, references.EVERYTHING)
  if adapters.is_environment(config.get('env')):
    if given.get('num_agents', 1) != 1:
      raise errors.UsageError(
        f'num_agents is {given["num_agents"]}, but the environment is a single '
        'object; pass a function that creates environments.'
      )
    config['num_agents'] = 1
  return config, {x: config[x] for x in given}


def _complete(name, config, path):
  """Return the complete configuration of a training."""
  if not config.get('env'):
    raise errors.UsageError(
      f'Configuration {name} names no environment; add --env, for example '
      '--env=Pendulum-v1.'
    )
  return AttrDict({**config, 'logdir': path})


def _choose(logdir, path, name, config, given):
  """Return the locked run that a command starts, continues or repeats."""
  if not logdir:
    return folder.Run(None, reason='Starting a run without --logdir.')
  if path:
    run = folder.Run.open(path)
    words = 'Continuing the' if run.settings else 'Starting a new'
    flag = '--logdir' if path == logdir else '--timestamp'
    run.reason = f'{words} run in {run.folder}, given by {flag}.'
    return run
  finished: list[str] = []
  older = folder.find(logdir, 'config.yaml', f'-{name}')
  newest, words = folder.choose(
    reversed(older), lambda x: _why_not(x, config, given, finished)
  )
  if newest:
    newest.reason = (
      f'Continuing the run in {newest.folder}, the newest one with these '
      'settings that is neither finished nor in use.'
    )
    return newest
  if finished:
    run = folder.Run.open(finished[0])
    run.reason = f'The run in {run.folder} has these settings.'
    return run
  now = datetime.datetime.now()
  times = (now + datetime.timedelta(seconds=x) for x in itertools.count())
  run = folder.create(logdir, (f'{x:%Y%m%dT%H%M%S}-{name}' for x in times))
  words = words or 'it is the first one of this configuration'
  run.reason = f'Starting a new run in {run.folder}: {words}.'
  return run


def _why_not(run, config, given, finished):
  """Return why a command cannot continue a run; None if it can.

  Adds the folder of a run that has completed the command to a list.
  """
  stored, wanted = run.settings, configs.to_plain(config)
  if configs.for_images(stored.get('network')) == wanted['network']:
    # Earlier versions flattened images.
    stored = {**stored, 'network': wanted['network']}
  # Settings of later versions do not count, unless given. Every run has an env.
  different = folder.compare(stored, wanted, _FIXED & {'env', *stored, *given})
  if different:
    return f'has other settings ({folder.describe(different)})'
  configs.check_complete(run.folder, stored)
  steps = given.get('steps', stored['steps'])
  if run.step >= total_steps(AttrDict({**stored, 'steps': steps})):
    if not folder.compare(stored, wanted, set(given) - {'steps'}):
      finished.append(run.folder)
    return 'is finished (to train it for longer, raise total_env_steps)'
  return None


def _check_name(run, name, config, given):
  """Refuse a configuration that the run in a given folder is not of."""
  own = os.path.basename(run.folder).partition('-')[2]
  if own == name:
    return
  names = _FIXED & {*configs.CHOICES.get(name, ())} - {*given}
  wanted = configs.to_plain(config)
  different = folder.compare(run.settings, wanted, names)
  if different:
    raise errors.UsageError(
      f'The run in {run.folder} is not one of --config={name} '
      f'({folder.describe(different)}); omit --config to continue it, or '
      'choose another --logdir.'
    )
  if own in configs.CHOICES:
    run.reason += f' Its settings are those of {own}, not of {name}.'


def _merge(run, given):
  """Merge given settings into the stored ones, if they may change."""
  plain = configs.to_plain(given)
  del plain['version']
  changed = folder.find_changes(
    run.folder, run.settings, plain, configs.Config.fixed
  )
  run.changes = [f'{k} {old} -> {new}' for k, (old, new) in changed.items()]
  return {**run.settings, **given}


def _try_env(config, isolated=True):
  """Try a step of an environment, to refuse early what cannot work.

  Returns:
    Spaces of observations and actions as plain data.
  """
  name = config['env']
  look = functools.partial(_look, name)
  create = functools.partial(
    continuous.make,
    name,
    settings=config.get('env_settings'),
  )
  # OpenGL in software and TensorFlow crash in the same process.
  apart = isolated and _may_render(name) and not hosts.why_not_sent(create)
  inspect = probe.inspect if apart else probe.inspect_here
  return inspect(create, look)['spaces']


def _may_render(env):
  """Return whether an environment may observe what it renders."""
  if isinstance(env, str):
    return ':' in env
  return not adapters.is_environment(env)


def _look(name, env):
  contract.try_step(env, name)
  found = env.observation_space, env.action_space
  return {'spaces': [spaces.to_plain(x) for x in found]}

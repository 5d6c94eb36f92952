"""What a run will do, decided and checked before it begins."""

import os

from agents.tools import errors
from agents.tools import files
from agents.tools.attr_dict import AttrDict

# Parameters that do not change what a run is.
_FREE_ON_RESUME = (
  'max_steps',
  'checkpoint_every',
  'checkpoint_minutes',
  'isolate_envs',
  # How to search with the model, which stays the same.
  'planner_horizon',
  'planner_amount',
  'planner_topk',
  'planner_iterations',
  'planner_warm_start',
  # Where the server is; a change of the world itself is refused elsewhere.
  'carla_backend',
  'carla_host',
  'carla_port',
  'carla_tm_port',
  'carla_timeout',
  'carla_allow_backend_change',
)


def check(args):
  """Refuse arguments that cannot work, before any work is done.

  Builds the configurations of the runs that this process may work on, and
  constructs each environment once. Other runs are neither judged nor touched.

  Args:
    args: See `main`.

  Returns:
    Dict from the names of what is recorded to the shape of one step.

  Raises:
    UsageError: Saying what is wrong and what to do.
  """
  from planet.envs import probe
  from planet.training import running

  logdir = os.path.expanduser(args.logdir)
  files.check_writable(logdir)
  folders = running.find_open(
    logdir, args.num_runs, args.ping_every, args.resume_runs
  )
  # With nothing to do, wrong arguments are still worth a sentence.
  configs = [define_config(x, args) for x in folders] or [
    _build(logdir, args.config, args.params, getattr(args, 'seed', None))
  ]
  for task in configs[0].tasks:
    report = probe.inspect(task.env_ctor)
    for message in report['messages']:
      print(message)
    _check_renderer(task, report['renderer'], configs[0].isolate_envs)
  _check_bias(args.params.get('planner_bias'), report['shapes']['action'])
  return report['shapes']


def check_episodes(config, shapes):
  """Make sure that a run holds episodes of its task.

  Files that do not fit are renamed, so the run has to belong to this worker.

  Args:
    config: Configuration of the run.
    shapes: What `check` returns.

  Raises:
    UsageError: If there are readable episodes, but all have other shapes.
  """
  from planet.training import episode_folder

  for folder in (config.train_dir, config.test_dir):
    episode_folder.check(folder, shapes)


def define_config(logdir, args):
  """Build the configuration of a run, new or existing.

  Args:
    logdir: Folder of the run.
    args: Object with `config`, `params` and optionally `seed`.

  Returns:
    Locked AttrDict.

  Raises:
    UsageError: If the parameters are wrong, or do not fit the existing run.
  """
  given = {key: args.params.get(key) for key in args.params}
  seed = getattr(args, 'seed', None)
  stored = _load_source(logdir)
  if not stored:
    return _build(logdir, args.config, given, seed)
  name, before, old_seed = stored
  changed = [] if name == args.config else ['--config']
  changed += sorted(
    key
    for key in set(before) | set(given)
    if key not in _FREE_ON_RESUME and before.get(key) != given.get(key)
  )
  if seed is not None and seed != old_seed:
    changed.append('--seed')
  if changed:
    raise errors.UsageError(
      f'The run in {logdir} was started with --config {name} --params '
      f'"{before}" --seed {old_seed}. Now {", ".join(changed)} would change. '
      'Repeat the command to continue, or use another logdir.'
    )
  free = {key: given[key] for key in _FREE_ON_RESUME if key in given}
  return _build(logdir, name, {**before, **free}, old_seed)


def restore_config(logdir, overrides):
  """Build the configuration of an existing run.

  Args:
    logdir: Folder of the run.
    overrides: Dict of parameters that differ.

  Returns:
    Locked AttrDict.

  Raises:
    UsageError: If there is no readable configuration, or a parameter is
      wrong.
  """
  stored = _load_source(logdir)
  if not stored:
    raise errors.UsageError(f'There is no configuration in {logdir}.')
  name, params, seed = stored
  return _build(logdir, name, {**params, **overrides}, seed)


def _load_source(logdir):
  """Name, parameters and seed of an existing run, None if it is new."""
  from planet.training import utility

  try:
    stored = utility.load_config(logdir)
  except OSError:
    return None
  except ValueError as error:
    raise errors.UsageError(
      f'Cannot read the configuration of {logdir}: {error} Repair '
      'config.yaml, or use another logdir.'
    ) from None
  if stored.get('config') is None:
    raise errors.UsageError(
      f'The config.yaml of {logdir} was not written by this program; use '
      'another logdir.'
    )
  return stored.config, dict(stored.params or {}), stored.get('seed')


def _build(logdir, name, given, seed):
  from agents import utility as agents_utility
  from planet.scripts import configs
  from planet.scripts import parameters

  params = AttrDict(given, logdir=logdir)
  config = AttrDict()
  config.seed = seed
  checkpoint = agents_utility.latest_checkpoint(logdir)
  config.first_step = int(checkpoint.rpartition('-')[2]) if checkpoint else 0
  config = configs.find(name)(config, params)
  parameters.check_all_used(params)
  config.source = AttrDict(config=name, params=given, seed=seed)
  config.lock()
  return config


def _check_renderer(task, renderer, isolate_envs):
  """Keep software OpenGL out of the process of TensorFlow."""
  from agents.tools import opengl

  if renderer and opengl.is_software(renderer) and isolate_envs != 'process':
    raise errors.UsageError(
      f'Task {task.name} renders with {renderer}, which crashes in the '
      'process of TensorFlow; use isolate_envs: process.'
    )


def _check_bias(bias, action_shape):
  """Make sure that plans begin at an action."""
  if bias and (len(bias),) != action_shape:
    raise errors.UsageError(
      f'Parameter planner_bias has {len(bias)} values, but actions have '
      f'{action_shape[0]}; give one for each.'
    )

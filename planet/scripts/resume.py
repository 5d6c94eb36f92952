"""Configure and check new and resumed runs before they start.

A resumed run accepts new values for parameters that affect neither the
variables nor the meaning of recorded episodes. For all others, `fixed` in the
declaration of the parameter gives the reason.
"""

import functools
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from agents.run import checkpoint, errors, folder, references
from planet.envs.seeding import derive_seed
from planet.scripts import configs, parameters, renamed, tasks
from planet.tools.attr_dict import AttrDict
from planet.training import episode_folder, precision

_logger = logging.getLogger(__name__)

# Format of config.yaml.
VERSION = 1
_LIMITS = 'max_steps', 'total_env_steps'


def define_config(logdir: str, args: Any) -> AttrDict:
  """Build the configuration of a new or existing run.

  Args:
    logdir: Folder of the run.
    args: Object with `config`, `params` and optionally `seed`, `trust` and
      `objects`, see `planet.scripts.configs.build`.

  Returns:
    Locked AttrDict. `source` is the content of config.yaml. `report` lists
    changed and kept parameters of an existing run, one line each.

  Raises:
    UsageError: If the parameters are wrong or do not fit the existing run.
  """
  given = parameters.check(args.params)
  seed = getattr(args, 'seed', None)
  trust = references.parse(getattr(args, 'trust', None))
  typed = [*_gym_ids(given), *(given.get(x) for x in parameters.OWN)]
  trust = trust.and_typed(typed)
  logdir = os.path.normpath(os.path.expanduser(logdir))
  run = folder.Run(logdir)
  stored = _read_source(run, trust)
  usual_tasks = parameters.usual_tasks(args.config)
  if stored:
    usual_tasks = _find_tasks(stored)
  own_tasks = given.get('tasks', usual_tasks)
  report = renamed.explain(given, own_tasks)
  given = parameters.translate(given, own_tasks)
  source = stored or AttrDict(
    version=VERSION, config=args.config, params=given, seed=seed
  )
  usual = _choose_defaults(source)
  if stored:
    if stored.config != args.config:
      raise errors.UsageError(
        f'The run in {logdir} was started with --config {stored.config} and '
        f'cannot continue with --config {args.config}. Give --config '
        f'{stored.config} and single parameters, or use another logdir.'
      )
    report += _change(stored, usual, given, seed, run)
  params = parameters.join(usual, source.params)
  name = os.path.basename(logdir)
  number = int(name) if re.fullmatch(r'\d{5,}', name) else 1
  # The first run uses the seed itself, like a single run.
  own = derive_seed(source.seed, 'run', number) if number > 1 else source.seed
  parts = parameters.resolve(params, getattr(args, 'objects', {}), trust)
  config = _build(logdir, source, params, own, run.checkpoint, parts)
  with config.unlocked:
    config.report = report
  return config


def _gym_ids(params):
  """Return the tasks, without the prefix of gymnasium ids."""
  ids = [x.removeprefix('gym_') for x in params.get('tasks', ())]
  # Names in brackets stand for objects and import nothing.
  return [x for x in ids if not x.startswith('<')]


def _read_source(run, trust):
  """Return the content of config.yaml, None for a new run.

  Stored tasks such as `gym_module:Name-v0` may only import trusted modules.
  """
  stored = run.settings
  if stored is None:
    return None
  version = stored.get('version')
  given, known = stored.get('params'), stored.get('values', {})
  if version != VERSION or not all(isinstance(x, dict) for x in (given, known)):
    raise errors.UsageError(
      f'The config.yaml in {run.folder} has format {version}, but this program '
      f'supports only format {VERSION}; use another logdir.'
    )
  own_tasks = _find_tasks(stored)
  for name in _gym_ids({'tasks': own_tasks}):
    references.check_env_id(name, trust)
  stored = renamed.translate_run(stored, own_tasks)
  given, known = stored['params'], stored['values']
  # A limit may be replaced by the other one.
  known = {k: v for k, v in known.items() if k not in _LIMITS}
  values = parameters.check(parameters.update(known, given))
  values = parameters.translate(values, own_tasks)
  params = {x: values[x] for x in given if x != 'env'}
  if 'env' in given:
    params['env'] = {x: values['env'][x] for x in given['env']}
  own = {'params': params, 'values': values}
  return AttrDict({'seed': None, **stored, **own}, _unlocked=True)


def _find_tasks(stored):
  """Return the tasks of a stored run."""
  for values in (stored['params'], stored.get('values', {})):
    if 'tasks' in values:
      return parameters.check({'tasks': values['tasks']})['tasks']
  return parameters.usual_tasks(stored['config'])


def _choose_defaults(source):
  """Return the default values of a run, which keeps them if presets change."""
  usual = parameters.choose_defaults(source.config, source.params)
  return parameters.update(usual, source.get('values', {}))


def _change(source, usual, given, seed, run):
  """Apply new parameters to a resumed run; return lines for the user.

  Parameters that are not given keep their stored values. Of the two limits, a
  new one replaces the other, also in `usual`. `changes` lists dicts of the
  `step` and `[old, new]` for each name.
  """
  before = parameters.flatten(parameters.update(usual, source.params))
  if before['total_env_steps']:
    # Such a run ignores max_steps.
    before['max_steps'] = None
  replaced: dict[str, Any] = {}
  for name, other in (_LIMITS, _LIMITS[::-1]):
    if given.get(name):
      replaced[other] = None
      source.params.pop(other, None)
  if 'total_env_steps' in replaced:
    usual['total_env_steps'] = None
  fixed = functools.partial(parameters.fixed, tasks=before['tasks'])
  flat = parameters.flatten(given)
  changed = folder.find_changes(run.folder, before, {**flat, **replaced}, fixed)
  kept = sorted(set(parameters.flatten(source.params)) - set(flat))
  new = parameters.unflatten({x: flat[x] for x in changed if x in flat})
  source.params = parameters.update(source.params, new)
  if seed not in (None, source.seed):
    changed['seed'] = [source.seed, seed]
    source.seed = seed
  if changed:
    step = {'step': run.step, **changed}
    source.changes = [*source.get('changes', []), step]
  begin = f'(from step {run.step} of {run.folder})'
  lines = [f'{x}: {old} -> {new} {begin}' for x, (old, new) in changed.items()]
  if kept:
    words = ', '.join(f'{name}: {before[name]}' for name in kept)
    lines.append(f'Kept from earlier commands: {words}.')
  return lines


def _build(logdir, source, params, seed, path, own):
  config = configs.build(source.config, params, logdir, own)
  config.seed = seed
  config.first_step = int(path.rpartition('-')[2]) if path else 0
  config.checkpoint_to_load = path and os.path.basename(path)
  config.source = AttrDict(source, values=dict(params))
  config.lock()
  return config


def check(config: AttrDict, logdir: str, size: int = 1) -> None:
  """Check the requirements of a run and read the spaces of its environments.

  Renames episodes of the wrong shape, so this worker has to own the run.

  Args:
    config: Configuration of the run, completed in place.
    logdir: Folder of the run.
    size: Number of processes that train together.

  Raises:
    UsageError: If a requirement is not met.
    EnvError: If an environment fails.
  """
  if config.batch_shape[0] % size:
    raise errors.UsageError(
      f'{size} processes cannot share a batch of {config.batch_shape[0]} '
      'sequences evenly; change batch_shape or the number of processes.'
    )
  endless = config.train_steps and any(
    x.steps_until <= 0 and x.save_episode_dir == config.train_dir
    for x in config.train_collects.values()
  )
  if config.total_env_steps and not endless:
    raise errors.UsageError(
      'Without train_steps and an entry of train_collects that has neither '
      'until nor save_episode_dir, the training may never reach '
      'total_env_steps; give max_steps instead.'
    )
  if 0 < config.test_steps < config.batch_shape[0]:
    _logger.warning(
      'Parameter test_steps is %s, less than a batch of %s: some epochs have '
      'no test and no record. Raise it.',
      config.test_steps,
      config.batch_shape[0],
    )
  for name in config.unused:
    _logger.warning(
      'Parameter %r has no effect with these tasks and parameters.', name
    )
  precision.check(config.precision)
  for collect in config.random_collects.values():
    directory = collect.save_episode_dir
    if not collect.num_episodes and not episode_folder.count(directory, 1):
      raise errors.UsageError(
        f'There are no readable episodes in {directory} and num_seed_episodes '
        'is 0; copy episodes there or raise num_seed_episodes.'
      )
  shapes = tasks.prepare(config, logdir)
  with config.unlocked:
    config.source.shapes = {key: list(value) for key, value in shapes.items()}
  _check_bias(config, shapes)
  for directory in (config.train_dir, config.test_dir):
    episode_folder.check(directory, shapes, config.required_length)


def _check_bias(config, shapes):
  bias = config.planner_bias
  if bias and (len(bias),) != shapes['action']:
    raise errors.UsageError(
      f'Parameter planner_bias has {len(bias)} values, but actions have '
      f'{shapes["action"][0]} dimensions; give one value for each.'
    )


def restore(
  logdir: str,
  name: str | None = None,
  params: Mapping[str, Any] | None = None,
  seed: int | None = None,
  trust: references.Trusted = None,
) -> tuple[str, AttrDict, dict[str, tuple[int, ...]]]:
  """Return the arguments of `planet.training.playing.PlaNet` for a run.

  Args:
    logdir: See `planet.trained.load`, as for all arguments.
    name: Name of the checkpoint.
    params: Parameters of the planner and of the environment.
    seed: Seed.
    trust: Trusted modules.

  Returns:
    Tuple of the path of the checkpoint, the configuration of the run, and a
    dict from the names of recorded data to the shape of one step.

  Raises:
    UsageError: See `planet.trained.load`.
  """
  given, objects = parameters.name_objects(params or {})
  given = parameters.check(given)
  trust = references.parse(trust)
  trust = trust.and_typed(given.get(x) for x in parameters.OWN)
  logdir = folder.find_single(logdir)
  path = checkpoint.find_variables(logdir, name)
  if not path:
    raise errors.UsageError(
      f'There is no checkpoint in {logdir} yet. Training saves one every '
      'checkpoint_minutes, at the end, and when you press Ctrl-C.'
    )
  source = _read_source(folder.Run(logdir), trust)
  assert source, logdir
  own_tasks = _find_tasks(source)
  given = parameters.translate(given, own_tasks)
  for key in parameters.flatten(given):
    _, is_setting, name = key.partition('.')
    free = is_setting and not parameters.fixed(key, own_tasks)
    if not (free or key.startswith('planner')):
      raise errors.UsageError(
        f'Parameter {name or key!r} belongs to the trained model; an '
        'evaluation can only change parameters that start with planner, and '
        'settings of the environment that a run can change, too.'
      )
  source.params = parameters.update(source.params, given)
  if source.params.get('test_collects') == []:
    # A run without test episodes can still be evaluated.
    source.params['test_collects'] = [{}]
  values = parameters.join(_choose_defaults(source), source.params)
  own = parameters.resolve(values, objects, trust)
  config = _build(logdir, source, values, seed, path, own)
  with config.unlocked:
    config.tasks = [tasks.end_early(x) for x in config.tasks]
  if config.source.params.get('tasks', [''])[0].startswith('gym_<'):
    # The environment was an object of an earlier program.
    shapes = {x: tuple(y) for x, y in config.source.shapes.items()}
  else:
    shapes = tasks.prepare(config, logdir, evaluates=True)
  _check_bias(config, shapes)
  return path, config, shapes


def is_unfinished(logdir: str, limits: Mapping[str, Any]) -> bool:
  """Return whether a run is short of its `total_env_steps` or `max_steps`.

  Args:
    logdir: Folder of the run.
    limits: Mapping with one of the two limits.
  """
  if limits.get('total_env_steps'):
    episodes = episode_folder.EpisodeLog(os.path.join(logdir, 'train_episodes'))
    return episodes.count_steps() < limits['total_env_steps']
  return checkpoint.newest_step(logdir) < limits.get('max_steps', 0)

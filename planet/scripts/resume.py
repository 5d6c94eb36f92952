"""Configure and check new and resumed runs before they start.

A run has one complete mapping of values. A new one starts from a preset and
what is given. A resumed one reads its values, puts what is given in their
place, lists the changes, and refuses those of parameters that affect the
variables or the meaning of recorded episodes. For these, `fixed` in the
declaration of the parameter gives the reason.
"""

import functools
import logging
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents.envs import spaces
from agents.run import checkpoint, errors, files, folder, mpi, references
from planet.envs.seeding import derive_seed
from planet.scripts import (
  configs,
  environments,
  parameters,
  renamed,
  table,
  tasks,
)
from planet.scripts.arguments import Arguments
from planet.tools.attr_dict import AttrDict
from planet.training import episode_folder, precision

_logger = logging.getLogger(__name__)

# Format of config.yaml.
VERSION = 1


def define_config(logdir: str, args: Arguments) -> configs.Config:
  """Build the configuration of a new or existing run.

  Args:
    logdir: Folder of the run.
    args: Arguments of the program.

  Returns:
    Configuration. `source` is the content of config.yaml. `report` lists
    changed and kept parameters of an existing run, one line each.

  Raises:
    UsageError: If the parameters are wrong or do not fit the existing run.
  """
  logdir = os.path.normpath(files.expand(logdir))
  run = folder.Run(logdir)
  source: dict[str, Any]
  if run.settings is None:
    params, own_tasks = args.new
    source = {'version': VERSION, 'config': args.config, 'seed': args.seed}
    if replaced := table.list_replaced(params.tasks):
      source['replaced_tasks'] = replaced
    report = renamed.explain(args.params, params.tasks)
    trust = _trust_typed(args.trust, args.params)
  else:
    merged = _merge(run, args.params, args.trust)
    source, params, report = _resume(run, merged, args)
    own_tasks = tasks.define_all(params, args.objects.get('tasks'))
    trust = merged.trust
  name = os.path.basename(logdir)
  number = int(name) if re.fullmatch(r'\d{5,}', name) else 1
  # The first run uses the seed itself, like a single run.
  seed = source['seed']
  seed = derive_seed(seed, 'run', number) if number > 1 else seed
  own = parameters.resolve(params, args.objects, trust)
  config = configs.build(source['config'], params, own_tasks, logdir, own)
  return config.of_run(source, run.checkpoint, seed, report)


class _Merged(NamedTuple):
  """What a run has stored, with what is given in its place.

  Attributes:
    stored: Content of config.yaml, with the current names.
    before: All values until now.
    given: Values that are given, with the current names.
    values: All values from now on, each in its declared type.
    trust: Modules that the run may import.
  """

  stored: dict[str, Any]
  before: dict[str, Any]
  given: dict[str, Any]
  values: dict[str, Any]
  trust: references.Trust


def _merge(run, given, trust):
  """Read a run, put what is given in its place, and check all of it once.

  Stored tasks such as `gym_module:Name-v0` may only import trusted modules.
  """
  stored = _read(run)
  parameters.check_limits(given)
  earlier = parameters.update(stored['values'], stored['params'])
  settings = earlier.pop('env', {})
  checked = parameters.check({**earlier, **given})
  names = checked.get('tasks') or parameters.usual_tasks(stored['config'])
  _check_replaced(run, stored, names)
  given = renamed.translate({x: checked[x] for x in given}, names)
  trust = _trust_typed(trust, given)
  for name in _list_ids(names):
    references.check_env_id(name, trust)
  env = {**settings, **given.get('env', {})}
  env = parameters.check_env(env, names)
  if 'env' in given:
    given['env'] = {x: env[x] for x in given['env']}
  values = {x: y for x, y in checked.items() if x not in renamed.NAMES}
  values['env'] = env
  # Earlier versions had fewer parameters, or stored only the given ones.
  first = parameters.choose(values, parameters.flatten(stored['params']))
  usual = parameters.choose_defaults(stored['config'], first)
  return _Merged(
    stored,
    parameters.update(usual, {**earlier, 'env': settings}),
    given,
    parameters.update(usual, values),
    trust,
  )


def _check_replaced(run, stored, names):
  """Refuse tasks that are not what a run was trained with."""
  before, now = stored.get('replaced_tasks', []), table.list_replaced(names)
  for name in names:
    if (name in before) == (name in now):
      continue
    if name in before:
      raise errors.UsageError(
        f'The run in {run.folder} was trained with a function {name} of its '
        'own; set it as an attribute of planet.scripts.tasks first, or use '
        'another logdir.'
      )
    raise errors.UsageError(
      f'The run in {run.folder} was trained with the standard task {name}, but '
      'planet.scripts.tasks has a function of this name; do not set it, or use '
      'another logdir.'
    )


def _read(run):
  """Return the content of config.yaml with the current names."""
  folder.check_origin(run.folder, run.settings, 'params', 'PlaNet')
  stored = {'values': {}, 'seed': None, **run.settings}
  parts = stored['params'], stored['values']
  version = stored.get('version')
  are_mappings = all(
    isinstance(x, dict) and isinstance(x.get('env', {}), dict) for x in parts
  )
  if version != VERSION or not are_mappings:
    raise errors.UsageError(
      f'The config.yaml in {run.folder} has format {version}, but this program '
      f'supports only format {VERSION}; use another logdir.'
    )
  usual = parameters.usual_tasks(str(stored.get('config')))
  names = [x['tasks'] for x in parts if isinstance(x.get('tasks'), list)]
  return renamed.translate_run(stored, [*names, usual][0])


def _resume(run, merged, args):
  """Return the content of config.yaml, parameters, and lines for the user.

  Parameters that are not given keep their stored values. Of the two limits, a
  new one replaces the other. `changes` lists dicts of the `step` and
  `[old, new]` for each name.
  """
  stored, given, values = merged.stored, merged.given, merged.values
  if stored['config'] != args.config:
    raise errors.UsageError(
      f'The run in {run.folder} was started with --config {stored["config"]} '
      f'and cannot continue with --config {args.config}. Give --config '
      f'{stored["config"]} and single parameters, or use another logdir.'
    )
  before = parameters.flatten(merged.before)
  if before['total_env_steps']:
    # Such a run ignores max_steps.
    before['max_steps'] = None
  replaced: dict[str, Any] = {}
  for limit, other in (parameters.LIMITS, parameters.LIMITS[::-1]):
    if given.get(limit):
      replaced[other] = None
  if 'total_env_steps' in replaced:
    values = {**values, **replaced}
  flat = parameters.flatten(given)
  fixed = functools.partial(parameters.fixed, tasks=before['tasks'])
  changed = folder.find_changes(run.folder, before, {**flat, **replaced}, fixed)
  names = set(parameters.flatten(stored['params'])) - set(replaced)
  kept = sorted(names - set(flat))
  names |= set(changed) & set(flat)
  lines = renamed.explain(args.params, values['tasks'])
  if args.seed not in (None, stored['seed']):
    changed['seed'] = [stored['seed'], args.seed]
    stored = {**stored, 'seed': args.seed}
  if changed:
    step = {'step': run.step, **changed}
    stored = {**stored, 'changes': [*stored.get('changes', []), step]}
  begin = f'(from step {run.step} of {run.folder})'
  lines += [f'{x}: {old} -> {new} {begin}' for x, (old, new) in changed.items()]
  if kept:
    words = ', '.join(f'{name}: {before[name]}' for name in kept)
    lines.append(f'Kept from earlier commands: {words}.')
  return stored, parameters.complete(values, names), lines


def _list_ids(names):
  """Return the names of tasks, without the prefix of gymnasium ids."""
  ids = [x.removeprefix('gym_') for x in names]
  # Names in brackets stand for objects and import nothing.
  return [x for x in ids if not x.startswith('<')]


def _trust_typed(trust, given):
  """Also trust the modules that checked parameters of a command name."""
  own = [given.get(x) for x in parameters.OWN]
  own += parameters.list_objectives(given)
  trust = references.parse(trust)
  return trust.and_typed([*_list_ids(given.get('tasks', ())), *own])


def check(config: configs.Config, logdir: str, size: int = 1) -> configs.Config:
  """Check the requirements of a run and read the spaces of its environments.

  Renames episodes of the wrong shape, so this worker has to own the run.

  Args:
    config: Configuration of the run.
    logdir: Folder of the run.
    size: Number of processes that train together.

  Returns:
    Complete configuration, see `environments.prepare`.

  Raises:
    UsageError: If a requirement is not met.
    EnvError: If an environment fails.
  """
  mpi.check_even(size, 'batch_shape[0]', config.batch_shape[0])
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
  offline = bool(config.params.train_episodes)
  if offline:
    shapes = episode_folder.find_shapes(
      config.train_dir, config.recorded_keys, config.image_size
    )
  else:
    trained = config.source.get('interfaces', {})
    config, shapes = environments.prepare(config, logdir)
    _check_actions(trained, config.source.get('interfaces', {}), logdir)
  _check_bias(config, shapes)
  needed = {key: shapes[key] for key in config.recorded_keys}
  _check_shapes(config, needed, logdir)
  for directory in dict.fromkeys((config.train_dir, config.test_dir)):
    length = config.params.required_length
    episode_folder.check(directory, needed, length, rename=not offline)
  stored = {key: list(value) for key, value in shapes.items()}
  return config.replace(source=AttrDict(config.source, shapes=stored))


def _check_bias(config, shapes):
  bias = config.planner_bias
  if bias and (len(bias),) != shapes['action']:
    raise errors.UsageError(
      f'Parameter planner_bias has {len(bias)} values, but actions have '
      f'{shapes["action"][0]} dimensions; give one value for each.'
    )


def _check_shapes(config, shapes, logdir):
  """Refuse data of other shapes than those that a run was trained with."""
  known = config.source.get('shapes', {}) if config.checkpoint_to_load else {}
  for key in [x for x in shapes if x in known]:
    found, trained = list(shapes[key]), list(known[key])
    if found != trained:
      raise errors.UsageError(
        f'The run in {logdir} was trained with {key} of shape {trained}, but '
        f'now it has {found}; give what it was trained with, or use another '
        'logdir.'
      )


def _check_actions(trained, found, logdir):
  """Refuse other bounds: recorded actions are relative to them."""
  for name in [x for x in trained if x in found]:
    old, new = (
      spaces.from_plain(x[name]['action_space']) for x in (trained, found)
    )
    if old != new:
      raise errors.UsageError(
        f'The run in {logdir} was trained with actions {old} of {name}, but '
        f'now they are {new}; give what it was trained with, or use another '
        'logdir.'
      )


class Restored(NamedTuple):
  """A trained run.

  Attributes:
    path: Path of the checkpoint.
    config: Configuration of the run.
    shapes: Dict from the names of recorded data to the shape of one step.
  """

  path: str
  config: configs.Config
  shapes: dict[str, tuple[int, ...]]


def restore(
  logdir: str,
  name: str | None = None,
  params: Mapping[str, Any] | None = None,
  seed: int | None = None,
  trust: references.Trusted = None,
) -> Restored:
  """Return what a trained run acts with.

  Args:
    logdir: See `planet.trained.load`, as for all arguments.
    name: Name of the checkpoint.
    params: Parameters of the planner and of the environment.
    seed: Seed.
    trust: Trusted modules.

  Raises:
    UsageError: See `planet.trained.load`.
  """
  given, objects = parameters.name_objects(params or {})
  logdir = folder.find_single(logdir)
  path = checkpoint.find_variables(logdir, name)
  if not path:
    raise errors.UsageError(
      f'There is no checkpoint in {logdir} yet. Training saves one every '
      'checkpoint_minutes, at the end, and when you press Ctrl-C.'
    )
  merged = _merge(folder.Run(logdir), given, trust)
  source, values = merged.stored, merged.values
  names = parameters.flatten(merged.given)
  for key in names:
    setting = key.partition('.')[2]
    free = setting and not parameters.fixed(key, values['tasks'])
    if not (free or key.startswith(('planner', 'episode_length'))):
      raise errors.UsageError(
        f'Parameter {setting or key!r} belongs to the trained model; an '
        'evaluation can only change episode_length, parameters that start with '
        'planner, and settings of the environment that a run can change, too.'
      )
  # A run that never played can still be evaluated.
  values = {**values, 'train_episodes': None, 'test_episodes': None}
  if values['test_collects'] == []:
    values = {**values, 'test_collects': [{}]}
  names = {**parameters.flatten(source['params']), **names}
  complete = parameters.complete(values, names)
  found = [tasks.end_early(x) for x in tasks.define_all(complete, trains=False)]
  own = parameters.resolve(complete, objects, merged.trust)
  config = configs.build(source['config'], complete, found, logdir, own)
  config = config.of_run(source, path, seed)
  if values['tasks'][0].startswith('gym_<'):
    # The environment was an object of an earlier program.
    shapes = {x: tuple(y) for x, y in config.source.shapes.items()}
  else:
    config, shapes = environments.prepare(config, logdir, evaluates=True)
    seen = ('action', *config.observation_keys)
    _check_shapes(config, {x: shapes[x] for x in shapes if x in seen}, logdir)
  _check_bias(config, shapes)
  return Restored(path, config, shapes)


def is_unfinished(logdir: str, limits: Mapping[str, Any]) -> bool:
  """Return whether a run is short of its `total_env_steps` or `max_steps`.

  Args:
    logdir: Folder of the run.
    limits: Mapping with one of the two limits, which need not be checked.
  """
  total, most = limits.get('total_env_steps'), limits.get('max_steps')
  if isinstance(total, (int, float)):
    episodes = episode_folder.EpisodeLog(os.path.join(logdir, 'train_episodes'))
    return episodes.count_steps() < total
  return (
    isinstance(most, (int, float)) and checkpoint.newest_step(logdir) < most
  )

"""Runs, new and resumed: their configuration, and checks before they start.

What changes neither the variables nor the meaning of the recorded episodes may
change when a run is resumed; `fixed` of the parameters says what may not, and
why.
"""

import contextlib
import dataclasses
import logging
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from agents.run import checkpoint, errors, folder, references
from planet.envs.seeding import derive_seed
from planet.scripts import configs, parameters, tasks
from planet.tools import loaders
from planet.tools.attr_dict import AttrDict
from planet.training import episode_folder, precision, ranks

_logger = logging.getLogger(__name__)

# Of the format of config.yaml.
VERSION = 1


def define_config(
  logdir: str, args: Any, report: Callable[[str], Any] | None = None
) -> AttrDict:
  """Build the configuration of a run, new or existing.

  Args:
    logdir: Folder of the run.
    args: Object with `config`, `params` and optionally `seed` and `trust`.
    report: Function that is called with lines about an existing run: which
      parameters change, and which are kept.

  Returns:
    Locked AttrDict. Its `source` is what config.yaml says.

  Raises:
    UsageError: If the parameters are wrong, or do not fit the existing run.
  """
  given = args.params
  trust = references.parse(getattr(args, 'trust', None))
  names = [x.removeprefix('gym_') for x in _as_list(given.get('tasks'))]
  trust = dataclasses.replace(
    trust, names=trust.names + references.typed(names)
  )
  run = folder.Run(os.path.expanduser(logdir))
  stored = _read_source(run, trust)
  if stored:
    source, params, lines = _merge(run, stored, args)
    if report:
      for line in lines:
        report(line)
  else:
    params = parameters.build(args.config, given)
    source = AttrDict(
      version=VERSION,
      config=args.config,
      params={x: getattr(params, x) for x in given},
      seed=getattr(args, 'seed', None),
    )
  return _build(run, source, params, run.checkpoint)


def check(config: AttrDict, logdir: str, size: int = 1) -> None:
  """Check what a run needs, and ask its environments what they look like.

  The run has to belong to this worker: episodes that do not fit are renamed.

  Args:
    config: Configuration of the run, which gets complete.
    logdir: Folder of the run.
    size: Number of processes that train together.

  Raises:
    UsageError: Saying what is wrong and what to do.
    EnvError: If an environment fails.
  """
  ranks.check_batch(config.batch_shape[0], size)
  for name in config.unused:
    _logger.warning(
      'Parameter %r has no effect together with the other parameters.', name
    )
  precision.check(config.precision)
  for collect in config.random_collects.values():
    directory = collect.save_episode_dir
    if not collect.num_episodes and not loaders.list_episodes(directory):
      raise errors.UsageError(
        f'There are no episodes in {directory}, and num_seed_episodes is 0; '
        'put some there, or let some be played.'
      )
  shapes = tasks.prepare(config, logdir)
  bias = config.planner_bias
  if bias and (len(bias),) != shapes['action']:
    raise errors.UsageError(
      f'Parameter planner_bias has {len(bias)} values, but actions have '
      f'{shapes["action"][0]}; give one for each.'
    )
  for directory in (config.train_dir, config.test_dir):
    episode_folder.check(directory, shapes, tasks.required_length(config))


def restore_config(
  logdir: str, overrides: Mapping[str, Any], trust: references.Trust
) -> tuple[AttrDict, dict[str, tuple[int, ...]]]:
  """Build the configuration of an existing run, to play with its agent.

  Args:
    logdir: Folder of the run.
    overrides: Dict of parameters that differ.
    trust: `agents.run.references.Trust` in what the run may name.

  Returns:
    Tuple of a locked AttrDict, and a dict from the names of what the
    environments record to the shape of one step.

  Raises:
    UsageError: If there is no readable configuration, or a parameter is
      wrong.
  """
  run = folder.Run(logdir)
  source = _read_source(run, trust)
  assert source, logdir
  source.params = {**source.params, **overrides}
  if source.params.get('test_collects') == []:
    # The run plays no episodes itself.
    source.params['test_collects'] = [{}]
  params = parameters.build(source.config, source.params)
  path = None
  # If all others are damaged, the best checkpoint can be played with.
  with contextlib.suppress(errors.UsageError):
    path = checkpoint.find_variables(logdir, warn=None)
  config = _build(run, source, params, path)
  return config, tasks.prepare(config, logdir)


def _read_source(run, trust):
  """Return what config.yaml says, None for a new run.

  What the stored tasks, such as `gym_module:Name-v0`, would import has to be
  trusted.
  """
  stored = run.settings
  if stored is None:
    return None
  version = stored.get('version')
  if version != VERSION or not isinstance(stored.get('params'), dict):
    raise errors.UsageError(
      f'The config.yaml of {run.folder} has format {version}, but this program '
      f'reads and writes {VERSION}; use another logdir.'
    )
  for name in _as_list(stored['params'].get('tasks')):
    references.check_env_id(name.removeprefix('gym_'), trust)
  return AttrDict({'seed': None, **stored}, _unlocked=True)


def may_reopen(logdir: str, max_steps: int) -> bool:
  """Whether a run that is over goes on: it failed, or has more steps to go."""
  return folder.has(logdir, 'FAIL') or (
    checkpoint.newest_step(logdir) < max_steps
  )


def _as_list(names):
  names = [names] if isinstance(names, str) else names or ()
  return [x for x in names if isinstance(x, str)]


def _merge(run, stored, args):
  """Combine a run with the command that resumes it.

  What is given takes effect. What is not given stays as it was.

  Returns:
    Tuple of the new source, whose `changes` are dicts of the `step` and
    `[old, new]` for each name; the parameters; and lines about what differs.
  """
  preset, given, seed = args.config, args.params, getattr(args, 'seed', None)
  logdir, step = run.folder, run.step
  if preset != stored.config:
    raise errors.UsageError(
      f'The run in {logdir} was started with --config {stored.config}, which '
      f'--config {preset} would change as a whole. Give --config '
      f'{stored.config} and single parameters, or use another logdir.'
    )
  usual = parameters.build(preset, {})
  before = parameters.build(preset, stored.params)
  params = parameters.build(preset, {**stored.params, **given})
  changed = _compare(before, params, given)
  refused = [
    f'{name}: {old} -> {new} ({params.fixed(name)})'
    for name, (old, new) in changed.items()
    if params.fixed(name)
  ]
  if refused:
    raise errors.UsageError(
      f'The run in {logdir} cannot go on with {"; ".join(refused)}. Leave '
      'that as it is, or use another logdir.'
    )
  news = {name: new for name, (_, new) in changed.items()}
  source = AttrDict(stored, params={**stored.params, **news}, _unlocked=True)
  if seed not in (None, stored.seed):
    changed['seed'] = [stored.seed, seed]
    source.seed = seed
  if changed:
    source.changes = [*stored.get('changes', []), {'step': step, **changed}]
  lines = [
    f'{name}: {old} -> {new} (from step {step} of {logdir})'
    for name, (old, new) in changed.items()
  ]
  kept = _compare(usual, before, set(stored.params) - set(given))
  if kept:
    words = ', '.join(f'{name}: {value}' for name, (_, value) in kept.items())
    lines.append(f'Not given now, kept as before: {words}.')
  return source, params, lines


def _compare(old, new, names):
  """Dict from sorted names to lists of the old and the new value."""
  pairs = {x: [getattr(old, x), getattr(new, x)] for x in sorted(names)}
  return {x: pair for x, pair in pairs.items() if pair[0] != pair[1]}


def _build(run, source, params, path):
  logdir = run.folder
  config = configs.build(source.config, params, logdir)
  config.seed = _seed_of_run(source.seed, logdir)
  config.first_step = int(path.rpartition('-')[2]) if path else 0
  config.checkpoint_to_load = path and os.path.basename(path)
  config.source = source
  source.unlock()
  source.values = dict(params)
  config.lock()
  return config


def _seed_of_run(seed, logdir):
  """Return a seed that differs between the runs of an experiment."""
  name = os.path.basename(os.path.normpath(logdir))
  number = int(name) if re.fullmatch(r'\d{5,}', name) else 1
  # The first run has the seed itself, as a single run always had.
  return seed if number <= 1 else derive_seed(seed, 'run', number)

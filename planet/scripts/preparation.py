"""What a run will do, decided and checked before it begins."""

import contextlib
import dataclasses
import logging
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from agents.run import checkpoint, errors, files, folder, references
from planet.envs.carla import scenarios
from planet.envs.seeding import derive_seed
from planet.scripts import continuing, parameters
from planet.tools.attr_dict import AttrDict

_logger = logging.getLogger(__name__)


def check(args: Any, size: int = 1) -> dict[str, tuple[int, ...]]:
  """Refuse arguments that cannot work, before any work is done.

  Builds the configurations of the runs that this process may work on, and
  constructs each environment once. Other runs are neither judged nor touched.

  Args:
    args: See `main`.
    size: Number of processes that train together.

  Returns:
    Dict from the names of what is recorded to the shape of one step.

  Raises:
    UsageError: Saying what is wrong and what to do.
  """
  from agents.envs import probe
  from planet.training import precision, ranks, running

  logdir = os.path.expanduser(args.logdir)
  files.check_creatable(logdir)
  folders = running.find_open(
    logdir, args.num_runs, args.ping_every, args.resume_runs
  )
  # With nothing to do, wrong arguments are still worth a sentence.
  configs = [define_config(x, args) for x in [*folders, *_find_over(args)]] or [
    _build(logdir, _new_source(args))
  ]
  for config in configs:
    ranks.check_batch(config.batch_shape[0], size)
  for name in configs[0].unused:
    if name in args.params:
      _logger.warning(
        'Parameter %r has no effect together with the other parameters.', name
      )
  precision.check(configs[0].precision)
  for task in configs[0].tasks:
    report = probe.inspect(task.env_ctor)
    for message in report['messages']:
      print(message)
    _check_renderer(task, report['renderer'], configs[0].isolate_envs)
  _check_bias(args.params.get('planner_bias'), report['shapes']['action'])
  for config in configs:
    _check_seed_episodes(config)
  return report['shapes']


def reopen(args: Any) -> None:
  """Let runs go on that are over: those that failed, or have more steps to go.

  Args:
    args: See `main`; they have passed `check`.
  """
  for logdir in _find_over(args):
    for marker in ('FAIL', 'DONE'):
      folder.unmark(logdir, marker)


def check_episodes(
  config: AttrDict, shapes: dict[str, tuple[int, ...]]
) -> None:
  """Make sure that a run holds episodes of its task.

  Files that do not fit are renamed, so the run has to belong to this worker.

  Args:
    config: Configuration of the run.
    shapes: What `check` returns.

  Raises:
    UsageError: If there are readable episodes, but all have other shapes, or
      one is too short for training.
  """
  from planet.training import episode_folder

  needed = config.batch_shape[1] * config.num_chunks
  for directory in (config.train_dir, config.test_dir):
    episode_folder.check(directory, shapes, needed)


def define_config(
  logdir: str, args: Any, report: Callable[[str], Any] | None = None
) -> AttrDict:
  """Build the configuration of a run, new or existing.

  Args:
    logdir: Folder of the run.
    args: Object with `config`, `params` and optionally `seed`.
    report: Function that is called with lines about an existing run: which
      parameters change, and which are kept.

  Returns:
    Locked AttrDict.

  Raises:
    UsageError: If the parameters are wrong, or do not fit the existing run.
  """
  new, stored = _new_source(args), _load_source(logdir)
  step = checkpoint.newest_step(logdir)
  if not stored:
    return _build(logdir, new, step)
  trust = references.parse(getattr(args, 'trust', None))
  check_tasks(stored.params, trust, new.params.get('tasks'))
  parameters.check_names(new.params)
  source, lines = continuing.merge(logdir, stored, new, step)
  if report:
    for line in lines:
      report(line)
  return _build(logdir, source, step)


def check_tasks(
  params: Mapping[str, Any], trust: references.Trust, given: Any = None
) -> None:
  """Refuse stored tasks that import modules which the user does not trust.

  Args:
    params: Dict of stored parameters, whose tasks may be such as
      `gym_module:Name-v0`.
    trust: `agents.run.references.Trust`.
    given: List of tasks, or a task, of the command line; their modules are
      trusted as well.

  Raises:
    NotTrusted: Naming the first such task.
  """
  typed = references.typed(x.removeprefix('gym_') for x in _as_list(given))
  trust = dataclasses.replace(trust, names=trust.names + typed)
  for task in _as_list(params.get('tasks')):
    references.check_env_id(task.removeprefix('gym_'), trust)


def restore_config(logdir: str, overrides: Mapping[str, Any]) -> AttrDict:
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
  with stored.unlocked:
    stored.params = {**stored.params, **overrides}
  step = 0
  # If all others are damaged, the best checkpoint can be played with.
  with contextlib.suppress(errors.UsageError):
    step = checkpoint.newest_step(logdir)
  return _build(logdir, stored, step)


def _find_over(args):
  """List runs that are over, but go on with these arguments."""
  logdir, given = os.path.expanduser(args.logdir), AttrDict(args.params)
  over = folder.find(logdir, 'DONE') if args.resume_runs else []
  steps = parameters.read(given, 'max_steps') if 'max_steps' in given else 0
  return [
    run
    for run in over
    if re.fullmatch(r'\d{5,}', os.path.basename(run))
    and int(os.path.basename(run)) <= (args.num_runs or math.inf)
    and (folder.has(run, 'FAIL') or checkpoint.newest_step(run) < steps)
    and not folder.is_locked(run)
  ]


def _as_list(tasks):
  tasks = [tasks] if isinstance(tasks, str) else tasks or ()
  return [x for x in tasks if isinstance(x, str)]


def _new_source(args: Any) -> AttrDict:
  """Return what the command line says of a configuration.

  A run keeps the scenarios that a file holds now, whatever becomes of it.
  """
  params = {key: args.params.get(key) for key in args.params}
  if 'carla_scenario' in params:
    params['carla_scenario'] = scenarios.load(params['carla_scenario'])
  return AttrDict(
    config=args.config,
    params=params,
    seed=getattr(args, 'seed', None),
  )


def _load_source(logdir: str) -> AttrDict | None:
  """Return what the configuration of a run came from, None if it is new."""
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
  source = AttrDict(
    config=stored.config,
    params=dict(stored.params or {}),
    seed=stored.get('seed'),
  )
  if stored.get('changes'):
    with source.unlocked:
      source.changes = list(stored.changes)
  return source


def _build(logdir: str, source: AttrDict, step: int = 0) -> AttrDict:
  from planet.scripts import configs, tasks

  params = AttrDict(source.params, logdir=logdir)
  config = AttrDict()
  config.seed = _seed_of_run(source.seed, logdir)
  config.first_step = step
  config = configs.find(source.config)(config, params)
  config.unused = parameters.find_unused(params)
  config.source = source
  config.lock()
  tasks.prepare(config, logdir)
  return config


def _seed_of_run(seed: int | None, logdir: str) -> int | None:
  """Return a seed that differs between the runs of an experiment."""
  name = os.path.basename(os.path.normpath(logdir))
  number = int(name) if re.fullmatch(r'\d{5,}', name) else 1
  # The first run has the seed itself, as a single run always had.
  return seed if number <= 1 else derive_seed(seed, 'run', number)


def _check_renderer(task, renderer, isolate_envs):
  """Keep software OpenGL out of the process of TensorFlow."""
  from agents.envs import opengl

  if renderer and opengl.is_software(renderer) and isolate_envs != 'process':
    raise errors.UsageError(
      f'Task {task.name} renders with {renderer}, which crashes in the '
      'process of TensorFlow; use isolate_envs: process.'
    )


def _check_seed_episodes(config):
  """Make sure that a run has episodes to begin with, or may play some."""
  from planet.tools import loaders

  for collect in config.random_collects.values():
    folder = collect.save_episode_dir
    if not collect.num_episodes and not loaders.list_episodes(folder):
      raise errors.UsageError(
        f'There are no episodes in {folder}, and num_seed_episodes is 0; put '
        'some there, or let some be played.'
      )


def _check_bias(bias, action_shape):
  """Make sure that plans begin at an action."""
  if bias and (len(bias),) != action_shape:
    raise errors.UsageError(
      f'Parameter planner_bias has {len(bias)} values, but actions have '
      f'{action_shape[0]}; give one for each.'
    )

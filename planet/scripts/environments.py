"""Complete the tasks of a run by looking at their environments.

Does not import TensorFlow, because a part of it runs in their processes.
"""

import functools
from typing import TYPE_CHECKING, Any

from agents.envs import adapters, contract, hosts, opengl, probe
from agents.run import errors
from planet.envs import constructors, interface
from planet.envs.constructors import Task
from planet.scripts import tasks as tasks_lib
from planet.tools.attr_dict import AttrDict

if TYPE_CHECKING:
  from planet.scripts.configs import Config


def prepare(
  config: 'Config', logdir: str, evaluates: bool = False
) -> tuple['Config', dict[str, tuple[int, ...]]]:
  """Complete the tasks of a configuration by looking at their environments.

  Creates each environment once, in a separate process, or in this one if its
  constructor can run only here. Lets environments choose settings, and unifies
  the observations and actions of several tasks.

  Args:
    config: Configuration.
    logdir: Folder of the run.
    evaluates: Whether the run only plays, one environment after the other.

  Returns:
    Tuple of the configuration with complete tasks, and a dict from the names of
    recorded data to the shape of one step.

  Raises:
    UsageError: If settings do not suit the run, something is missing, or an
      environment does not fit.
  """
  tasks, chosen = _choose_settings(config, logdir, evaluates)
  reports = [_inspect(x, config.isolate_envs) for x in tasks]
  images = {x.name: y['shapes'].get('image') for x, y in zip(tasks, reports)}
  if len(set(images.values())) > 1:
    raise errors.UsageError(
      f'Images of the tasks have different shapes, {images}, but share a '
      'model; train the tasks apart.'
    )
  shapes = reports[-1]['shapes']
  if not tasks_lib.are_alike(tasks):
    spaces = [x['action_space'] for x in reports]
    size = max(x.shape[0] for x in spaces)
    shapes = {'image': shapes['image'], 'action': (size,), 'reward': ()}
    tasks = [
      x._replace(
        env_ctor=functools.partial(constructors.unified_env, x.env_ctor, spaces)
      )
      for x in tasks
    ]
  predicted = {*tasks[-1].state_components} & {*config.recorded_keys}
  if missing := sorted(predicted - {'reward', *shapes}):
    raise errors.UsageError(
      f'The environment of {tasks[-1].name} observes {sorted(shapes)}, but not '
      f'{missing}; add it there, or remove it from state_components.'
    )
  named = {x.name: x for x in tasks}
  own = {x.name: y['interface'] for x, y in zip(tasks, reports)}
  collects = {}
  for kind in ('random_collects', 'train_collects', 'test_collects'):
    entries = {}
    for name, collect in config[kind].items():
      task = named[collect.task.name]
      if kind == 'random_collects':
        task = task.tell(initial=True)
      entries[name] = AttrDict(collect, task=task)
    collects[kind] = AttrDict(entries)
  source = AttrDict(config.source, interfaces=own)
  if chosen:
    source = AttrDict(source, chosen=chosen)
  told = [_tell_length(x, y['time_limit']) for x, y in zip(tasks, reports)]
  report = (*config.report, *(x for x in told if x))
  config = config.replace(tasks=tasks, source=source, report=report, **collects)
  return config, shapes


def _tell_length(task, limit):
  """Return a sentence if episodes are shorter than a collection, or None."""
  steps = task.max_length * task.action_repeat
  if not limit or limit >= steps:
    return None
  return (
    f'Episodes of {task.name} have at most {limit} environment steps. A '
    f'collection plays {steps} (episode_length), so it records several.'
  )


def _inspect(task, isolate_envs):
  """Return shapes, action space and renderer of the environment of a task."""
  if adapters.is_environment(task.env_ctor.args[0]):
    return {**_look(task.env_ctor()), 'renderer': None, 'messages': []}
  reason = hosts.why_not_sent(task.env_ctor)
  if reason and isolate_envs == 'process':
    raise errors.UsageError(
      f'The constructor of {task.name} cannot be sent to a process, '
      f'{reason}; create what it needs inside of it, or use isolate_envs: '
      'thread or none.'
    )
  if reason:
    report = {**probe.inspect_here(task.env_ctor, _look), 'messages': []}
    # Known once the environment has rendered.
    software = opengl.is_loaded_in_software()
    report['renderer'] = 'llvmpipe' if software else None
  else:
    report = probe.inspect(task.env_ctor, _look)
  for message in report['messages']:
    print(message)
  renderer = report['renderer'] if isolate_envs != 'process' else None
  if renderer and opengl.is_software(renderer):
    raise errors.UsageError(
      f'Task {task.name} renders with {renderer}, which crashes in one '
      'process with TensorFlow; use isolate_envs: process.'
    )
  return report


def _choose_settings(config, logdir, evaluates):
  """Let environments that declare settings choose those of the run.

  Returns:
    Tuple of the tasks, and of the settings that the run keeps.
  """
  collects = [*config.train_collects.values(), *config.test_collects.values()]
  num_envs = sum(x.num_agents for x in collects if x.task.declared)
  tasks: list[Task] = []
  chosen: dict[str, Any] = {}
  for task in config.tasks:
    if task.declared:
      before = config.source.get('chosen', {})
      settings = task.declared.begin(
        # All tasks share the choice of the first.
        {**task.settings, **chosen},
        before,
        1 if evaluates else num_envs,
      )
      task = task.with_settings(**settings).tell(logdir=logdir)
      chosen = {x: settings[x] for x in task.declared.chosen}
    tasks.append(task)
  return tasks, chosen


def _look(env):
  return {
    'shapes': probe.measure(env),
    'action_space': env.action_space,
    'time_limit': contract.find_time_limit(env),
    'interface': interface.find(env).to_plain(),
  }

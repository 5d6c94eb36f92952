"""Which episodes a run collects: random ones first, then planned ones."""

import os

from agents.run import errors
from planet.control import planning
from planet.scripts import checks
from planet.scripts import objectives as objectives_lib
from planet.scripts import parameters
from planet.tools import schedule
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind

# Checks of the entries of `train_collects` and `test_collects`.
_ENTRIES = {
  'name': checks.text,
  'batch_size': checks.integer(1),
  'after': checks.integer(),
  'every': parameters.PARAMETERS['collect_every'].check,
  'until': checks.integer(),
  'horizon': parameters.PARAMETERS['planner_horizon'].check,
  'objective': parameters.PARAMETERS['collect_objective'].check,
  'action_noise': parameters.PARAMETERS['train_action_noise'].check,
  'action_noise_ramp': parameters.PARAMETERS['action_noise_ramp'].check,
  'action_noise_min': parameters.PARAMETERS['action_noise_min'].check,
  'prefix': checks.text,
  'save_episode_dir': checks.text,
}


def define_all(config, params):
  """Add folders and collections of episodes to a configuration.

  Args:
    config: Configuration with `tasks`.
    params: Given parameters, with `logdir`.

  Returns:
    The configuration, with `train_dir`, `test_dir`, `random_collects`,
    `train_collects` and `test_collects`.
  """
  logdir = os.path.expanduser(params.get('logdir') or '')
  config.train_dir = os.path.join(logdir, 'train_episodes')
  config.test_dir = os.path.join(logdir, 'test_episodes')
  config.random_collects = _define_random_collects(config, params)
  config.train_collects = _define_collects(
    config,
    params,
    'train',
    config.train_dir,
    parameters.read(params, 'train_action_noise'),
  )
  config.test_collects = _define_collects(
    config, params, 'test', config.test_dir, 0.0
  )
  return config


def _define_random_collects(config, params):
  collects = AttrDict(_unlocked=True)
  for task in config.tasks:
    for prefix, folder in (
      ('train', config.train_dir),
      ('test', config.test_dir),
    ):
      collects[f'{prefix}-{task.name}'] = AttrDict(
        task=task,
        save_episode_dir=folder,
        num_episodes=parameters.read(params, 'num_seed_episodes'),
        first_action=_limit_first_action(task, params),
      )
  collects.lock()
  return collects


def _limit_first_action(task, params):
  """Limits of the throttle in random episodes of driving, None elsewhere."""
  if task.name != 'carla':
    return None
  low, high = parameters.read(params, 'carla_random_throttle')
  if low > high:
    raise errors.UsageError(
      f'Parameter carla_random_throttle is {[low, high]}; give the lower '
      'limit first.'
    )
  return [low, high]


def _define_collects(config, params, prefix, folder, action_noise):
  defaults = dict(
    name='main',
    batch_size=1,
    after=parameters.read(params, 'collect_every'),
    every=parameters.read(params, 'collect_every'),
    until=-1,
    horizon=parameters.read(params, 'planner_horizon'),
    objective=parameters.read(params, 'collect_objective'),
    action_noise=action_noise,
    action_noise_ramp=parameters.read(params, 'action_noise_ramp'),
    action_noise_min=parameters.read(params, 'action_noise_min'),
    prefix=prefix,
    save_episode_dir=folder,
  )
  collects = AttrDict(_unlocked=True)
  for overrides in parameters.read(params, f'{prefix}_collects'):
    checked = _check_overrides(overrides, f'{prefix}_collects')
    for task in config.tasks:
      item = AttrDict({**defaults, **checked})
      name = f'{item.prefix}_{item.name}_{task.name}'
      if name in collects:
        raise errors.UsageError(
          f'Two entries of {prefix}_collects are called {item.name!r}; '
          'give each a name of its own.'
        )
      collects[name] = _define_simulation(task, item, params)
      assert not item.untouched, item.untouched
  collects.lock()
  return collects


def _check_overrides(overrides, where):
  """Entries of a collection, converted like the parameters."""
  checked = {}
  for key, value in overrides.items():
    if key not in _ENTRIES:
      raise errors.UsageError(
        f'Entry {key!r} of {where} is unknown. {errors.suggest(key, _ENTRIES)}'
      )
    try:
      checked[key] = _ENTRIES[key](value)
    except ValueError as error:
      raise errors.UsageError(
        f'Entry {key!r} of {where} is {value!r}; give {error}.'
      ) from None
  return checked


def _define_simulation(task, item, params):
  return AttrDict(
    task=task,
    num_agents=item.batch_size,
    planner=_define_planner(item.horizon, params),
    horizon=item.horizon,
    warm_start=parameters.read(params, 'planner_warm_start'),
    objective=bind(_find_objective(item.objective), params=params),
    save_episode_dir=item.save_episode_dir,
    steps_after=item.after,
    steps_every=item.every,
    steps_until=item.until,
    exploration=_define_exploration(item),
  )


def _define_planner(horizon, params):
  parameters.read(params, 'planner')
  amount, topk = [
    parameters.read(params, x) for x in ('planner_amount', 'planner_topk')
  ]
  if topk > amount:
    raise errors.UsageError(
      f'Parameter planner_topk is {topk}, more than planner_amount, which '
      f'is {amount}; keep fewer candidates or draw more.'
    )
  bias = _read_bias(params)
  return bind(
    planning.cross_entropy_method,
    horizon=horizon,
    amount=amount,
    topk=topk,
    iterations=parameters.read(params, 'planner_iterations'),
    **({'bias': bias} if bias else {}),
  )


def _read_bias(params):
  bias = parameters.read(params, 'planner_bias')
  if bias and parameters.read(params, 'planner_warm_start'):
    raise errors.UsageError(
      'Parameters planner_bias and planner_warm_start both say where plans '
      'begin; give one of them.'
    )
  return bias


def _find_objective(name):
  function = getattr(objectives_lib, name, None)
  if not callable(function) or name.startswith('_'):
    known = [
      x
      for x in vars(objectives_lib)
      if callable(getattr(objectives_lib, x)) and not x.startswith('_')
    ]
    raise errors.UsageError(
      f'Objective {name!r} is unknown. {errors.suggest(name, known)}'
    )
  return function


def _define_exploration(item):
  # Reading all of them marks them as used.
  scale, ramp, low = (
    item.action_noise,
    item.action_noise_ramp,
    item.action_noise_min,
  )
  if not scale:
    return None
  return AttrDict(
    scale=scale, schedule=bind(schedule.linear, ramp=ramp, min=low)
  )

"""Which episodes a run collects: random ones first, then planned ones."""

import functools
import os
from typing import Any

from agents.run import errors, schema
from agents.run.schema import Amount, Fraction, Name, Positive, Whole, setting
from planet.control import planning
from planet.envs.carla import plan_bias
from planet.scripts import driving, parameters
from planet.scripts import objectives as objectives_lib
from planet.tools import schedule
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind


class Collect(schema.Settings):
  """Declaration of the entries of `train_collects` and `test_collects`.

  Where there is no default, the parameters have one.
  """

  name: Name = setting('main')
  batch_size: Positive = setting(None)
  after: Whole = setting(None)
  every: Positive = setting(None)
  until: Whole = setting(-1)
  horizon: Positive = setting(None)
  objective: Name = setting(None)
  action_noise: Amount = setting(None)
  action_noise_ramp: Whole = setting(None)
  action_noise_min: Fraction = setting(None)
  prefix: Name = setting(None)
  save_episode_dir: Name = setting(None)


def define_all(config: AttrDict, params: AttrDict) -> AttrDict:
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
        expert=driving.choose_expert(params),
      )
  collects.lock()
  return collects


def _limit_first_action(task, params):
  """Limits of the throttle in random episodes of driving, None elsewhere."""
  if not task.is_driving:
    return None
  low, high = parameters.read(params, 'carla_random_throttle')
  if low > high:
    raise errors.UsageError(
      f'Parameter carla_random_throttle is {[low, high]}; give the lower '
      'limit first.'
    )
  return [low, high]


def _define_collects(config, params, prefix, folder, action_noise):
  every = parameters.read(params, 'collect_every')
  at_once = parameters.read(params, 'collect_batch') if prefix == 'train' else 1
  defaults = dict(
    after=every,
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
    checked = Collect.check(overrides, f'Entry {{!r}} of {prefix}_collects')
    # Several at once, but no more per example.
    size = dict(batch_size=at_once, every=at_once * every)
    if 'batch_size' in checked:
      size['every'] = every
    item = Collect.model_construct(**{**defaults, **size, **checked})
    for task in config.tasks:
      name = f'{item.prefix}_{item.name}_{task.name}'
      if name in collects:
        raise errors.UsageError(
          f'Two entries of {prefix}_collects are called {item.name!r}; '
          'give each a name of its own.'
        )
      collects[name] = _define_simulation(task, item, params)
  collects.lock()
  return collects


def _define_simulation(task: Any, item: Collect, params: AttrDict) -> AttrDict:
  return AttrDict(
    task=task,
    num_agents=item.batch_size,
    planner=_define_planner(item.horizon, params),
    horizon=item.horizon,
    warm_start=parameters.read(params, 'planner_warm_start'),
    guidance=_define_guidance(item.horizon, params),
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
  given = {
    'planner_bias': bias,
    'planner_warm_start': parameters.read(params, 'planner_warm_start'),
    'planner_command_bias': driving.uses_commands(params),
  }
  names = [name for name, value in given.items() if value]
  if len(names) > 1:
    raise errors.UsageError(
      f'Parameters {names[0]} and {names[1]} both say where plans begin; give '
      'one of them.'
    )
  return bias


def _define_guidance(horizon, params):
  """Where plans begin that depend on commands of a route, or None."""
  if not driving.uses_commands(params):
    return None
  given = parameters.read(params, 'planner_command_bias')
  rule = functools.partial(
    plan_bias.choose,
    biases=plan_bias.complete({} if given == 'fork' else given),
    heading=parameters.read(params, 'planner_heading_bias'),
  )
  return AttrDict(rule=rule, horizon=horizon)


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


def _define_exploration(item: Collect) -> AttrDict | None:
  if not item.action_noise:
    return None
  return AttrDict(
    scale=item.action_noise,
    schedule=bind(
      schedule.linear, ramp=item.action_noise_ramp, min=item.action_noise_min
    ),
  )

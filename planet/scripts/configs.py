"""Configurations: everything that defines a training run.

Each preset has a function of the same name, as in the original. It takes an
unlocked configuration and a mapping of parameters and returns the
configuration.
"""

import functools
import os
from collections.abc import Mapping
from typing import Any

from agents.envs import adapters
from agents.run import errors, references
from agents.tools.tf1 import tf
from planet import models, networks
from planet.control import planning
from planet.scripts import objectives, parameters, presets
from planet.scripts import tasks as tasks_lib
from planet.tools import loaders, numpy_episodes, preprocess, schedule
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind
from planet.training import precision


def _swish(x):
  # Can be pickled, unlike the function of TensorFlow.
  return tf.nn.swish(x)


ACTIVATIONS = {
  'relu': tf.nn.relu,
  'elu': tf.nn.elu,
  'tanh': tf.tanh,
  'swish': _swish,
  'softplus': tf.nn.softplus,
  'none': tf.identity,
}


def _define_preset(
  preset: str, config: AttrDict, params: Mapping[str, Any]
) -> AttrDict:
  given, objects = parameters.name_objects(params)
  logdir = given.pop('logdir', '')
  values = parameters.build(preset, given)
  own = parameters.resolve(values, objects, references.EVERYTHING)
  return config.update(build(preset, values, logdir, own))


def __getattr__(name: str) -> Any:
  """Return the function of a preset."""
  if name not in presets.PRESETS:
    raise AttributeError(f'There is no configuration {name!r}.')
  return functools.partial(_define_preset, name)


def build(
  preset: str, params: Any, logdir: str, own: Mapping[str, Any]
) -> AttrDict:
  """Build a configuration without creating environments or files.

  Args:
    preset: Name of the preset that the parameters come from.
    params: `planet.scripts.parameters.Parameters`.
    logdir: Folder of the run.
    own: Result of `parameters.resolve`, plus the user's environment or its
      constructor as `tasks`, if given.

  Returns:
    Unlocked AttrDict of all parameters, with some names replaced by the objects
    that they refer to, and all derived settings.

  Raises:
    UsageError: If parameters contradict each other.
  """
  parameters.check_together(params)
  config = AttrDict(dict(params), _unlocked=True)
  config.debug = preset == 'debug'
  config.required_length = params.required_length
  _add_data(config, params)
  _add_tasks(config, params, own)
  _add_model(config, params, own)
  _add_losses(config, params)
  _add_schedule(config, params)
  _add_episodes(config, params, os.path.expanduser(logdir), own)
  config.unused = parameters.find_unused(params, config.heads)
  return config


def _add_data(config, params):
  config.observation = params.observations
  config.preprocess_fn = bind(preprocess.preprocess, bits=params.image_bits)
  config.postprocess_fn = bind(preprocess.postprocess, bits=params.image_bits)
  config.open_loop_context = 5
  config.data_reader = numpy_episodes.episode_reader
  config.data_loader = getattr(loaders, f'{params.loader}_loader')
  if params.loader in ('cache', 'recent', 'scan'):
    kwargs = dict(every=params.loader_every, max_bytes=params.loader_max_bytes)
    if params.loader == 'scan':
      kwargs['max_episodes'] = params.loader_max_episodes
    config.data_loader = bind(config.data_loader, **kwargs)


def _add_tasks(config, params, own):
  config.tasks = tasks = tasks_lib.define_all(params, own.get('tasks'))
  config.observation_keys = ['image']
  if params.observations == 'vector':
    config.observation_keys = tasks[0].state_components[1:]
    if not config.observation_keys:
      raise errors.UsageError(
        'observations: vector needs a single task with a state, but the tasks '
        f'are {[x.name for x in tasks]}; use observations: image.'
      )
  config.isolate_envs = params.isolate_envs or (
    'thread' if params.tasks == ['dummy'] else 'process'
  )
  if adapters.is_environment(own.get('tasks')):
    config.isolate_envs = 'none'


def _add_model(config, params, own):
  config.activation = activation = ACTIVATIONS[params.activation]
  usual = [params.observations, 'reward']
  config.gradient_heads = params.gradient_heads or usual
  layers = dict(units=params.num_units, activation=activation)
  config.heads = AttrDict()
  names = config.tasks[0].state_components
  names = list(names) if params.state_diagnostics else ['reward']
  if params.observations == 'image':
    network = own.get('network') or _find_network(params)
    config.encoder = network.encoder
    config.heads.image = network.decoder
  else:
    config.encoder = bind(networks.vector.encoder, **layers)
    names.append('vector')
  for name in names:
    config.heads[name] = bind(
      networks.feed_forward,
      num_layers=params.num_layers,
      stop_gradient=name not in config.gradient_heads,
      **layers,
    )
  for name in config.gradient_heads:
    errors.find('Entry of gradient_heads', name, config.heads)
  cells = {'rssm': models.RSSM, 'ssm': models.SSM, 'drnn': models.DRNN}
  sizes = [params.model_size] * (1 if params.model == 'ssm' else 2)
  options = {}
  if params.model == 'rssm':
    options['future_rnn'] = params.future_rnn
    options['num_layers'] = params.model_layers
  elif params.model == 'drnn':
    links = [(name, value) for name, value in params if 'drnn_' in name]
    options = {name.removeprefix('drnn_'): value for name, value in links}
  config.cell = bind(
    own.get('model') or cells[params.model],
    params.state_size,
    *sizes,
    mean_only=params.mean_only,
    activation=activation,
    min_stddev=params.min_stddev,
    **options,
  )


def _find_network(params):
  size = params.image_size
  name = params.network or ('conv_ha' if size == 64 else f'conv_{size}')
  network = getattr(networks, name)
  if network.image_size != size:
    raise errors.UsageError(
      f'Network {name} needs images of {network.image_size} pixels, but '
      f'image_size is {size}; change image_size or omit network.'
    )
  return network


def _add_losses(config, params):
  scales = {x: getattr(params, f'{x}_loss_scale') for x in config.heads}
  # Losses are computed and printed in this order.
  config.loss_scales = AttrDict(
    {x: scales[x] for x in scales if x != params.observations},
    divergence=params.divergence_scale,
    global_divergence=params.global_div_scale,
    overshooting=params.overshooting_scale,
    **{params.observations: scales[params.observations]},
  )
  optimizer_cls = bind(tf.train.AdamOptimizer, epsilon=1e-4)
  if params.precision == 'float16':
    optimizer_cls = bind(precision.scaled, optimizer_cls)
  config.optimizers = AttrDict(
    main=AttrDict(
      optimizer_cls=optimizer_cls,
      learning_rate=params.main_learning_rate,
      clipping=params.main_gradient_clipping,
    )
  )


def _add_schedule(config, params):
  if params.total_env_steps:
    config.max_steps = None
  every = params.checkpoint_every or 10 * params.test_steps
  config.test_checkpoint_every = every
  config.checkpoint_secs = 60 * params.checkpoint_minutes
  config.checkpoint_at_end = True
  # Short phases would otherwise print every zero steps.
  config.print_metrics_every = max(1, params.train_steps // 10)
  config.savers = [AttrDict(exclude=(r'.*_temporary.*',))]


def _add_episodes(config, params, logdir, own):
  config.random_collects = AttrDict()
  for phase in ('train', 'test'):
    folder = config[f'{phase}_dir'] = os.path.join(logdir, f'{phase}_episodes')
    for task in config.tasks:
      config.random_collects[f'{phase}-{task.name}'] = AttrDict(
        task=task,
        save_episode_dir=folder,
        num_episodes=params.num_seed_episodes,
      )
    collects = config[f'{phase}_collects'] = AttrDict()
    for overrides in getattr(params, f'{phase}_collects'):
      item = _define_collect(overrides, params, phase, folder)
      if item.batch_size > 1 and adapters.is_environment(own.get('tasks')):
        raise errors.UsageError(
          f'A single environment cannot play {item.batch_size} episodes at '
          'once; pass a function that returns an environment, or set '
          'collect_batch: 1.'
        )
      for task in config.tasks:
        name = f'{item.prefix}_{item.name}_{task.name}'
        if name in collects:
          raise errors.UsageError(
            f'Two entries of {phase}_collects are called {item.name!r}; '
            'choose unique names.'
          )
        collects[name] = _define_simulation(task, item, params, own)


def _define_collect(overrides, params, phase, folder):
  """Return an entry of collections, completed with the defaults."""
  training = phase == 'train'
  at_once = params.collect_batch if training else 1
  # A larger batch does not mean more episodes per example.
  share = 1 if 'batch_size' in overrides else at_once
  values = dict(
    batch_size=at_once,
    after=params.collect_every,
    every=share * params.collect_every,
    horizon=params.planner_horizon,
    objective=params.collect_objective,
    action_noise=params.train_action_noise if training else 0.0,
    action_noise_ramp=params.action_noise_ramp,
    action_noise_min=params.action_noise_min,
    prefix=phase,
    save_episode_dir=folder,
  )
  return parameters.Collect.model_construct(**{**values, **overrides})


def _define_simulation(task, item, params, own):
  bias = params.planner_bias
  planner = bind(
    own.get('planner', planning.cross_entropy_method),
    horizon=item.horizon,
    amount=params.planner_amount,
    topk=params.planner_topk,
    iterations=params.planner_iterations,
    **({'bias': bias} if bias else {}),
  )
  is_own = item.objective != 'reward'
  objective = own['collect_objective'] if is_own else objectives.reward
  ramp = dict(ramp=item.action_noise_ramp, min=item.action_noise_min)
  exploration = AttrDict(
    scale=item.action_noise, schedule=bind(schedule.linear, **ramp)
  )
  return AttrDict(
    task=task,
    num_agents=item.batch_size,
    planner=planner,
    horizon=item.horizon,
    warm_start=params.planner_warm_start,
    objective=bind(objective, params=params),
    save_episode_dir=item.save_episode_dir,
    steps_after=item.after,
    steps_every=item.every,
    steps_until=item.until,
    exploration=exploration if item.action_noise else None,
  )

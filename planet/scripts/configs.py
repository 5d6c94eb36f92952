"""Configurations: everything that a training run consists of.

Every public function takes an unlocked configuration and the parameters given
by the user, and returns the configuration. It fills `params` with its own
choices first, then everything comes from `default`.
"""

from collections.abc import Callable
from typing import Any

from agents.run import errors
from agents.tools.tf1 import tf
from planet import models, networks
from planet.scripts import driving, parameters, simulations
from planet.scripts import tasks as tasks_lib
from planet.scripts.choices import choose
from planet.tools import loaders, numpy_episodes, preprocess
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind
from planet.training import precision

ACTIVATIONS = {
  'relu': tf.nn.relu,
  'elu': tf.nn.elu,
  'tanh': tf.tanh,
  'swish': tf.nn.swish,
  'softplus': tf.nn.softplus,
  'none': tf.identity,
}

# Keys that a configuration may leave unset; they are None then. Every other
# name that is not set raises an error.
OPTIONAL = (
  'carla_allow_backend_change',
  'carla_backend',
  'checkpoint_to_load',
  'collect_in_turn',
  'first_step',
  'observation_keys',
  'seed',
  'train_checkpoint_every',
)


def default(config: AttrDict, params: AttrDict) -> AttrDict:
  """Define the setting of the paper."""
  for name in OPTIONAL:
    config.setdefault(name, None)
  config.debug = False
  config = _data_processing(config, params)
  config = _model_components(config, params)
  config = _tasks(config, params)
  config = _loss_functions(config, params)
  config = _training_schedule(config, params)
  return config


def debug(config: AttrDict, params: AttrDict) -> AttrDict:
  """Define tiny networks and short phases, to see whether a change runs."""
  _fill(params, choose('debug', params))
  config = default(config, params)
  config.debug = True
  return config


def cpu(config: AttrDict, params: AttrDict) -> AttrDict:
  """Define what fits on two cores; not the reference."""
  _fill(params, choose('cpu', params))
  return default(config, params)


def carla_cpu(config: AttrDict, params: AttrDict) -> AttrDict:
  """Define what learns to drive offline on two cores; not the reference."""
  _fill(params, choose('carla_cpu', params))
  return default(config, params)


def find(name: str) -> Callable[[AttrDict, AttrDict], AttrDict]:
  """Return a public configuration function by its name.

  Raises:
    UsageError: If there is no such configuration.
  """
  known = {x.__name__: x for x in (default, debug, cpu, carla_cpu)}
  if name not in known:
    raise errors.UsageError(
      f'Configuration {name!r} is unknown. {errors.suggest(name, known)}'
    )
  return known[name]


def _fill(params, values):
  """Choose values for parameters that the user has not given."""
  chosen = {key: value for key, value in values.items() if key not in params}
  params.unlock()
  params.update(chosen)
  # Choices that a task or model does not ask for are not mistakes of the user.
  params.touched.update(chosen)


def _data_processing(config, params):
  get = bind(parameters.read, params)
  config.batch_shape = get('batch_shape')
  config.num_chunks = get('num_chunks')
  config.image_size = driving.choose_image_size(params)
  config.image_bits = get('image_bits')
  config.observation = get('observations')
  config.preprocess_fn = bind(preprocess.preprocess, bits=config.image_bits)
  config.postprocess_fn = bind(preprocess.postprocess, bits=config.image_bits)
  config.open_loop_context = 5
  config.data_reader = numpy_episodes.episode_reader
  config.data_loader = _define_loader(params)
  config.bound_action = get('bound_action')
  get('loader_window')
  return config


def _define_loader(params):
  name = parameters.read(params, 'loader')
  loader = getattr(loaders, f'{name}_loader')
  if name in ('cache', 'recent', 'scan'):
    get = bind(parameters.read, params)
    loader = bind(
      loader, every=get('loader_every'), max_bytes=get('loader_max_bytes')
    )
  if name == 'scan':
    loader = bind(loader, max_episodes=get('loader_max_episodes'))
  return loader


def _model_components(config, params):
  get = bind(parameters.read, params)
  config.activation = ACTIVATIONS[get('activation')]
  config.num_layers = get('num_layers')
  config.num_units = get('num_units')
  config.heads = AttrDict(_unlocked=True)
  if config.observation == 'image':
    network = _find_network(get('network'), config.image_size)
    config.encoder = network.encoder
    config.heads.image = network.decoder
  else:
    config.encoder = bind(
      networks.vector.encoder,
      units=config.num_units,
      activation=config.activation,
    )
  config.gradient_heads = get('gradient_heads') or [
    config.observation,
    'reward',
  ]
  config.cell = _define_cell(config, params)
  return config


def _find_network(name, image_size):
  if name is None:
    name = 'conv_ha' if image_size == 64 else f'conv_{image_size}'
  known = [x for x in networks.__all__ if x.startswith('conv_')]
  network: Any = getattr(networks, name, None)
  if not (hasattr(network, 'encoder') and hasattr(network, 'decoder')):
    raise errors.UsageError(
      f'Network {name!r} is unknown. {errors.suggest(name, known)}'
    )
  if network.image_size != image_size:
    raise errors.UsageError(
      f'Network {name} is for images of {network.image_size} pixels, not '
      f'{image_size}; change image_size, or leave network away.'
    )
  return network


def _define_cell(config, params):
  get = bind(parameters.read, params)
  name = get('model')
  size, state_size = get('model_size'), get('state_size')
  common = dict(
    mean_only=get('mean_only'),
    activation=config.activation,
    min_stddev=get('min_stddev'),
  )
  if name == 'rssm':
    return bind(
      models.RSSM,
      state_size,
      size,
      size,
      future_rnn=get('future_rnn'),
      num_layers=get('model_layers'),
      **common,
    )
  if name == 'ssm':
    return bind(models.SSM, state_size, size, **common)
  if name == 'drnn':
    links = (
      'encoder_to_decoder',
      'sample_to_sample',
      'sample_to_encoder',
      'decoder_to_encoder',
      'decoder_to_sample',
      'action_to_decoder',
    )
    return bind(
      models.DRNN,
      state_size,
      size,
      size,
      **{link: get(f'drnn_{link}') for link in links},
      **common,
    )
  raise NotImplementedError(f'Unknown model {name!r}.')


def _tasks(config, params):
  get = bind(parameters.read, params)
  names = get('tasks')
  if len(set(names)) < len(names):
    raise errors.UsageError(f'Tasks {names} repeat; name each of them once.')
  tasks = tasks_lib.define_all(names, config, params)
  config.isolate_envs = get('isolate_envs') or (
    'thread' if names == ['dummy'] else 'process'
  )
  _check_lengths(config, tasks)
  if config.observation == 'vector':
    config.observation_keys = _vector_keys(tasks)
  else:
    config.observation_keys = ['image']
  if not tasks_lib.are_alike(tasks):
    # Those of `tasks.prepare` show nothing but images.
    tasks = [x._replace(state_components=['reward']) for x in tasks]
  config.tasks = tasks
  diagnostics = get('state_diagnostics')
  components = tasks[0].state_components
  for name in components if diagnostics else ['reward']:
    config.heads[name] = _define_vector_head(config, name)
  if config.observation == 'vector':
    config.heads.vector = _define_vector_head(config, 'vector')
  for name in config.gradient_heads:
    if name not in config.heads:
      raise errors.UsageError(
        f'Parameter gradient_heads names {name!r}, which is not predicted. '
        f'{errors.suggest(name, config.heads)}'
      )
  config.heads.lock()
  return config


def _define_vector_head(config, name):
  return bind(
    networks.feed_forward,
    num_layers=config.num_layers,
    units=config.num_units,
    activation=config.activation,
    stop_gradient=name not in config.gradient_heads,
  )


def _check_lengths(config, tasks):
  needed = tasks_lib.required_length(config)
  for task in tasks:
    # An episode also holds the observation of its reset.
    if task.max_length + 1 < needed:
      raise errors.UsageError(
        f'Episodes of {task.name} have {task.max_length + 1} observations, '
        f'too few for {config.num_chunks} chunks of '
        f'{config.batch_shape[1]}; lower batch_shape or action_repeat.'
      )


def _vector_keys(tasks):
  keys = [x for x in tasks[0].state_components if x != 'reward']
  if not tasks_lib.are_alike(tasks) or not keys:
    raise errors.UsageError(
      'Vector observations need a single task that has a state; '
      f'{[x.name for x in tasks]} do not fit. Use observations: image.'
    )
  return keys


def _loss_functions(config, params):
  get = bind(parameters.read, params)
  scales = AttrDict(_unlocked=True)
  # The order decides in which order losses are computed and printed.
  heads = [x for x in config.heads if x != config.observation]
  for head in heads:
    scales[head] = get(f'{head}_loss_scale')
  scales.divergence = get('divergence_scale')
  scales.global_divergence = get('global_div_scale')
  scales.overshooting = get('overshooting_scale')
  scales[config.observation] = get(f'{config.observation}_loss_scale')
  scales.lock()
  config.loss_scales = scales
  config.free_nats = get('free_nats')
  config.overshooting_distance = get('overshooting_distance')
  config.os_stop_posterior_grad = get('os_stop_posterior_grad')
  if scales.overshooting and config.overshooting_distance < 2:
    raise errors.UsageError(
      f'Parameter overshooting_distance is {config.overshooting_distance}, '
      'but overshooting_scale needs at least 2: the last distance is not '
      'used.'
    )
  config.precision = get('precision')
  optimizer_cls = bind(tf.train.AdamOptimizer, epsilon=1e-4)
  if config.precision == 'float16':
    optimizer_cls = bind(precision.scaled, optimizer_cls)
  config.optimizers = AttrDict(
    main=AttrDict(
      optimizer_cls=optimizer_cls,
      learning_rate=get('main_learning_rate'),
      clipping=get('main_gradient_clipping'),
    )
  )
  return config


def _training_schedule(config, params):
  get = bind(parameters.read, params)
  config.train_steps = get('train_steps')
  config.test_steps = get('test_steps')
  config.max_steps = int(get('max_steps'))
  config.train_log_every = config.train_steps
  config.test_checkpoint_every = (
    get('checkpoint_every') or 10 * config.test_steps
  )
  config.checkpoint_secs = 60 * get('checkpoint_minutes')
  config.checkpoint_at_end = True
  config.collect_per_rank = get('collect_per_rank')
  # Short phases would otherwise print every zero steps.
  config.print_metrics_every = max(1, config.train_steps // 10)
  config.savers = [AttrDict(exclude=(r'.*_temporary.*',))]
  return simulations.define_all(config, params)

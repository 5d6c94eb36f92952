"""All parameters of `--params` with defaults and limits."""

import functools
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import pydantic
from annotated_types import Interval, Len, MinLen

from agents.run import errors, references, schema
from agents.run.schema import (
  WHOLE,
  Amount,
  Count,
  Flag,
  Fraction,
  Name,
  Positive,
  Size,
  Whole,
)
from planet.scripts import added, presets, renamed, table

# Each parameter is declared by its default and its meaning. A run keeps those
# that its variables or recorded episodes depend on; the others are free.
_free = schema.setting
_variables = functools.partial(
  schema.setting, fixed='the variables were trained with it'
)
_MEANING = 'it changes what the recorded episodes mean'
_episodes = functools.partial(schema.setting, fixed=_MEANING)

Names = Annotated[list[Name], MinLen(1)]
Tasks = Annotated[
  Names, pydantic.AfterValidator(lambda x: [*map(table.name_task, x)])
]
Collects = list[dict[str, Any]]
ImageSize = Annotated[Literal[32, 64, 96, 128], WHOLE]
Bits = Annotated[Whole, Interval(ge=1, le=8)]
Direction = Annotated[schema.Number, Interval(ge=-1, le=1)]
# What TensorFlow allows in the name of a scope.
Scope = Annotated[str, pydantic.StringConstraints(pattern='^[A-Za-z0-9_./-]+$')]
_MODELS = 'rssm', 'ssm', 'drnn'
Loader = Literal['cache', 'recent', 'scan', 'reload', 'dummy']
_ACTIVATIONS = 'relu', 'elu', 'tanh', 'swish', 'softplus', 'none'
_NETWORKS = (
  'conv_ha',
  'conv_small',
  'conv_32',
  'conv_32_small',
  'conv_96',
  'conv_128',
  'conv_128_deep',
)


# Names in the first months of the original.
_BEFORE_JULY = {
  'cem_amount': 'planner_amount',
  'cem_topk': 'planner_topk',
  'cem_iterations': 'planner_iterations',
  'collect_horizons': 'planner_horizon, a number',
  'exploration_noises': 'train_action_noise, a number',
  'exploration_ramps': 'action_noise_ramp, a number',
  'learning_rate': 'main_learning_rate',
  'gradient_clipping': 'main_gradient_clipping',
  'reward_scale': 'reward_loss_scale',
  'global_divergence_scale': 'global_div_scale',
  'overshooting': 'overshooting_distance, with overshooting_scale',
  'data_loader': 'loader',
  'scan_episodes_every': 'loader_every',
}


def find_objective(
  name: str, trust: references.Trust = references.NOTHING
) -> Callable | None:
  """Return an objective of the planner, None if it is unknown.

  Args:
    name: Name of a function in `planet.scripts.objectives`, where users may add
      some, or `module:name`.
    trust: Modules that it may be imported from.

  Raises:
    UsageError: If an object does not exist or its module is not trusted.
  """
  if ':' in name:
    return references.resolve(name, trust)
  takes = 'state', 'graph', 'params'
  return added.find('planet.scripts.objectives', name, takes)


def _check_objective(value):
  known = isinstance(value, str) and (
    # Imports no TensorFlow.
    ':' in value or value == 'reward' or find_objective(value)
  )
  if not known:
    raise ValueError(
      'give one of reward, or module:name of your own, or the name of a '
      'function that you set on planet.scripts.objectives'
    )
  return value


_Objective = Annotated[str, pydantic.PlainValidator(_check_objective)]


def _check_network(value):
  if value in _NETWORKS or (isinstance(value, str) and ':' in value):
    return value
  found = None
  if added.may_have('planet.networks', value):
    from planet import networks

    found = getattr(networks, str(value), None)
  if not (hasattr(found, 'encoder') and hasattr(found, 'decoder')):
    raise ValueError(
      f'give one of {", ".join(_NETWORKS)}, or module:name of your own, or the '
      'name of what you set on planet.networks'
    )
  return value


def _check_activation(value):
  # `configs` looks for activations that users have added.
  place = 'planet.scripts.configs'
  if value not in _ACTIVATIONS and not added.may_have(place, value):
    raise ValueError(
      f'give one of {", ".join(_ACTIVATIONS)}, or the name of a function that '
      'you set in planet.scripts.configs.ACTIVATIONS'
    )
  return value


_Network = Annotated[str, pydantic.PlainValidator(_check_network)]
_Activation = Annotated[Name, pydantic.AfterValidator(_check_activation)]


class Collect(schema.Settings):
  """Schema of the entries of `train_collects` and `test_collects`.

  Entries without a default here take it from the parameters.
  """

  name: Scope = _free('main')
  batch_size: Positive = _free(None)
  after: Whole = _free(None)
  every: Positive = _free(None)
  until: Whole = _free(-1)
  horizon: Size = _free(None)
  objective: _Objective = _free(None)
  action_noise: Amount = _free(None)
  action_noise_ramp: Whole = _free(None)
  action_noise_min: Fraction = _free(None)
  prefix: Scope = _free(None)
  save_episode_dir: Name = _free(None)


class Parameters(schema.Settings):
  """All parameters of a run, complete, consistent and frozen.

  `model_fields_set` contains the names that commands gave, see `flatten`.
  Scales of heads that only a user's task has are extra values.
  """

  model_config = pydantic.ConfigDict(frozen=True, extra='allow')

  called: ClassVar[str] = 'Parameter {!r}'
  elsewhere: ClassVar[Mapping[str, str]] = {
    old: f'Since July 2019, PlaNet calls it {new}.'
    for old, new in _BEFORE_JULY.items()
  }

  # Data.
  batch_shape: Annotated[list[Size], Len(2, 2)] = _free(
    [50, 50], 'sequences per batch and steps per sequence'
  )
  num_chunks: Size = _free(1, 'sequences cut from each sampled episode')
  shuffle_buffer: Count = _free(
    0, 'sequences read ahead, of which batches are random ones; 0 for none'
  )
  image_bits: Bits = _free(5, 'bits per color channel, 8 for full precision')
  image_size: ImageSize = _episodes(64, 'height and width of images in pixels')
  observations: Literal['image', 'vector', 'both'] = _episodes(
    'image', 'model input: image, vector (the state), or both'
  )
  loader: Loader = _free('recent', 'sampling strategy for training episodes')
  loader_every: Positive = _free(1000, 'sampled episodes between two scans')
  loader_max_bytes: Positive | None = _free(
    None, 'episode cache per loader in bytes; default: a quarter of memory'
  )
  loader_max_episodes: Count = _free(500, 'scan: newest episodes, 0 for all')
  loader_window: Positive | None = _free(None, 'unused; kept for compatibility')
  # Model.
  model: schema.one_of(_MODELS) = _variables(  # type: ignore[valid-type]
    'rssm', 'latent dynamics: rssm, ssm, drnn'
  )
  model_size: Size = _variables(
    200, 'units of the deterministic state and hidden layers'
  )
  state_size: Size = _variables(30, 'units of the stochastic state')
  model_layers: Positive = _variables(1, 'rssm: hidden layers of the model')
  future_rnn: Flag = _variables(True, 'rssm: prior from the updated belief')
  drnn_encoder_to_decoder: Flag = _variables(False, 'drnn connection')
  drnn_sample_to_sample: Flag = _variables(True, 'drnn connection')
  drnn_sample_to_encoder: Flag = _variables(True, 'drnn connection')
  drnn_decoder_to_encoder: Flag = _variables(False, 'drnn connection')
  drnn_decoder_to_sample: Flag = _variables(True, 'drnn connection')
  drnn_action_to_decoder: Flag = _variables(False, 'drnn connection')
  mean_only: Flag = _free(False, 'use means of latent states, not samples')
  min_stddev: Amount = _free(0.1, 'minimum standard deviation of latent states')
  network: _Network | None = _variables(
    None, 'encoder and decoder; default: depends on image_size'
  )
  activation: _Activation = _variables('relu', 'activation of hidden layers')
  num_layers: Count = _variables(3, 'hidden layers of reward and state heads')
  num_units: Size = _variables(300, 'units per layer of these heads')
  gradient_heads: Names | None = _variables(
    None, 'heads whose loss trains the model; default: observation and reward'
  )
  bound_action: Literal['none', 'clip', 'tanh'] = _free(
    'clip', 'unused; kept for compatibility'
  )
  # Tasks.
  tasks: Tasks = _episodes(['cheetah_run'], 'tasks to train on')
  action_repeat: Positive | None = _episodes(
    None, 'simulator steps per action; default: depends on the task'
  )
  episode_length: Positive | None = _free(
    None, 'environment steps per episode and collection; default: 1000'
  )
  env: dict[str, Any] = _episodes({}, 'settings of the environment, see below')
  camera_id: Whole = _episodes(0, 'camera of the control suite; -1: free')
  isolate_envs: Literal['none', 'thread', 'process'] | None = _free(
    None, 'none, thread, or process; default: process (dummy: thread)'
  )
  state_diagnostics: Flag = _variables(False, 'also predict the state')
  # Losses.
  divergence_scale: Amount = _free(1.0, 'scale of KL from posterior to prior')
  global_div_scale: Amount = _free(0.0, 'scale of KL from posterior to N(0, 1)')
  overshooting_scale: Amount = _free(0.0, 'scale of the overshooting loss')
  overshooting_distance: Count = _free(0, 'steps predicted, at least 2')
  os_stop_posterior_grad: Flag = _free(
    True, 'stop overshooting gradients to the posterior'
  )
  free_nats: Amount | None = _free(3.0, 'KL divergence without loss, in nats')
  main_learning_rate: Amount = _free(1e-3, 'learning rate of Adam')
  main_gradient_clipping: Amount | None = _free(
    1000.0, 'maximum global gradient norm; null or 0 to disable'
  )
  precision: Literal['float32', 'bfloat16', 'float16'] = _free(
    'float32', 'matrix products: float32, bfloat16 (CPU), float16 (GPU)'
  )
  xla: Flag = _free(False, 'compile the latent model with XLA, for GPUs')
  # Schedule, counted in examples: an update adds the batch size.
  train_steps: Count = _free(50000, 'examples per training phase')
  test_steps: Count = _free(50, 'examples per test phase; 0 for no tests')
  max_steps: Positive = _free(50_000_000, 'total number of examples')
  total_env_steps: Positive | None = _free(
    None, 'environment steps to train for, instead of max_steps'
  )
  checkpoint_every: Positive | None = _free(
    None, 'test examples between checkpoints; default: 10 test_steps'
  )
  checkpoint_minutes: Amount = _free(15, 'time between checkpoints; 0: never')
  # Episodes.
  train_episodes: Name | None = _free(
    None, 'folder of episodes from elsewhere; nothing is played then'
  )
  test_episodes: Name | None = _free(
    None, 'folder of those to test on; default: train_episodes'
  )
  num_seed_episodes: Count = _free(5, 'initial random episodes per task')
  train_collects: Collects = _free(
    [{}], 'training collections as mappings of overrides; [] for none'
  )
  test_collects: Collects = _free(
    [{}], 'test collections as mappings of overrides; [] for none'
  )
  collect_every: Positive = _free(5000, 'training examples between episodes')
  collect_batch: Positive = _free(
    1, 'episodes collected in parallel, every collect_every * N examples'
  )
  collect_per_rank: Flag = _free(
    False, 'with MPI, collect all episodes on every rank, not a share'
  )
  train_action_noise: Amount = _free(
    0.3, 'standard deviation of action noise when collecting'
  )
  action_noise_ramp: Whole = _free(
    0, 'examples over which the noise ramps up; negative: down'
  )
  action_noise_min: Fraction = _free(0.0, 'minimum of the noise schedule')
  collect_objective: _Objective = _free('reward', 'objective of the planner')
  # Planner.
  planner: schema.one_of(['cem']) = _free(  # type: ignore[valid-type]
    'cem', 'planning algorithm'
  )
  planner_horizon: Size = _free(12, 'planning horizon in actions')
  planner_amount: Size = _free(1000, 'candidate plans per iteration')
  planner_topk: Positive = _free(100, 'candidates kept per iteration')
  planner_iterations: Count = _free(10, 'iterations per plan; 0: zero actions')
  planner_warm_start: Flag = _free(False, 'start from the previous plan')
  planner_bias: Annotated[list[Direction], MinLen(1)] | None = _free(
    None, 'initial action of every plan, one value per action dimension'
  )
  # Scales of the losses of heads.
  image_loss_scale: Amount = _free(1.0)
  vector_loss_scale: Amount = _free(1.0)
  reward_loss_scale: Amount = _free(10.0)
  state_loss_scale: Amount = _free(1.0)
  position_loss_scale: Amount = _free(1.0)
  velocity_loss_scale: Amount = _free(1.0)
  touch_loss_scale: Amount = _free(1.0)
  height_loss_scale: Amount = _free(1.0)
  orientations_loss_scale: Amount = _free(1.0)
  to_target_loss_scale: Amount = _free(1.0)

  @property
  def required_length(self) -> int:
    """Minimum number of observations of a training episode."""
    return self.batch_shape[1] * self.num_chunks

  @property
  def observed(self) -> list[str]:
    """Names of what the model observes, and predicts."""
    kind = self.observations
    return ['image', 'vector'] if kind == 'both' else [kind]

  def check_heads(self, components: Iterable[str]) -> None:
    """Check that parameters name heads that the model can have.

    Args:
      components: State components of the tasks.

    Raises:
      UsageError: If they do not.
    """
    known = [f'{x}_loss_scale' for x in components]
    for name in self.model_extra or {}:
      if name not in known:
        raise errors.UsageError(
          f'{self.called.format(name)} is unknown. '
          f'{errors.suggest(name, [*self.names(), *known])}'
        )
    predicted = components if self.state_diagnostics else ['reward']
    heads = dict.fromkeys([*self.observed, *predicted])
    for name in self.gradient_heads or ['reward']:
      errors.find('Entry of gradient_heads', name, heads)


# Parameters that accept the user's own object or its `module:name`.
OWN = ('model', 'network', 'planner', 'collect_objective')
# Limits of the training, of which a command gives one.
LIMITS = ('max_steps', 'total_env_steps')


def name_objects(
  params: Mapping[str, Any] | Parameters,
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Split parameters into plain data and the user's own objects."""
  if isinstance(params, pydantic.BaseModel):
    params = choose(dict(params), params.model_fields_set)
  objects = {
    x: y
    for x, y in params.items()
    if x in OWN and (callable(y) or hasattr(y, 'encoder'))
  }
  names = {x: references.name_of(y) for x, y in objects.items()}
  return {**params, **names}, objects


def resolve(
  params: Parameters, objects: Mapping[str, Any], trust: references.Trust
) -> dict[str, Any]:
  """Return a dict from parameter name to the user's own object.

  `objectives` is a dict from the names of all objectives to functions.

  Args:
    params: Parameters.
    objects: Objects that were passed directly.
    trust: Modules that the other objects may be imported from.

  Raises:
    UsageError: If an object does not exist or its module is not trusted.
  """
  own = [x for x in OWN if x not in objects and x != 'collect_objective']
  names = {x: getattr(params, x) or '' for x in own}
  found = {
    x: references.resolve(y, trust) for x, y in names.items() if ':' in y
  }
  usual = params.collect_objective
  known = {usual: objects.get('collect_objective')}
  for name in dict.fromkeys([usual, *list_objectives(dict(params))]):
    known[name] = known.get(name) or find_objective(name, trust)
  return {**found, **objects, 'objectives': known}


def list_objectives(params: Mapping[str, Any]) -> list[str]:
  """Return the names of the objectives that single collections have."""
  kinds = 'train_collects', 'test_collects'
  entries = [x for kind in kinds for x in params.get(kind) or ()]
  return [x['objective'] for x in entries if 'objective' in x]


def check(params: Mapping[str, Any]) -> dict[str, Any]:
  """Check given parameters and convert them to their declared types.

  Leaves the settings in `env` to `check_env`, and which heads the tasks have
  to `Parameters.check_heads`.

  Raises:
    UsageError: If a parameter is unknown or a value is not allowed.
  """
  old = renamed.check(params)
  scales = {
    x: schema.convert(Amount, y, Parameters.called.format(x))
    for x, y in params.items()
    if _is_own_scale(x)
  }
  known = {x: y for x, y in params.items() if x not in {**old, **scales}}
  given: dict[str, Any] = Parameters.check(known, more=renamed.NAMES)
  for key in {'train_collects', 'test_collects'} & set(given):
    called = f'Entry {{!r}} of {key}'
    given[key] = [Collect.check(x, called) for x in given[key]]
  return {**given, **scales, **old}


def _is_own_scale(name):
  """Return whether a parameter may belong to a head of a user's task."""
  is_scale = str(name).endswith('_loss_scale')
  return is_scale and name not in Parameters.model_fields


def check_limits(given: Mapping[str, Any]) -> None:
  """Check that a command gives one limit of the training.

  Raises:
    UsageError: If it gives both.
  """
  if all(given.get(x) is not None for x in LIMITS):
    raise errors.UsageError(
      'Parameters max_steps and total_env_steps both limit the training; give '
      'one of them.'
    )


def check_env(env: dict[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
  """Check settings of the environment and convert them to declared types.

  Args:
    env: Settings.
    tasks: Names of the tasks.

  Raises:
    UsageError: If a task or a setting is unknown, or a value is not allowed.
  """
  declared = table.find_settings(tasks) if env else None
  return declared.check(env) if declared else env


def choose_defaults(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
  """Return the default values of all parameters.

  Args:
    preset: Name of the preset.
    given: Checked values; some defaults depend on tasks and image size.

  Raises:
    UsageError: If the preset is unknown or two image sizes are given.
  """
  values = {**Parameters.defaults(), **presets.find(preset)}
  names = given.get('tasks', values['tasks'])
  declared = table.find_settings(names)
  settings = {**declared.defaults(), **values['env']} if declared else {}
  # An environment may decide on both, see `EnvSettings`.
  given_settings = given.get('env', {}) if declared else {}
  wanted = [
    x['image_size'] for x in (given, given_settings) if 'image_size' in x
  ]
  if len(set(wanted)) > 1:
    raise errors.UsageError(
      f'Parameters image_size and env: {{image_size}} are {wanted[0]} and '
      f'{wanted[1]}; give one of them.'
    )
  usual = settings if 'image_size' in settings else values
  size: int = wanted[0] if wanted else usual['image_size']
  if 'image_size' in settings:
    settings['image_size'] = size
  if 'max_length' in settings:
    values.update(presets.SHORT_EPISODES.get(preset, {}))
  if set(names) - set(table.TABLE):
    values.update(presets.OWN_ENVIRONMENTS.get(preset, {}))
  narrow = presets.NETWORKS.get(preset, {})
  values.update(image_size=size, network=narrow.get(size), env=settings)
  return values


def build(preset: str, params: Mapping[str, Any]) -> Parameters:
  """Return the parameters of a new run: a preset and what is given.

  Args:
    preset: Name of the preset.
    params: Dict from name to value, as given by the user.

  Raises:
    UsageError: If the preset or a parameter is unknown, a value is wrong, or
      parameters contradict each other.
  """
  given = check(params)
  check_limits(given)
  tasks = given.get('tasks', usual_tasks(preset))
  if 'env' in given:
    given['env'] = check_env(given['env'], tasks)
  given = renamed.translate(given, tasks)
  values = update(choose_defaults(preset, given), given)
  return complete(values, flatten(given))


def usual_tasks(preset: str) -> list[str]:
  """Return the tasks of a preset.

  Raises:
    UsageError: If the preset is unknown.
  """
  return presets.find(preset).get('tasks', Parameters.default('tasks'))


def complete(values: Mapping[str, Any], given: Iterable[str]) -> Parameters:
  """Return checked values as one object.

  Args:
    values: Values of all parameters, each in its declared type.
    given: Names that commands gave, see `flatten`.

  Raises:
    UsageError: If parameters contradict each other.
  """
  params = Parameters.model_construct(set(given), **values)
  check_together(params)
  return params


def update(
  values: Mapping[str, Any], more: Mapping[str, Any]
) -> dict[str, Any]:
  """Return parameters with others in their place; those in `env` one by one."""
  settings = {**values.get('env', {}), **more.get('env', {})}
  return {**values, **more, **({'env': settings} if settings else {})}


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
  """Return parameters with the settings in `env` as `env.<name>`."""
  settings = {f'env.{x}': y for x, y in values.get('env', {}).items()}
  return {**{x: y for x, y in values.items() if x != 'env'}, **settings}


def choose(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
  """Return some of the parameters, named as in the result of `flatten`.

  The name `env` stands for all settings in it.
  """
  own = {x: y for x, y in values.items() if x in names and x != 'env'}
  settings = {
    x: y
    for x, y in values.get('env', {}).items()
    if {'env', f'env.{x}'} & {*names}
  }
  return {**own, **({'env': settings} if settings else {})}


def fixed(name: str, tasks: Sequence[str]) -> str | None:
  """Return why a run cannot change a parameter; None if it can.

  Args:
    name: Name, as in the result of `flatten`.
    tasks: Tasks of the run.
  """
  own, _, setting = name.partition('.')
  declared = table.find_settings(tasks) if setting else None
  if declared and setting in declared.names():
    return declared.fixed(setting)
  return None if _is_own_scale(own) else Parameters.fixed(own)


def check_together(params: Parameters) -> None:
  """Check that parameters do not contradict each other.

  Raises:
    UsageError: If they do.
  """
  if params.overshooting_scale and params.overshooting_distance < 2:
    # The last distance is unused, as in the original.
    raise errors.UsageError(
      f'Parameter overshooting_distance is {params.overshooting_distance}; '
      'raise it to at least 2 or set overshooting_scale: 0.'
    )
  if not params.train_steps + params.test_steps:
    raise errors.UsageError(
      'Parameters train_steps and test_steps are both 0; raise one of them.'
    )
  if params.test_episodes and not params.train_episodes:
    raise errors.UsageError(
      'Parameter test_episodes needs train_episodes; give both.'
    )
  if params.planner_topk > params.planner_amount:
    raise errors.UsageError(
      f'Parameter planner_topk is {params.planner_topk}, more than '
      f'planner_amount {params.planner_amount}; lower it.'
    )
  if params.planner_bias and params.planner_warm_start:
    raise errors.UsageError(
      'Parameters planner_bias and planner_warm_start both set the initial '
      'plan; give one of them.'
    )


def find_unused(params: Parameters, heads: Collection[str]) -> list[str]:
  """Return the sorted names of given parameters that have no effect.

  They belong to other tasks, models or loaders and are allowed, so that several
  runs can share the same parameters.

  Args:
    params: Parameters.
    heads: Names of the heads of the model.
  """
  scans = params.loader in ('cache', 'recent', 'scan')
  domains = {table.find_row(x).domain for x in params.tasks}
  sees, plays = params.observations != 'vector', not params.train_episodes
  collects = [*params.train_collects, *params.test_collects]
  is_noisy = plays and (
    params.train_action_noise or any('action_noise' in x for x in collects)
  )
  ramps = params.action_noise_ramp or any(
    'action_noise_ramp' in x for x in collects
  )
  # Names, and whether they have an effect.
  used = {
    'loader_every': scans,
    'loader_max_bytes': scans,
    'loader_max_episodes': params.loader == 'scan',
    'loader_window': False,
    'bound_action': False,
    'image_bits': sees,
    'image_size': sees or table.find_settings(params.tasks),
    'overshooting_distance': params.overshooting_scale,
    'os_stop_posterior_grad': params.overshooting_scale,
    'network': sees,
    'model_layers': params.model == 'rssm',
    'future_rnn': params.model == 'rssm',
    **{
      x: params.model == 'drnn' for x in params.names() if x.startswith('drnn_')
    },
    'camera_id': sees and domains - {'gym', 'dummy'},
    'state_diagnostics': not params.state_diagnostics
    or {*heads} - {'image', 'vector', 'reward'},
    'checkpoint_every': params.test_steps,
    'collect_every': plays,
    'collect_batch': plays,
    'num_seed_episodes': plays,
    'action_noise_ramp': is_noisy,
    'action_noise_min': is_noisy and ramps,
    'env': 'gym' in domains,
  }
  given = {x.partition('.')[0] for x in params.model_fields_set}
  for name in given:
    if name.endswith('_loss_scale'):
      used[name] = name.removesuffix('_loss_scale') in heads
  return sorted(x for x in given if not used.get(x, True))


def describe() -> str:
  """Return tables of presets and parameters for `--help`."""
  lines = ['presets (--config) and the defaults that they change:']
  usual = Parameters.defaults()
  for name in presets.PRESETS:
    values = choose_defaults(name, {})
    values['env'] = presets.PRESETS[name].get('env', {})
    changed = [f'{x} {y}' for x, y in values.items() if y != usual[x]]
    text = ', '.join(changed) or 'settings of the original'
    text = textwrap.fill(f'{name:8} {text}', 76, subsequent_indent=' ' * 9)
    lines.append(textwrap.indent(text, '  '))
  lines += ['', 'parameters (name, default, meaning):']
  lines += Parameters.table(
    x for x in Parameters.names() if not x.endswith('_loss_scale')
  )
  return '\n'.join([*lines, '  <head>_loss_scale: loss scale of a head'])

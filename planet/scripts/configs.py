"""Configurations: everything that defines a training run.

Each preset of `presets.py` has a function of its name here, as in the original.
It takes a mapping, which it completes, and a mapping of parameters.
"""

import dataclasses
import datetime
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from agents.envs import adapters
from agents.run import checkpoint, errors, files, references
from agents.tools import nested
from agents.tools.tf1 import tf
from planet import models, networks
from planet.control import planning
from planet.envs.constructors import Task
from planet.scripts import added, parameters, presets
from planet.scripts import tasks as tasks_lib
from planet.tools import loaders, numpy_episodes, preprocess, schedule
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind
from planet.training import precision


@dataclasses.dataclass(frozen=True, eq=False)
class Config(Mapping[str, Any]):
  """Everything that defines a training run, complete and frozen.

  Also a mapping. Contains all parameters under their names, unless a field
  holds what is built from them.

  Attributes:
    params: Parameters.
    debug: Whether to check that states are finite, and to start quickly.
    observation: Model input, `image`, `vector` or `both`.
    observation_keys: Names of the recorded data that form the model input.
    recorded_keys: Names of all recorded data that the run reads.
    preprocess_fn, postprocess_fn: Functions from images to encoder inputs and
      back.
    open_loop_context: Steps with observations before a prediction in summaries.
    data_reader, data_loader: See `planet.tools.numpy_episodes`.
    tasks: Tasks to train on.
    isolate_envs: `none`, `thread` or `process`.
    activation: Activation function of hidden layers.
    gradient_heads: Names of the heads whose loss trains the model.
    encoder: Function from a dict of observations to embeddings.
    decoder: Head of the image, None without images.
    heads: Functions from features to distributions, by name.
    cell: Constructor of the model.
    loss_scales: Scales in the order in which losses are computed and printed.
    optimizers: Optimizers by name, see `planet.training.objectives`.
    max_steps: Examples to train for, None if environment steps are limited.
    train_log_every: Training examples between summaries.
    train_checkpoint_every, test_checkpoint_every: Examples of the phase between
      checkpoints, None for none.
    checkpoint_secs: Seconds between checkpoints.
    checkpoint_at_end: Whether to save a checkpoint at the end.
    print_metrics_every: Examples between logged losses.
    savers: Arguments of `Trainer.add_saver`.
    train_dir, test_dir: Folders of the episodes.
    random_collects: Initial episodes by folder and task.
    train_collects, test_collects: Simulations by name.
    unused: Names of given parameters that have no effect.
    seed: Seed of the run.
    checkpoint_to_load: Name of the checkpoint to continue from; '' for none,
      None for the newest.
    first_step: Global step of this checkpoint.
    source: Content of config.yaml.
    report: Sentences for the user.
    began: Time at which the training began.
    vector_statistics: Mean and standard deviation of vectors.
  """

  params: parameters.Parameters
  debug: bool
  observation: str
  observation_keys: list[str]
  recorded_keys: list[str]
  preprocess_fn: Callable
  postprocess_fn: Callable
  open_loop_context: int
  data_reader: Callable
  data_loader: Callable
  tasks: list[Task]
  isolate_envs: str
  activation: Callable
  gradient_heads: list[str]
  encoder: Callable
  decoder: Callable | None
  heads: AttrDict
  cell: Callable
  loss_scales: AttrDict
  optimizers: AttrDict
  max_steps: int | None
  train_log_every: int
  train_checkpoint_every: int | None
  test_checkpoint_every: int
  checkpoint_secs: float
  checkpoint_at_end: bool
  print_metrics_every: int
  savers: list[AttrDict]
  train_dir: str
  test_dir: str
  random_collects: AttrDict
  train_collects: AttrDict
  test_collects: AttrDict
  unused: list[str]
  seed: int | None = None
  checkpoint_to_load: str | None = None
  first_step: int = 0
  source: AttrDict = dataclasses.field(default_factory=lambda: AttrDict({}))
  report: tuple[str, ...] = ()
  began: datetime.datetime | None = None
  vector_statistics: tuple[np.ndarray, np.ndarray] | None = None

  def replace(self, **changes: Any) -> 'Config':
    """Return a copy with other values of some fields."""
    return dataclasses.replace(self, **changes)

  def of_run(
    self,
    source: Mapping[str, Any],
    path: str | None,
    seed: int | None,
    report: Sequence[str] = (),
  ) -> 'Config':
    """Return the configuration of a run.

    Args:
      source: Content of config.yaml, whose values are written again.
      path: Path of the checkpoint to continue from, None for none.
      seed: Seed of the run.
      report: Sentences for the user.
    """
    values = dict(self.params)
    written = dict(
      version=source['version'],
      config=source['config'],
      params=parameters.choose(values, self.params.model_fields_set),
      seed=source['seed'],
    )
    kept = {x: y for x, y in source.items() if x not in (*written, 'values')}
    return self.replace(
      seed=seed,
      # '' means that there is no checkpoint; None would start another search.
      checkpoint_to_load=os.path.basename(path or ''),
      first_step=checkpoint.step_of(path),
      source=AttrDict({**written, **kept, 'values': values}),
      report=tuple(report),
    )

  def __getattr__(self, name: str) -> Any:
    # Some parameters are used as they are.
    if name in parameters.Parameters.model_fields:
      return getattr(self.params, name)
    known = list(self) if 'params' in vars(self) else []
    raise AttributeError(
      f'Key {name!r} is unknown. {errors.suggest(name, known)}'
    )

  def __getitem__(self, name: str) -> Any:
    if name not in set(self):
      raise KeyError(name)
    return getattr(self, name)

  def __iter__(self) -> Iterator[str]:
    own = [x.name for x in dataclasses.fields(self) if x.name != 'params']
    yield from dict.fromkeys([*parameters.Parameters.names(), *own])

  def __len__(self) -> int:
    return sum(1 for _ in self)


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


def make(preset: str, params: Mapping[str, Any]) -> Config:
  """Build a configuration from a preset and given parameters.

  Args:
    preset: Name of the preset.
    params: Dict from name to value, among them `logdir`.

  Raises:
    UsageError: If a parameter is wrong.
  """
  given, objects = parameters.name_objects(params)
  logdir = given.pop('logdir', '')
  values = parameters.build(preset, given)
  own = parameters.resolve(values, objects, references.EVERYTHING)
  return build(preset, values, tasks_lib.define_all(values), logdir, own)


def _complete(
  preset: str, config: AttrDict, params: Mapping[str, Any]
) -> AttrDict:
  config.update(make(preset, params))
  built = {x: nested.flatten(config[x]) for x in config}
  return config.update(source=AttrDict(config=preset, built=built))


# Also for functions that users add here.
globals().update({x: functools.partial(_complete, x) for x in presets.PRESETS})


def call(
  name: str, given: Mapping[str, Any], logdir: str = ''
) -> tuple[str, dict[str, Any]]:
  """Call a user's function of the original's form.

  Args:
    name: Name of a function that was added to this module, or
      `module:function`. It takes `config` and `params`, changes them, and
      returns the result of `default` or `debug`.
    given: Parameters of the command.
    logdir: Folder of the run, which the function finds in `params`.

  Returns:
    Tuple of the preset that it extends, and the parameters from then on.

  Raises:
    UsageError: If there is no such function, or it changes anything but
      parameters, which would be lost in a stored run.
  """
  function: Any = added.find(__name__, name)
  if ':' in name:
    function = references.resolve(name, references.EVERYTHING)
  if not function:
    presets.find(name)
  params = AttrDict(given, logdir=logdir, _unlocked=True)
  config = function(AttrDict(), params)
  if not isinstance(config, AttrDict) or 'source' not in config:
    raise errors.UsageError(
      f'Function {name} returns {type(config).__name__}; return the result of '
      'planet.scripts.configs.default(config, params).'
    )
  built = config.source.built
  changed = {
    x: y
    for x, y in config.items()
    # `debug` only adds checks.
    if x not in ('debug', 'source') and nested.flatten(y) != built.get(x, ())
  }
  lost = sorted(set(changed) - set(parameters.Parameters.names()))
  if lost:
    raise errors.UsageError(
      f'Function {name} changes {", ".join(lost)} of config, but a run keeps '
      'only parameters; change params instead, see docs/parts.md.'
    )
  own = {x: y for x, y in params.items() if x != 'logdir'}
  return config.source.config, {**own, **changed}


def build(
  preset: str,
  params: parameters.Parameters,
  tasks: Sequence[Task],
  logdir: str,
  own: Mapping[str, Any],
) -> Config:
  """Build a configuration without creating environments or files.

  Says nothing of a run, see `Config.of_run`.

  Args:
    preset: Name of the preset that the parameters come from.
    params: Parameters.
    tasks: Result of `planet.scripts.tasks.define_all`.
    logdir: Folder of the run.
    own: Result of `parameters.resolve`, plus the user's environment or its
      constructor as `tasks`, if given.

  Raises:
    UsageError: If parameters contradict each other.
  """
  keys = _list_keys(params, tasks)
  model = _define_model(params, tasks, own)
  recorded = _list_recorded(keys, model['heads'])
  return Config(
    params=params,
    debug=preset == 'debug',
    tasks=list(tasks),
    observation_keys=keys,
    recorded_keys=recorded,
    isolate_envs=_choose_isolation(params, own),
    unused=parameters.find_unused(params, model['heads']),
    **_define_data(params, recorded),
    **model,
    **_define_losses(params, model['heads']),
    **_define_schedule(params),
    **_define_episodes(params, tasks, files.expand(logdir), own),
  )


def _define_data(params, recorded):
  loader = getattr(loaders, f'{params.loader}_loader')
  if params.loader in ('cache', 'recent', 'scan'):
    kwargs = dict(every=params.loader_every, max_bytes=params.loader_max_bytes)
    if params.loader == 'scan':
      kwargs['max_episodes'] = params.loader_max_episodes
    loader = bind(loader, **kwargs)
  return dict(
    observation=params.observations,
    preprocess_fn=bind(preprocess.preprocess, bits=params.image_bits),
    postprocess_fn=bind(preprocess.postprocess, bits=params.image_bits),
    open_loop_context=5,
    data_reader=bind(numpy_episodes.episode_reader, keys=recorded),
    data_loader=loader,
  )


def _list_keys(params, tasks):
  """Return the names of the recorded data that form the model input."""
  if params.observations == 'image':
    return ['image']
  keys = tasks[0].state_components[1:]
  if not keys:
    raise errors.UsageError(
      f'observations: {params.observations} needs a single task with a state, '
      f'but the tasks are {[x.name for x in tasks]}; use observations: image.'
    )
  return [*(x for x in params.observed if x == 'image'), *keys]


def _list_recorded(keys, heads):
  """Return the names of all recorded data that model and heads use."""
  predicted = [x for x in heads if x not in ('image', 'vector')]
  return list(dict.fromkeys(['action', 'reward', *keys, *predicted]))


def _choose_isolation(params, own):
  if adapters.is_environment(own.get('tasks')):
    return 'none'
  usual = 'thread' if params.tasks == ['dummy'] else 'process'
  return params.isolate_envs or usual


def _define_model(params, tasks, own):
  activation = errors.find('Activation', params.activation, ACTIVATIONS)
  observed = params.observed
  gradient_heads = params.gradient_heads or [*observed, 'reward']
  layers = dict(units=params.num_units, activation=activation)
  heads = {}
  names = tasks[0].state_components
  names = list(names) if params.state_diagnostics else ['reward']
  encoders = []
  if 'image' in observed:
    network = own.get('network') or _find_network(params)
    wanted = ('encoder', 'decoder')
    missing = [x for x in wanted if not hasattr(network, x)]
    if missing:
      raise errors.UsageError(
        f'Network {references.name_of(network)} has no {missing}; '
        'give a class, an object or a module with the functions encoder and '
        'decoder.'
      )
    encoders.append(network.encoder)
    heads['image'] = network.decoder
  if 'vector' in observed:
    encoders.append(bind(networks.vector.encoder, **layers))
    names.append('vector')
  encoder = encoders[0]
  if len(encoders) > 1:
    encoder = bind(networks.joint.encoder, encoders=encoders)
  for name in names:
    heads[name] = bind(
      networks.feed_forward,
      num_layers=params.num_layers,
      stop_gradient=name not in gradient_heads,
      **layers,
    )
  return dict(
    activation=activation,
    gradient_heads=gradient_heads,
    encoder=encoder,
    decoder=heads.get('image'),
    heads=AttrDict(heads),
    cell=_define_cell(params, own, activation),
  )


def _define_cell(params, own, activation):
  cells = {'rssm': models.RSSM, 'ssm': models.SSM, 'drnn': models.DRNN}
  sizes = [params.model_size] * (1 if params.model == 'ssm' else 2)
  options = {}
  if params.model == 'rssm':
    options['future_rnn'] = params.future_rnn
    options['num_layers'] = params.model_layers
  elif params.model == 'drnn':
    links = [(name, value) for name, value in params if 'drnn_' in name]
    options = {name.removeprefix('drnn_'): value for name, value in links}
  model = own.get('model') or cells[params.model]
  options.update(
    mean_only=params.mean_only,
    activation=activation,
    min_stddev=params.min_stddev,
  )
  arguments = inspect.signature(model).parameters.values()
  if all(x.kind != x.VAR_KEYWORD for x in arguments):
    # Models made for earlier commits of the original take fewer.
    options = {x.name: options[x.name] for x in arguments if x.name in options}
  return bind(model, params.state_size, *sizes, **options)


def _find_network(params):
  size = params.image_size
  name = params.network or ('conv_ha' if size == 64 else f'conv_{size}')
  network = getattr(networks, name)
  # A network that users set on the module need not declare its image size.
  if getattr(network, 'image_size', size) != size:
    raise errors.UsageError(
      f'Network {name} needs images of {network.image_size} pixels, but '
      f'image_size is {size}; change image_size or omit network.'
    )
  return network


def _define_losses(params, heads):
  scales: dict[str, Any] = {
    x: getattr(params, f'{x}_loss_scale', 1.0) for x in heads
  }
  observed = params.observed
  # Losses are computed and printed in this order.
  loss_scales = AttrDict(
    {x: scales[x] for x in scales if x not in observed},
    divergence=params.divergence_scale,
    global_divergence=params.global_div_scale,
    overshooting=params.overshooting_scale,
    **{x: scales[x] for x in observed},
  )
  optimizer_cls = bind(tf.train.AdamOptimizer, epsilon=1e-4)
  if params.precision == 'float16':
    optimizer_cls = bind(precision.scaled, optimizer_cls)
  optimizers = AttrDict(
    main=AttrDict(
      optimizer_cls=optimizer_cls,
      learning_rate=params.main_learning_rate,
      clipping=params.main_gradient_clipping,
    )
  )
  return dict(loss_scales=loss_scales, optimizers=optimizers)


def _define_schedule(params):
  return dict(
    max_steps=None if params.total_env_steps else params.max_steps,
    train_log_every=params.train_steps,
    train_checkpoint_every=None,
    test_checkpoint_every=params.checkpoint_every or 10 * params.test_steps,
    checkpoint_secs=60 * params.checkpoint_minutes,
    checkpoint_at_end=True,
    # Short phases would otherwise print every zero steps.
    print_metrics_every=max(1, params.train_steps // 10),
    savers=[AttrDict(exclude=(r'.*_temporary.*',))],
  )


def _define_episodes(params, tasks, logdir, own):
  if params.train_episodes:
    # Recorded elsewhere; nothing is played.
    folders = params.train_episodes, params.test_episodes
    train, test = (files.absolute(x or folders[0]) for x in folders)
    kinds = 'random_collects', 'train_collects', 'test_collects'
    return dict(
      train_dir=train, test_dir=test, **{x: AttrDict({}) for x in kinds}
    )
  found: dict[str, Any] = {}
  initial = {}
  for phase in ('train', 'test'):
    folder = found[f'{phase}_dir'] = os.path.join(logdir, f'{phase}_episodes')
    for task in tasks:
      initial[f'{phase}-{task.name}'] = AttrDict(
        task=task,
        save_episode_dir=folder,
        num_episodes=params.num_seed_episodes,
      )
    collects = {}
    for overrides in getattr(params, f'{phase}_collects'):
      item = _define_collect(overrides, params, phase, folder)
      if item.batch_size > 1 and adapters.is_environment(own.get('tasks')):
        raise errors.UsageError(
          f'A single environment cannot play {item.batch_size} episodes at '
          'once; pass a function that returns an environment, or set '
          'collect_batch: 1.'
        )
      for task in tasks:
        name = f'{item.prefix}_{item.name}_{task.name}'
        if name in collects:
          raise errors.UsageError(
            f'Two entries of {phase}_collects are called {item.name!r}; '
            'choose unique names.'
          )
        collects[name] = _define_simulation(task, item, params, own)
    found[f'{phase}_collects'] = AttrDict(collects)
  return {**found, 'random_collects': AttrDict(initial)}


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
  ramp = dict(ramp=item.action_noise_ramp, min=item.action_noise_min)
  exploration = AttrDict(
    scale=item.action_noise, schedule=bind(schedule.linear, **ramp)
  )
  objective = own['objectives'][item.objective]
  return AttrDict(
    task=task,
    num_agents=item.batch_size,
    planner=planner,
    horizon=item.horizon,
    warm_start=params.planner_warm_start,
    objective=bind(objective, params=AttrDict(dict(params))),
    save_episode_dir=item.save_episode_dir,
    steps_after=item.after,
    steps_every=item.every,
    steps_until=item.until,
    exploration=exploration if item.action_noise else None,
  )


# For `added.find`: other values of these names are from users.
_OURS = dict(globals())

"""Compare PlaNet with google-research/planet: single updates and plans.

Both sides get the same batches, weights, slots of Adam and noise. The original
trains; ours repeats some of its updates, starting from the weights of the
original. Over many updates, rounding errors grow in both, so whole trainings
cannot be compared this closely.
"""

import contextlib
import functools
import importlib
import os
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from agents.run import plot
from tests.originals.cases import (
  Case,
  largest,
  recorded,
  relative,
  relative_norm,
)

# Not in our package of the same name.
ORIGINAL = 'planet/tools/test_nested.py'
COMMIT = 'c04226b'  # 2019-08-03
_BATCH, _TIME, _STATE = 8, 20, 16
# Updates of each model that ours repeats, and free nats of each model.
_UPDATES = {'rssm': (0, 4, 39), 'ssm': (0, 11), 'drnn': (0, 11)}
# Updates in a row, where each code continues from its own weights.
_ROW = {'rssm': 50, 'ssm': 0, 'drnn': 0}
_FREE_NATS = {'rssm': 0.5, 'ssm': 0.1, 'drnn': 0.1}
_LOSSES = 'image', 'reward', 'divergence', 'grad_norm'
# A divergence close to the free nats is a difference of large numbers.
_FLOORS = 1e-3, 1e-3, 5e-2, 1e-3
_PLANS, _CANDIDATES, _BEST, _ITERATIONS, _HORIZON = 24, 200, 20, 10, 12
_SCOPES = 'encoder', 'head_image', 'head_reward', 'transition', 'posterior'


def run(side: str, clone: str, out: str) -> None:
  """Train and plan with one side.

  Args:
    side: `original`, which must run first, or `ours`.
    clone: Folder of the original.
    out: Folder for the files that `compare` reads.
  """
  lib = _find_libraries(side, clone)
  # Summaries need folders of episodes, even if never executed.
  lib.logdir = out
  for name in ('train_episodes', 'test_episodes'):
    os.makedirs(os.path.join(out, name), exist_ok=True)
  for model in _UPDATES:
    _train(lib, side, model, out)
  _plan(lib, side, out)


def compare(out: str) -> Iterator[Case]:
  """Yield cases for each model, for updates in a row, and for plans."""
  for model, updates in _UPDATES.items():
    losses, changes, numbers = {x: 0.0 for x in _LOSSES}, 0.0, 0
    for index in updates:
      original, ours = (
        dict(np.load(_path(out, f'{side}-{model}-{index}')))
        for side in ('original', 'ours')
      )
      for name, floor in zip(_LOSSES, _FLOORS):
        found = relative(original.pop(name), ours.pop(name), floor)
        losses[name] = largest([losses[name], found])
      a, b = (
        np.concatenate([x[k].ravel() for k in sorted(original)])
        for x in (original, ours)
      )
      changes, numbers = largest([changes, relative_norm(a, b)]), len(a)
    for name, value in losses.items():
      yield Case(f'{model}: {name} of an update', len(updates), value, 1e-5)
    words = f'{model}: change of the weights by an update'
    yield Case(words, numbers * len(updates), changes, 1e-3)
  original, ours = (
    np.load(_path(out, f'{side}-rssm-row'))['row']
    for side in ('original', 'ours')
  )
  _draw_row(original, ours, os.path.join(out, 'losses.png'))
  # The norm of the gradients follows no loss, and parts first.
  difference = relative(original[:, :2], ours[:, :2])
  words = f'rssm: image and reward loss of {len(ours)} updates in a row'
  yield Case(words, original[:, :2].size, difference, 1e-3)
  yield from compare_plans(
    *(dict(np.load(_path(out, f'{x}-plans'))) for x in ('original', 'ours'))
  )


def compare_plans(
  original: dict[str, np.ndarray], ours: dict[str, np.ndarray]
) -> Iterator[Case]:
  """Yield a case for the returns of the candidates and one for the plans.

  Where two candidates at the edge of the elite are a tie within rounding, the
  codes may choose different ones. All that follows is then another search, so
  that it is left out. Whether it is a tie is for the first case to decide: it
  includes the returns that led to the choice.

  Args:
    original: Dict of `plans` [plans, ...] and of the `returns` of the
      candidates in each iteration [plans, iterations, candidates].
    ours: The same of the other code.
  """
  numbers, differences, whole = 0, [0.0], []
  for a, b in zip(original['returns'], ours['returns'], strict=True):
    ties = (_find_elite(a) != _find_elite(b)).any(-1)
    end = 1 + int(ties.argmax()) if ties.any() else len(a)
    numbers += a[:end].size
    scale = float(np.abs(a[:end]).max())
    differences.append(float(np.abs(a[:end] - b[:end]).max()) / scale)
    whole.append(not ties.any())
  words = 'returns of the candidates of plans from the same noise'
  yield Case(words, numbers, largest(differences), 1e-5)
  difference = float('inf')
  # The rest would say little.
  if np.mean(whole) > 0.5:
    a, b = original['plans'][whole], ours['plans'][whole]
    difference = float(np.abs(a - b).max())
  count = len(whole) - sum(whole)
  words = f'plans from the same noise, without {count} with ties'
  yield Case(words, original['plans'][whole].size, difference, 1e-3)


def _find_elite(returns):
  """Sorted indices [..., best] of the best candidates."""
  best = np.argsort(-returns, -1, kind='stable')[..., :_BEST]
  return np.sort(best, -1)


def _draw_row(original, ours, path):
  """Draw losses of updates in a row, of both codes [updates, losses]."""
  figure, axes = plot.make_figure((9, 6), 2, 2)
  for index, (name, place) in enumerate(zip(_LOSSES, axes.flat)):
    place.plot(original[:, index], linewidth=4, alpha=0.4, label='original')
    place.plot(ours[:, index], linewidth=1, label='ours')
    place.set(title=name, xlabel='Update')
    place.grid(alpha=0.3)
  axes[0, 0].legend()
  plot.save(figure, path)


def _path(out, name):
  return os.path.join(out, name + '.npz')


def _find_libraries(side, clone):
  """Import the modules of one side; both have the same names."""
  objectives: Any  # module of `compute_objectives`
  if side == 'original':
    from tests.originals import planet_original

    tf = planet_original.prepare(clone)
    from planet.tools import AttrDict
    from planet.training import utility

    objectives = utility
  else:
    from agents.tools.tf1 import tf
    from planet.tools.attr_dict import AttrDict
    from planet.training import objectives as own_objectives

    objectives = own_objectives
  from planet import control, training
  from planet.scripts import configs
  from planet.scripts import objectives as planning_objectives
  from planet.training import utility

  tf.logging.set_verbosity(tf.logging.ERROR)
  return types.SimpleNamespace(
    tf=tf,
    AttrDict=AttrDict,
    define_model=training.define_model,
    Trainer=training.Trainer,
    configs=configs,
    planning=control.planning,
    reward=planning_objectives.reward,
    utility=utility,
    objectives=objectives,
  )


def make_batch(seed: int) -> dict[str, np.ndarray]:
  """Return sequences of a square moved by actions, and noise for the model.

  Returns:
    Dict of `image` float32 [batch, time, 64, 64, 3], `action` [.., 1],
    `reward` [batch, time], `length` int32 [batch], and `noise` [time, batch,
    state].
  """
  rng = np.random.RandomState(seed)
  action = rng.uniform(-1, 1, [_BATCH, _TIME, 1])
  place = 0.5 + 0.4 * np.sin(np.cumsum(action[..., 0], 1))
  x, y = np.meshgrid(np.linspace(0, 1, 64), np.linspace(0, 1, 64))
  near = np.abs(x - place[..., None, None]) < 0.1
  square = near & (np.abs(y - 0.5) < 0.1)
  image = np.stack([x + 0 * square, y + 0 * square, square], -1)
  image = np.floor(32 * image.clip(0, 31 / 32)) / 32
  image += rng.uniform(0, 1 / 32, image.shape) - 0.5
  batch = {
    'image': image,
    'action': action,
    'reward': place,
    'noise': rng.normal(size=[_TIME, _BATCH, _STATE]),
  }
  return {
    **{key: value.astype(np.float32) for key, value in batch.items()},
    'length': np.full([_BATCH], _TIME, np.int32),
  }


def _define(lib, model, **params):
  """Build the graph of the model; return its parts."""
  lib.tf.reset_default_graph()
  lib.tf.set_random_seed(0)
  given = {
    'tasks': ['cartpole_balance'],
    'logdir': lib.logdir,
    'batch_shape': [_BATCH, _TIME],
    'model': model,
    'model_size': 64,
    'state_size': _STATE,
    'num_layers': 2,
    'num_units': 64,
    'train_collects': [],
    'test_collects': [],
    'mean_only': False,
    **params,
  }
  given = lib.AttrDict(given, _unlocked=True)
  config = lib.configs.default(lib.AttrDict(_unlocked=True), given)
  fed = {
    key: lib.tf.placeholder(lib.tf.as_dtype(value.dtype), value.shape)
    for key, value in make_batch(0).items()
  }
  data = {key: value for key, value in fed.items() if key != 'noise'}
  objectives: list = []
  optimizers: list = []
  arguments: list = []
  compute = lib.objectives.compute_objectives

  def compute_objectives(*args):
    arguments.append(args)
    return recorded(compute, objectives)(*args)

  apply = recorded(lib.utility.apply_optimizers, optimizers)
  with (
    lib.tf.variable_scope('graph', use_resource=True),
    mock.patch.object(lib.objectives, 'compute_objectives', compute_objectives),
    mock.patch.object(lib.utility, 'apply_optimizers', apply),
    _fixed_noise(lib.tf, fed['noise'], _BATCH * _STATE),
  ):
    trainer = lib.Trainer(None, config=config)
    score, summary, _ = lib.define_model(data, trainer, config)
  losses = {x.name: x.value for x in objectives[0]}
  return types.SimpleNamespace(
    fed=fed,
    trainer=trainer,
    run=[score, summary],
    losses={**losses, 'grad_norm': optimizers[0][1]['main']},
    posterior=arguments[0][0],
    graph=arguments[0][3],
    params=given,
  )


@contextlib.contextmanager
def _fixed_noise(tf, noise, size):
  """Replace normal samples of a size in loops by a tensor [time, ...].

  The counter of the loop is the time.
  """
  util = importlib.import_module('tensorflow.python.framework.tensor_util')

  def draw(function, shape, *args, **kwargs):
    static = util.constant_value(tf.convert_to_tensor(shape))
    counter = _find_counter(tf)
    known = static is not None
    if counter is None or known and np.prod(static) != size:
      return function(shape, *args, **kwargs)
    value = tf.gather(noise, counter)
    # TensorFlow Probability samples [state, batch] and transposes.
    if 'MultivariateNormalDiag' in getattr(shape, 'name', ''):
      value = tf.transpose(value)
    return tf.reshape(value, shape)

  with contextlib.ExitStack() as stack:
    for module, name in (
      ('gen_random_ops', 'random_standard_normal'),
      ('gen_stateless_random_ops', 'stateless_random_normal'),
      ('gen_stateless_random_ops_v2', 'stateless_random_normal_v2'),
    ):
      place = importlib.import_module(f'tensorflow.python.ops.{module}')
      function = functools.partial(draw, getattr(place, name))
      stack.enter_context(mock.patch.object(place, name, function))
    yield


def _find_counter(tf):
  """Return the counter of the loop under construction, None outside."""
  context = tf.get_default_graph()._get_control_flow_context()
  while context is not None and not context.IsWhileContext():
    context = context.outer_context
  if context is None:
    return None
  for op in tf.get_default_graph().get_operations():
    if (
      op.type == 'Identity'
      and op.inputs[0].op.type == 'Switch'
      and op._get_control_flow_context() is context
      and op.outputs[0].dtype == tf.int32
      and op.outputs[0].shape.ndims == 0
    ):
      return op.outputs[0]
  raise RuntimeError('The loop around a draw has no counter.')


def _session(lib):
  """Open a session whose results do not differ from run to run.

  One thread for operations is not enough: it works beside the caller's, and
  the order of the operations depends on the time that each takes. With -1,
  there is only the caller's.
  """
  threads = {'intra_op_parallelism_threads': 1}
  threads['inter_op_parallelism_threads'] = -1
  sess = lib.tf.Session(config=lib.tf.ConfigProto(**threads))
  sess.run(
    [
      lib.tf.global_variables_initializer(),
      lib.tf.local_variables_initializer(),
    ]
  )
  return sess


def _name_weights(tf):
  """Return trainable variables by names that both sides share."""
  found: dict[str, Any] = {}
  counts: dict[str, int] = {}
  for variable in tf.trainable_variables():
    parts = variable.name.split(':')[0].split('/')
    (scope,) = set(parts) & set(_SCOPES)
    name = f'{scope}/{parts[-1]}'
    counts[name] = counts.get(name, 0) + 1
    found[f'{name}/{counts[name]}'] = variable
  return found


def _name_state(tf):
  """Return weights and the slots of Adam by names that both sides share."""
  weights = _name_weights(tf)
  inner = {
    x.name.split(':')[0].split('graph/')[-1]: k for k, x in weights.items()
  }
  found = dict(weights)
  for variable in tf.global_variables():
    name = variable.name.split(':')[0].split('graph/')[-1]
    path, _, last = name.rpartition('/')
    if path in inner and last in ('main', 'main_1'):
      found[f'{inner[path]}/{last}'] = variable
    elif last in ('beta1_power', 'beta2_power'):
      found[last] = variable
  assert len(found) == 3 * len(weights) + 2, sorted(found)
  return found


def _restore(sess, variables, values):
  for name, variable in variables.items():
    variable.load(values[name].reshape(variable.shape.as_list()), sess)


def _make_feed(trainer, step):
  """Return the feed of a trainer for a training step without summaries."""
  values = {'step': step, 'phase': 'train'}
  values.update(log=False, report=False, reset=False)
  # Placeholders of the original are private.
  return {
    getattr(trainer, x if hasattr(trainer, x) else f'_{x}'): value
    for x, value in values.items()
  }


def _train(lib, side, model, out):
  """Update a model in a row; save or repeat some of the updates alone."""
  built = _define(lib, model, free_nats=_FREE_NATS[model])
  weights, state = _name_weights(lib.tf), _name_state(lib.tf)
  kept, row = _UPDATES[model], []
  count = _ROW[model]
  if side == 'original':
    count = max(count, kept[-1] + 1)
  alone = kept if side == 'ours' else ()
  with _session(lib) as sess:
    for number, index in enumerate((*range(count), *alone)):
      before = _path(out, f'before-{model}-{index}')
      if side == 'ours' and (number == 0 or number >= count):
        _restore(sess, state, np.load(before))
      elif side == 'original' and index in kept:
        np.savez(before, **sess.run(state))
      batch = make_batch(index)
      feed = {built.fed[key]: value for key, value in batch.items()}
      feed.update(_make_feed(built.trainer, index * _BATCH))
      start = sess.run(weights)
      losses, _ = sess.run([built.losses, built.run], feed)
      losses = {key: losses[key] for key in _LOSSES}
      row.append(list(losses.values()))
      if index in kept and (side == 'original' or number >= count):
        changes = {k: x - start[k] for k, x in sess.run(weights).items()}
        np.savez(_path(out, f'{side}-{model}-{index}'), **losses, **changes)
    np.savez(_path(out, f'{side}-{model}-row'), row=row[:count])
    if side == 'original' and model == 'rssm':
      np.savez(_path(out, 'trained'), **sess.run(weights))


def _plan(lib, side, out):
  """Plan from states that the original filtered."""
  built = _define(lib, 'rssm', mean_only=True, free_nats=0.0)
  tf = lib.tf
  state = {
    key: tf.placeholder(tf.float32, [1, x.shape.as_list()[-1]])
    for key, x in built.posterior.items()
  }
  noise = tf.placeholder(tf.float32, [_ITERATIONS, 1, _CANDIDATES, _HORIZON, 1])
  returns: list = []

  def objective(states):
    value = lib.reward(states, graph=built.graph, params=built.params)
    record = tf.py_func(returns.append, [value], [])
    with tf.control_dependencies([record]):
      return tf.identity(value)

  with (
    tf.variable_scope('graph/collection', use_resource=True),
    _fixed_noise(tf, noise, _CANDIDATES * _HORIZON),
  ):
    plan = lib.planning.cross_entropy_method(
      built.graph.cell,
      objective,
      state,
      [1024],
      [1],
      horizon=_HORIZON,
      graph=built.graph,
      amount=_CANDIDATES,
      topk=_BEST,
      iterations=_ITERATIONS,
    )
  with _session(lib) as sess:
    _restore(sess, _name_weights(tf), np.load(_path(out, 'trained')))
    if side == 'original':
      batches = [make_batch(1000 + index) for index in range(_PLANS // _BATCH)]
      found = [
        sess.run(built.posterior, {built.fed[k]: x[k] for k in built.fed})
        for x in batches
      ]
      last = {k: [x[k][:, -1] for x in found] for k in found[0]}
      states: Any = {k: np.concatenate(x) for k, x in last.items()}
      np.savez(_path(out, 'states'), **states)
    states = np.load(_path(out, 'states'))
    plans = []
    for index in range(_PLANS):
      feed = {x: states[key][index : index + 1] for key, x in state.items()}
      rng = np.random.RandomState(index)
      feed[noise] = rng.normal(size=noise.shape.as_list())
      plans.append(sess.run(plan, feed))
  shape = _PLANS, _ITERATIONS, _CANDIDATES
  np.savez(
    _path(out, f'{side}-plans'), plans=plans, returns=np.reshape(returns, shape)
  )

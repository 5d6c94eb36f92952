"""PlaNet's training step, planner, collection and input pipeline.

The baselines are the formulations of the original with the stock operations
of TensorFlow and its defaults.
"""

import argparse
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable

from scripts.benchmarks import common

# Multiplications per image of 64 x 64 in the encoder and the decoder.
_ENCODER = (1476096, 6422528, 4718592, 2097152)
_DECODER = (1024 * 5 * 5 * 128, 5120000, 12460032, 3110400)
_EMBEDDED, _ACTIONS = 1024, 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument('--batch', type=int, default=50, help='sequences')
  parser.add_argument('--length', type=int, default=50, help='steps of each')
  parser.add_argument('--amount', type=int, default=1000, help='candidates')
  parser.add_argument('--horizon', type=int, default=12, help='actions ahead')
  parser.add_argument('--iterations', type=int, default=10, help='of a plan')
  parser.add_argument('--task', default='cheetah_run', help='to collect from')
  parser.add_argument(
    '--stock_onednn',
    type=int,
    choices=(0, 1),
    default=None,
    help='whether the baseline uses oneDNN; by default as TensorFlow decides, '
    'that is 1 on processors with AVX-512',
  )
  parser.add_argument('--at_once', type=int, default=4, help='environments')
  parser.add_argument('--precision', default='bfloat16', help='to compare')
  parser.add_argument('--episodes', type=int, default=1, help='recorded')
  parser.add_argument('--units', type=int, default=3, help='to measure')


def environ(variant: str, args: argparse.Namespace) -> dict[str, str]:
  """TensorFlow leaves oneDNN off on processors without AVX-512."""
  if variant == 'ours':
    return {}
  default = args.stock_onednn
  if default is None:
    with open('/proc/cpuinfo') as file_:
      default = int('avx512f' in file_.read())
  return {'TF_ENABLE_ONEDNN_OPTS': str(default)}


def run_step(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure updates of the whole model on constant data."""
  with _formulation(variant):
    return _measure_update(args)


def _measure_update(args, precision=None):
  from planet.training import cost

  with tempfile.TemporaryDirectory() as logdir:
    config = _define_config(logdir, args)
    graph = _define_graph(config, args)
    return _measure(cost.define_update(graph, config), args.units, precision)


def run_precision(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure updates of the whole model in another precision, on any machine."""
  from planet.training import precision

  if variant == 'ours':
    precision.check(args.precision)
  return _measure_update(args, args.precision if variant == 'ours' else None)


def run_plan(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure plans of one environment."""
  from planet.training import cost

  with _formulation(variant), tempfile.TemporaryDirectory() as logdir:
    config = _define_config(logdir, args)
    graph = _define_graph(config, args, length=1, batch=1)
    return _measure(cost.define_decision(graph, config), args.units * 5)


def run_collect(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure decisions in a real environment, an episode at a time."""
  with _formulation(variant):
    return _measure_decisions(args, 1)


def run_batch(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure decisions in several environments at once, against one."""
  return _measure_decisions(args, args.at_once if variant == 'ours' else 1)


def _measure_decisions(args, num_agents):
  from agents.envs import probe
  from planet.training import utility

  with tempfile.TemporaryDirectory() as logdir:
    config = _define_config(logdir, args)
    (params,) = config.train_collects.values()
    shapes = probe.inspect(params.task.env_ctor)['shapes']
    graph = _define_graph(config, args, 1, 1, *shapes['action'])
    with params.unlocked:
      params.num_agents = num_agents
      params.task = params.task._replace(max_length=args.units * 5)
    cleanups: list[Callable[[], None]] = []
    try:
      _, return_ = utility.simulate_episodes(
        config, params, graph, cleanups, False, False, 'collect'
      )
      measurement = _measure(return_, 1)
    finally:
      for cleanup in cleanups:
        cleanup()
    measurement.units = args.units * 5 * num_agents
    return measurement


def run_data(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure batches of the pipeline; the baseline is the training step."""
  if variant == 'baseline':
    return run_step('ours', args)
  from agents.tools.tf1 import tf
  from planet.tools import numpy_episodes
  from planet.training import utility

  with tempfile.TemporaryDirectory() as logdir:
    config = _define_config(logdir, args)
    utility.collect_initial_episodes(config)
    _copy_episode(config.train_dir, args.episodes)
    datasets = numpy_episodes.numpy_episodes(
      config.train_dir,
      config.test_dir,
      config.batch_shape,
      reader=config.data_reader,
      loader=config.data_loader,
      num_chunks=config.num_chunks,
      preprocess_fn=config.preprocess_fn,
      seed=0,
    )
    batch = tf.data.make_one_shot_iterator(datasets['train']).get_next()
    return _measure(batch, args.units * 10)


def _copy_episode(folder, count):
  """Let a folder with one episode have several of them."""
  (name,) = os.listdir(folder)
  for number in range(1, count):
    copy = f'{number:05}-{name}'
    shutil.copy(os.path.join(folder, name), os.path.join(folder, copy))


def bound_step(args: argparse.Namespace, rate: float) -> float:
  """CPU seconds of the matrix products of an update."""
  dense = 3 * _cell(posterior=True) + 3 * _heads()
  convolutions = 3 * sum(_ENCODER) - _ENCODER[0] + 3 * sum(_DECODER)
  return 2 * (dense + convolutions) * args.batch * args.length / rate


def bound_plan(args: argparse.Namespace, rate: float) -> float:
  """CPU seconds of the matrix products of a plan."""
  states = args.amount * args.horizon * args.iterations
  return 2 * states * (_cell(posterior=False) + _heads(image=False)) / rate


def _cell(posterior, size=200, state=30):
  """Multiplications of one step of the latent model."""
  prior = (state + _ACTIONS) * size + 2 * size * 3 * size
  prior += size * size + 2 * size * state
  if posterior:
    prior += (size + _EMBEDDED) * size + 2 * size * state
  return prior


def _heads(image=True, size=200, state=30, units=100):
  """Multiplications of the reward, and of the layer before the decoder."""
  reward = (size + state) * units + units * units + units
  return reward + (size + state) * _EMBEDDED * image


@contextlib.contextmanager
def _formulation(variant):
  """Replace what is ours by the stock operations for the baseline."""
  from unittest import mock

  if variant == 'ours':
    yield
    return
  from agents.tools import layers
  from planet import models
  from planet.control import planning
  from planet.tools import unroll
  from scripts.benchmarks import planet_stock as stock

  with contextlib.ExitStack() as stack:
    for owner, name, value in (
      (layers, 'conv2d_transpose', stock.conv2d_transpose),
      (models.RSSM, '_define_posterior', stock.define_posterior),
      (unroll, 'closed_loop', stock.closed_loop),
      (planning, '_predict', stock.predict),
    ):
      stack.enter_context(mock.patch.object(owner, name, value))
    yield


def _define_config(logdir, args):
  from planet.scripts import preparation
  from planet.tools.attr_dict import AttrDict

  params = AttrDict(
    tasks=[args.task],
    batch_shape=[args.batch, args.length],
    planner_amount=args.amount,
    planner_topk=max(1, args.amount // 10),
    planner_horizon=args.horizon,
    planner_iterations=args.iterations,
    num_seed_episodes=1,
  )
  settings = argparse.Namespace(config='default', params=params, seed=0)
  return preparation.define_config(os.path.join(logdir, '00001'), settings)


def _define_graph(config, args, batch=None, length=None, actions=_ACTIONS):
  """Networks on data that does not change, in a training phase."""
  from planet.training import cost

  shapes = {'image': (64, 64, 3), 'action': (actions,), 'reward': ()}
  batch_shape = (batch or args.batch, length or args.length)
  return cost.define_graph(config, cost.draw_data(batch_shape, shapes))


def _measure(fetches, units, precision=None):
  """Execute once to warm up, then as often as it says."""
  from agents.tools.tf1 import tf
  from planet.training import precision as precision_lib

  session = tf.ConfigProto(allow_soft_placement=True)
  precision_lib.enable(precision, session)
  with tf.Session(config=session) as sess:
    sess.run(
      [tf.global_variables_initializer(), tf.local_variables_initializer()]
    )
    with common.Measurement(1) as first:
      sess.run(fetches)
    with common.Measurement(units) as measurement:
      for _ in range(units):
        sess.run(fetches)
  measurement.extra['first CPU s'] = first.cpu_s
  return measurement


SUBJECTS = [
  common.Subject(
    'planet-step',
    'an update of PlaNet, against the stock operations',
    'updates',
    run_step,
    add_arguments,
    environ,
    bound_step,
  ),
  common.Subject(
    'planet-precision',
    'an update of PlaNet in fewer bits, against float32',
    'updates',
    run_precision,
    add_arguments,
  ),
  common.Subject(
    'planet-plan',
    'a plan of PlaNet, against the stock operations',
    'plans',
    run_plan,
    add_arguments,
    environ,
    bound_plan,
  ),
  common.Subject(
    'planet-collect',
    'decisions of PlaNet in an environment, against the stock operations',
    'decisions',
    run_collect,
    add_arguments,
    environ,
  ),
  common.Subject(
    'planet-batch',
    'decisions in several environments at once, against one; look at the wall',
    'decisions',
    run_batch,
    add_arguments,
  ),
  common.Subject(
    'planet-data',
    'batches of the input pipeline, against updates that consume them',
    'batches',
    run_data,
    add_arguments,
  ),
]

"""Training utilities with the names of the original."""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agents import utility
from agents.tools import count_weights, graph_errors, phases
from agents.tools.streaming_mean import StreamingMean
from agents.tools.tf1 import tf
from agents.utility import set_up_logging as set_up_logging
from planet.tools.attr_dict import AttrDict
from planet.training import episode_folder
from planet.training.collection import (
  collect_initial_episodes as collect_initial_episodes,
)
from planet.training.collection import simulate_episodes as simulate_episodes
from planet.training.objectives import Objective as Objective
from planet.training.objectives import apply_optimizers as apply_optimizers
from planet.training.objectives import compute_objectives as compute_objectives
from planet.training.ranks import Ranks
from planet.training.trainer import Trainer

if TYPE_CHECKING:
  from planet.scripts.configs import Config

_logger = logging.getLogger(__name__)


def save_config(config: 'Config | AttrDict', logdir: str | None = None) -> Any:
  """Write `<logdir>/config.yaml`, from which a run resumes.

  Args:
    config: Configuration whose entry `source` is plain data: the name of the
      preset, all values, those that commands gave, and the seed.
    logdir: Folder of the run, or None to write nothing.

  Returns:
    The configuration.
  """
  if logdir:
    utility.save_config(config, logdir, config.source)
  return config


def load_config(logdir: str) -> AttrDict:
  """Read the file of `save_config` as an AttrDict.

  Raises:
    UsageError: If the file is missing or damaged.
  """
  return utility.load_config(logdir, parse=AttrDict)


def train(
  model_fn: Callable,
  datasets: AttrDict,
  logdir: str | None,
  config: AttrDict,
  observers: Iterable[phases.Observer] = (),
  ranks: Ranks | None = None,
  on_start: Callable[[], None] | None = None,
) -> Generator[float, None, None]:
  """Train a model for the configured number of steps.

  Args:
    model_fn: Function from data, trainer and configuration to score, summary
      and a list of functions to call at the end.
    datasets: AttrDict of the datasets `train` and `test`.
    logdir: Folder of the run, or None.
    config: Configuration.
    observers: List of `agents.tools.phases.Observer` to notify.
    ranks: Processes that train together; only this one by default.
    on_start: Function to call once the variables are restored.

  Yields:
    Mean score of each test phase; NaN after each training phase without any.
  """
  trainer = Trainer(
    logdir, config, ranks, best_phase='test', observers=observers
  )
  trainer.on_start = on_start
  parts = [x.get('part', 1.0) for x in config.test_collects.values()]
  trainer.score_weight = sum(parts)
  if total := config.get('total_env_steps'):
    repeat = config.tasks[0].action_repeat
    episodes = episode_folder.EpisodeLog(config.train_dir, repeat)
    trainer.may_play = lambda: episodes.count_steps() < total
  cleanups = []
  try:
    with tf.variable_scope('graph', use_resource=True):
      data = get_batch(datasets, trainer.phase, trainer.reset)
      if config.get('xla') and 'image' in data:
        # The GPU preprocesses faster, and fewer bytes are copied to it.
        data['image'] = config.preprocess_fn(data['image'])
      score, summary, cleanups = model_fn(data, trainer, config)
      _logger.info('The model has %s weights.', f'{count_weights():,}')
      _add_phases(trainer, config, score, summary)
    for saver in config.savers:
      trainer.add_saver(**saver)
    yield from trainer.iterate(config.max_steps)
  finally:
    for cleanup in cleanups:
      cleanup()


def _add_phases(trainer, config, score, summary):
  """Add the phases of an epoch that have steps."""
  # The last phase ends an epoch.
  last = 'test' if config.test_steps else 'train'
  for name in ('train', 'test'):
    if steps := config[f'{name}_steps']:
      trainer.add_phase(
        name,
        steps,
        score,
        summary,
        batch_size=config.batch_shape[0],
        report_every=steps if name == last else None,
        log_every=config.train_log_every if name == 'train' else steps,
        checkpoint_every=config[f'{name}_checkpoint_every'],
      )


def get_batch(
  datasets: AttrDict, phase: tf.Tensor, reset: tf.Tensor
) -> dict[str, tf.Tensor]:
  """Return the next batch of the dataset of a phase.

  Args:
    datasets: AttrDict of the datasets `train` and `test`.
    phase: String tensor.
    reset: Unused, as in the original.

  Returns:
    Dict of tensors [batch, time, ...], and `length` int32 [batch].
  """
  del reset
  with tf.variable_scope('datasets'):
    iterators = {
      name: tf.data.make_one_shot_iterator(datasets[name])
      for name in ('train', 'test')
    }
    data = tf.cond(
      tf.equal(phase, 'train'),
      iterators['train'].get_next,
      iterators['test'].get_next,
    )
    if not isinstance(data, dict):
      data = {'data': data}
    if 'length' not in data:
      example = next(iter(data.values()))
      data['length'] = (
        tf.zeros((tf.shape(example)[0],), tf.int32) + tf.shape(example)[1]
      )
    return data


def print_metrics(
  metrics: Mapping[str, tf.Tensor],
  step: tf.Tensor,
  every: int,
  name: str = 'metrics',
  batch_size: int = 1,
) -> tf.Operation:
  """Log the means of metrics at regular intervals.

  Args:
    metrics: Dict from name to scalar tensor.
    step: Integer tensor.
    every: Steps between two lines.
    name: First word of each line.
    batch_size: Steps between two executions.

  Returns:
    Operation.
  """
  means, updates = [], []
  title = '/'.join(['step', *metrics])

  @graph_errors.remember
  def write(step, *values):
    # The file of messages may be gone.
    text = ' '.join(f'{x:.4g}' for x in values)
    _logger.debug('%s: %s = [%d %s]', name, title, step, text)

  with tf.variable_scope(f'print_{name}'):
    # Floats would round steps above 2 ** 24.
    step = tf.cast(step, tf.int64)
    for key, value in metrics.items():
      mean = StreamingMean((), tf.float32, f'mean_{key}')
      means.append(mean)
      updates.append(mean.submit(value))
    with tf.control_dependencies(updates):
      due = tf.less(tf.math.floormod(step, every), batch_size)
      return tf.cond(
        due,
        lambda: tf.group(
          tf.py_func(write, [step, *[x.clear() for x in means]], [])
        ),
        tf.no_op,
      )

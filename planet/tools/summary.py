"""Summaries of data, states and predictions for TensorBoard."""

import io
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs.video import GAP
from agents.tools.tf1 import tf
from planet.tools.gif_summary import gif_summary
from planet.tools.image_strip_summary import add_gaps, image_strip_summary
from planet.tools.show_channels import show_channels

_MAX_BATCH = 10
_MAX_PANELS = 20


def timing_summaries(
  step: tf.Tensor, global_step: tf.Tensor
) -> list[tf.Tensor]:
  """Summarise the step and the speed since the last summary.

  Args:
    step: Integer tensor, number of examples within the phase.
    global_step: Integer tensor, number of examples over all phases, used to
      compute the speed.

  Returns:
    List of serialised summaries.
  """
  last: list[float] = []

  def measure(step):
    now = time.monotonic()
    steps, seconds = (step - last[0], now - last[1]) if last else (0, 0)
    last[:] = [step, now]
    per_second = steps / seconds if seconds else 0
    per_step = seconds / steps if steps else 0
    return np.float32(per_second), np.float32(per_step)

  per_second, per_step = tf.py_func(
    measure, [global_step], [tf.float32, tf.float32], name='timing'
  )
  per_second.set_shape(())
  per_step.set_shape(())
  names = ('step', 'steps_per_second', 'seconds_per_step')
  return _scalars(dict(zip(names, (step, per_second, per_step))))


def dataset_summaries(episodes: tf.Tensor) -> list[tf.Tensor]:
  """Summarise the number of training episodes."""
  with tf.variable_scope('dataset'):
    return _scalars({'episodes': episodes})


def objective_summaries(objectives: Mapping[str, tf.Tensor]) -> list[tf.Tensor]:
  """Summarise the objectives, a dict from name to scalar."""
  with tf.variable_scope('objectives'):
    return _scalars(objectives)


def data_summary(images: tf.Tensor) -> tf.Tensor:
  """Summarise images [batch, time, height, width, channels] as a strip."""
  with tf.variable_scope('data'):
    return image_strip_summary('image', images, gap=GAP)


def state_summaries(
  cell: Any, prior: dict[str, tf.Tensor], posterior: dict[str, tf.Tensor]
) -> list[tf.Tensor]:
  """Summarise entropy, standard deviation and divergence of latent states.

  Args:
    cell: Model, see `planet.models.Base`.
    prior: Dict of tensors [batch, time, ...].
    posterior: Dict of tensors [batch, time, ...].

  Returns:
    List of serialised summaries.
  """
  values = {}
  with tf.variable_scope('state'):
    for name, state in (('prior', prior), ('posterior', posterior)):
      dist = cell.dist_from_state(state)
      values[f'{name}_entropy'] = dist.entropy()
      values[f'{name}_std'] = dist.stddev()
    values['divergence'] = cell.divergence_from_states(posterior, prior)
    return _scalars({k: tf.reduce_mean(v) for k, v in values.items()})


def prediction_summaries(
  dists: Mapping[str, Any], target: Mapping[str, tf.Tensor]
) -> list[tf.Tensor]:
  """Summarise the quality of predictions, with predicted images.

  Args:
    dists: Dict from name to distribution over [batch, time, ...].
    target: Dict from name to data [batch, time, ...].

  Returns:
    List of serialised summaries.
  """
  summaries = []
  with tf.variable_scope('dist_summaries'):
    for name, dist in dists.items():
      summaries += _dist_summaries(name, dist, target[name])
  if 'image' in dists:
    summaries += _image_summaries(dists['image'], target['image'])
  return summaries


def _dist_summaries(name, dist, target):
  mode, stddev = dist.mode(), dist.stddev()
  values = {
    'mode_mean': tf.reduce_mean(mode),
    'mode_std': tf.math.reduce_std(mode),
    'std_mean': tf.reduce_mean(stddev),
    'std_std': tf.math.reduce_std(stddev),
    'log_prob': tf.reduce_mean(dist.log_prob(target)),
    'abs_error': tf.reduce_mean(tf.abs(mode - target)),
  }
  return _scalars({f'{name}_{k}': v for k, v in values.items()})


def _scalars(values):
  return [tf.summary.scalar(k, v) for k, v in values.items()]


def _image_summaries(dist, target):
  image = show_channels(dist.mode()[:_MAX_BATCH])
  target = show_channels(target[:_MAX_BATCH])
  # Zero difference is gray; the first frame has no predecessor.
  change = tf.concat([image[:, :1], image[:, :-1]], 1)
  change = (image - change + 1) / 2
  error = (image - target + 1) / 2
  with tf.variable_scope('image'):
    return [
      image_strip_summary('prediction', image, gap=GAP),
      image_strip_summary('change', change, gap=GAP),
      image_strip_summary('error', error, gap=GAP),
      gif_summary('animation', _side_by_side(target, image), 1, 20),
    ]


def _side_by_side(target, image):
  """Join videos: target above prediction, sequences from left to right."""
  both = tf.concat([add_gaps(target), add_gaps(image)], 2)
  _, _, height, width, channels = both.shape.as_list()
  sizes = tf.shape(both)
  row = tf.transpose(both, [1, 2, 0, 3, 4])
  row = tf.reshape(
    row, tf.stack([1, sizes[1], height, sizes[0] * width, channels])
  )
  row = row[:, :, :-GAP, : sizes[0] * width - GAP]
  row.set_shape([1, None, height - GAP, None, channels])
  return row


def trajectory_summaries(
  dists: Mapping[str, Any], target: Mapping[str, tf.Tensor], context: int
) -> list[tf.Tensor]:
  """Plot predictions, targets and log-probabilities over time.

  Plots the first sequence of the batch, without images, and the first 20
  dimensions of each prediction.

  Args:
    dists: Dict from name to distribution over [batch, time, ...].
    target: Dict from name to data [batch, time, ...].
    context: Number of steps with observations.

  Returns:
    List of serialised summaries.
  """
  names = sorted(x for x in dists if x != 'image')
  labels = ('prediction', 'truth')
  with tf.name_scope('state'):
    summaries = []
    for name in names:
      lines = _lines(dists[name].mode()[0], target[name][0])[:_MAX_PANELS]
      count = lines.shape[0].value
      what = f'{name}, predicted and true'
      titles = tuple(f'{what}, {i + 1} of {count}' for i in range(count))
      titles = titles if count > 1 else (what,)
      name = f'{name}_trajectory'
      summaries.append(_plot_summary(name, lines, labels, context, titles))
    lines = tf.stack([dists[x].log_prob(target[x])[0] for x in names])[:, None]
    titles = tuple(f'log-probability of the true {x}' for x in names)
    summaries.append(_plot_summary('logprobs', lines, None, context, titles))
    return summaries


def _lines(*sequences):
  """Stack sequences [time, ...] to lines [dimensions, sequences, time]."""
  size = int(np.prod(sequences[0].shape.as_list()[1:]))
  flat = [tf.reshape(x, [-1, size]) for x in sequences]
  return tf.transpose(tf.stack(flat), [2, 0, 1])


def _plot_summary(name, lines, labels, context, titles):
  """Summarise panels of lines [panels, lines, time] as an image."""
  with tf.name_scope(name) as scope:
    tag = scope.rstrip('/')
    summary = tf.py_func(
      lambda values: _plot(tag, values, labels, context, titles),
      [lines],
      tf.string,
      stateful=False,
    )
    summary.set_shape(())
  return summary


def _plot(tag, lines, labels, context, titles):
  # Without pyplot, figures need no display and are freed immediately.
  from matplotlib.figure import Figure

  figure = Figure(figsize=(6, 3 * len(lines)), dpi=80)
  panels = figure.subplots(len(lines), 1, squeeze=False)[:, 0]
  for index, (panel, values) in enumerate(zip(panels, lines)):
    for line, label in zip(values, labels or [None] * len(values)):
      panel.plot(line, label=label)
    # Not in the original: mark where predictions no longer see observations.
    panel.axvline(context - 0.5, color='gray', linestyle=':')
    panel.set_xlabel('time step')
    panel.set_title(titles[index])
    if labels:
      panel.legend()
  figure.suptitle(
    f'First sequence of the batch: from step {context} on (dotted line),\n'
    'the model sees actions, but no observations'
  )
  figure.tight_layout()
  file_ = io.BytesIO()
  figure.savefig(file_, format='png')
  width, height = figure.canvas.get_width_height()
  image = tf.Summary.Image(
    height=height,
    width=width,
    colorspace=4,
    encoded_image_string=file_.getvalue(),
  )
  summary = tf.Summary(value=[tf.Summary.Value(tag=tag, image=image)])
  return summary.SerializeToString()

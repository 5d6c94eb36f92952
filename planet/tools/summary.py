"""Summaries of data, states and predictions for TensorBoard."""

import io
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from agents.envs.video import GAP
from agents.tools.tf1 import tf
from planet.tools.count_dataset import count_dataset
from planet.tools.gif_summary import gif_summary
from planet.tools.image_strip_summary import add_gaps, image_strip_summary
from planet.tools.show_channels import show_channels

_MAX_PANELS = 20


def timing_summaries(
  step: tf.Tensor, global_step: tf.Tensor
) -> list[tf.Tensor]:
  """Summarize the step and the speed since the last summary.

  Args:
    step: Integer tensor, number of examples within the phase.
    global_step: Integer tensor, number of examples over all phases, used to
      compute the speed.

  Returns:
    List of serialized summaries.
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


def dataset_summaries(directory: str, name: str = 'dataset') -> list[tf.Tensor]:
  """Summarize the number of episodes in a folder."""
  with tf.variable_scope(name):
    return _scalars({'episodes': count_dataset(directory)})


def objective_summaries(
  objectives: Sequence[Any], name: str = 'objectives'
) -> list[tf.Tensor]:
  """Summarize objectives, a list with `name` and scalar `value`."""
  with tf.variable_scope(name):
    return _scalars({x.name: x.value for x in objectives})


def data_summaries(
  data: Mapping[str, tf.Tensor],
  postprocess_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
  histograms: bool = False,
  name: str = 'data',
) -> list[tf.Tensor]:
  """Summarize images as a strip.

  Args:
    data: Dict of tensors [batch, time, ...], with `image`.
    postprocess_fn: Function from the images to those of range 0 to 1.
    histograms: Whether to add histograms of all other data.
    name: Name of the scope.

  Returns:
    List of serialized summaries.
  """
  others = [x for x in data if x != 'image'] if histograms else []
  images = data['image']
  if postprocess_fn:
    images = postprocess_fn(images)
  with tf.variable_scope(name):
    strip = image_strip_summary('image', images, gap=GAP)
    return [*(tf.summary.histogram(x, data[x]) for x in others), strip]


def state_summaries(
  cell: Any,
  prior: dict[str, tf.Tensor],
  posterior: dict[str, tf.Tensor],
  mask: tf.Tensor | None = None,
  histograms: bool = False,
  name: str = 'state',
) -> list[tf.Tensor]:
  """Summarize entropy, standard deviation and divergence of latent states.

  Args:
    cell: Model, see `planet.models.Base`.
    prior: Dict of tensors [batch, time, ...].
    posterior: Dict of tensors [batch, time, ...].
    mask: Bool tensor [batch, time], False for steps to leave out.
    histograms: Whether to add histograms of the entropies.
    name: Name of the scope.

  Returns:
    List of serialized summaries.
  """
  values, summaries = {}, []
  masks = () if mask is None else (mask,)
  with tf.variable_scope(name):
    for key, state in (('prior', prior), ('posterior', posterior)):
      dist = cell.dist_from_state(state, *masks)
      values[f'{key}_entropy'] = entropy = dist.entropy()
      values[f'{key}_std'] = dist.stddev()
      if histograms:
        summaries.append(tf.summary.histogram(f'{key}_entropy_hist', entropy))
    values['divergence'] = cell.divergence_from_states(posterior, prior, *masks)
    means = {k: tf.reduce_mean(v) for k, v in values.items()}
    return summaries + _scalars(means)


def dist_summaries(
  dists: Mapping[str, Any],
  obs: Mapping[str, tf.Tensor],
  mask: tf.Tensor | None = None,
  name: str = 'dist_summaries',
) -> list[tf.Tensor]:
  """Summarize the quality of predictions.

  Args:
    dists: Dict from name to distribution over [batch, time, ...].
    obs: Dict from name to data [batch, time, ...].
    mask: Unused, as in the original.
    name: Name of the scope.

  Returns:
    List of serialized summaries.
  """
  values: dict[str, tf.Tensor] = {}
  with tf.variable_scope(name):
    for key, dist in dists.items():
      mode, stddev = dist.mode(), dist.stddev()
      values[f'{key}_mode_mean'] = tf.reduce_mean(mode)
      values[f'{key}_mode_std'] = tf.math.reduce_std(mode)
      values[f'{key}_std_mean'] = tf.reduce_mean(stddev)
      values[f'{key}_std_std'] = tf.math.reduce_std(stddev)
      if key in obs:
        log_prob, error = dist.log_prob(obs[key]), tf.abs(mode - obs[key])
        values[f'{key}_log_prob'] = tf.reduce_mean(log_prob)
        values[f'{key}_abs_error'] = tf.reduce_mean(error)
    return _scalars(values)


def _scalars(values):
  return [tf.summary.scalar(k, v) for k, v in values.items()]


def image_summaries(
  dist: Any, target: tf.Tensor, name: str = 'image', max_batch: int = 10
) -> list[tf.Tensor]:
  """Summarize predicted images as strips and as an animation.

  Args:
    dist: Distribution over [batch, time, height, width, channels].
    target: Images of this shape.
    name: Name of the scope.
    max_batch: Maximum number of sequences.

  Returns:
    List of serialized summaries.
  """
  image = show_channels(dist.mode()[:max_batch])
  target = show_channels(target[:max_batch])
  # Zero difference is gray; the first frame has no predecessor.
  change = tf.concat([image[:, :1], image[:, :-1]], 1)
  change = (image - change + 1) / 2
  error = (image - target + 1) / 2
  with tf.variable_scope(name):
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


def prediction_summaries(
  dists: Mapping[str, Any],
  data: Mapping[str, tf.Tensor],
  state: Any = None,
  name: str = 'state',
  context: int | None = None,
) -> list[tf.Tensor]:
  """Plot predictions, targets and log-probabilities over time.

  Plots the first sequence of the batch, without images, and the first 20
  dimensions of each prediction.

  Args:
    dists: Dict from name to distribution over [batch, time, ...].
    data: Dict from name to data [batch, time, ...].
    state: Unused, as in the original.
    name: Name of the scope.
    context: Number of steps with observations, to mark in the plots.

  Returns:
    List of serialized summaries.
  """
  names = sorted(x for x in dists if x != 'image' and x in data)
  with tf.name_scope(name):
    summaries, log_probs, titles = [], [], []
    for key in names:
      lines = _lines(dists[key].mode()[0], data[key][0])[:_MAX_PANELS]
      count = lines.shape[0].value
      what = f'{key}, predicted and true'
      panels = [f'{what}, {i + 1} of {count}' for i in range(count)]
      panels = panels if count > 1 else [what]
      labels = [['prediction', 'truth']] * count
      lines = [tf.unstack(x) for x in tf.unstack(lines)]
      summaries.append(
        plot_summary(panels, lines, labels, f'{key}_trajectory', context)
      )
      log_probs.append([dists[key].log_prob(data[key])[0]])
      titles.append(f'log-probability of the true {key}')
    if names:
      none = [None] * len(names)
      summaries.append(
        plot_summary(titles, log_probs, none, 'logprobs', context)
      )
    return summaries


def _lines(*sequences):
  """Stack sequences [time, ...] to lines [dimensions, sequences, time]."""
  size = int(np.prod(sequences[0].shape.as_list()[1:]))
  flat = [tf.reshape(x, [-1, size]) for x in sequences]
  return tf.transpose(tf.stack(flat), [2, 0, 1])


def plot_summary(
  titles: Sequence[str],
  lines: Sequence[Sequence[tf.Tensor]],
  labels: Sequence[Sequence[str | None] | None],
  name: str,
  context: int | None = None,
) -> tf.Tensor:
  """Plot lines in panels below each other.

  Args:
    titles: List of the titles of the panels.
    lines: For each panel, a list of tensors [time].
    labels: For each panel, a list of the names of its lines, or None.
    name: Name of the summary.
    context: Number of steps with observations, to mark in the plots.

  Returns:
    Serialized summary of an image.
  """
  with tf.name_scope(name) as scope:
    tag = scope.rstrip('/')
    ends = [0, *np.cumsum([len(x) for x in lines])]
    summary = tf.py_func(
      lambda *flat: _plot(
        tag,
        [flat[a:b] for a, b in zip(ends, ends[1:])],
        labels,
        context,
        titles,
      ),
      list(itertools.chain(*lines)),
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
    names = labels[index] or [None] * len(values)
    for line, label in zip(values, names):
      panel.plot(line, label=label)
    # Not in the original: mark where predictions no longer see observations.
    if context is not None:
      panel.axvline(context - 0.5, color='gray', linestyle=':')
    panel.set_xlabel('time step')
    panel.set_title(titles[index])
    if any(names):
      panel.legend()
  if context is not None:
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

"""Summaries of states, predictions and trajectories."""

import io

import numpy as np
from PIL import Image
from tensorflow_probability import distributions as tfd

from agents.envs.video import GAP
from agents.tools.tf1 import tf
from planet import models
from planet.tools import summary as summary_lib
from planet.training import utility
from tests import graphs

BATCH, TIME, SIZE = 12, 5, 4


def _size(count):
  """Pixels of some frames with gaps between them."""
  return count * (SIZE + GAP) - GAP


STRIP = _size(TIME), _size(10)


def evaluate(summaries):
  """Dict from tag to summary value."""
  merged = graphs.evaluate(tf.summary.merge(summaries))
  return {x.tag: x for x in tf.Summary.FromString(merged).value}


def scalars(summaries):
  values = evaluate(summaries)
  return {tag.split('/')[-1]: x.simple_value for tag, x in values.items()}


def decode(value):
  picture = Image.open(io.BytesIO(value.image.encoded_image_string))
  assert picture.size == (value.image.width, value.image.height)
  return picture


def make_predictions():
  """Distributions of images and rewards, and what they should predict."""
  random = np.random.RandomState(0)
  image = random.uniform(size=(BATCH, TIME, SIZE, SIZE, 3)).astype(np.float32)
  reward = random.normal(size=(BATCH, TIME)).astype(np.float32)
  dists = dict(
    image=tfd.Independent(tfd.Normal(tf.constant(image / 2), 1.0), 3),
    reward=tfd.Normal(tf.constant(reward + 2), 1.0),
  )
  return dists, dict(image=tf.constant(image), reward=tf.constant(reward))


def test_trajectory_plots():
  """A plot for each head but the image, one panel per dimension.

  All of them show the first sequence only.
  """
  dists, target = make_predictions()
  position = tf.ones((BATCH, TIME, 2))
  dists['position'] = tfd.Independent(tfd.Normal(position, 1.0), 1)
  target['position'] = 2 * position
  values = evaluate(summary_lib.prediction_summaries(dists, target, context=2))
  assert sorted(values) == [
    'state/logprobs',
    'state/position_trajectory',
    'state/reward_trajectory',
  ]
  pictures = {k.split('/')[1]: decode(x) for k, x in values.items()}
  assert pictures['reward_trajectory'].format == 'PNG'
  width, height = pictures['reward_trajectory'].size
  for name in ('position_trajectory', 'logprobs'):
    assert pictures[name].size == (width, 2 * height)
  # Something is drawn in each panel, in more colors than the axes have.
  for index in range(2):
    box = (0, height * index, width, height * (index + 1))
    panel = pictures['position_trajectory'].crop(box)
    assert len(panel.convert('RGB').getcolors(1 << 16)) > 20


def test_lines_of_trajectory_plots(monkeypatch):
  """Numbers of the first sequence, prediction before truth."""
  drawn = {}

  def plot(tag, lines, labels, context, titles):
    drawn[tag.split('/')[-1]] = (np.array(lines), labels, titles)
    return b''

  monkeypatch.setattr(summary_lib, '_plot', plot)
  dists, target = make_predictions()
  graphs.evaluate(summary_lib.prediction_summaries(dists, target, context=2))
  reward = graphs.evaluate(target['reward'])[0]
  lines, labels, titles = drawn['reward_trajectory']
  np.testing.assert_allclose(lines, [[reward + 2, reward]], 1e-5)
  assert (labels, titles) == (
    [['prediction', 'truth']],
    ['reward, predicted and true'],
  )
  lines, labels, titles = drawn['logprobs']
  log_prob = -2 - np.log(2 * np.pi) / 2
  np.testing.assert_allclose(lines, np.full((1, 1, TIME), log_prob), 1e-4)
  assert (labels, titles) == ([None], ['log-probability of the true reward'])


def test_trajectories_of_many_dimensions(monkeypatch):
  """More than 20 panels would take long to draw."""
  shapes = []

  def plot(tag, lines, *unused):
    shapes.append(np.shape(lines))
    return b''

  monkeypatch.setattr(summary_lib, '_plot', plot)
  state = tf.ones((BATCH, TIME, 348))
  dists = {'state': tfd.Independent(tfd.Normal(state, 1.0), 1)}
  graphs.evaluate(summary_lib.prediction_summaries(dists, {'state': state}))
  assert sorted(shapes) == [(1, 1, TIME), (20, 2, TIME)]


def test_prediction_pictures():
  """Ten sequences with all steps; the animation has targets on top."""
  dists, target = make_predictions()
  values = evaluate(
    summary_lib.image_summaries(dists['image'], target['image'])
  )
  pictures = {
    tag.split('/')[1]: decode(x)
    for tag, x in values.items()
    if x.HasField('image')
  }
  assert {k: x.size for k, x in pictures.items()} == dict(
    prediction=STRIP,
    change=STRIP,
    error=STRIP,
    animation=(_size(10), _size(2)),
  )
  # Nothing has changed before the first frame, which is plain gray.
  change = np.asarray(pictures['change'])
  change = change[np.arange(len(change)) % (SIZE + GAP) < SIZE]
  assert change[:, :SIZE].std() == 0 and change[:, SIZE:].std() > 10
  animation = decode(values['image/animation/gif'])
  assert animation.n_frames == TIME
  frame = np.asarray(animation.convert('RGB')).astype(float)
  upper, lower = frame[:SIZE], frame[SIZE + GAP :]
  # White between the sequences, and between target and prediction.
  between = np.arange(_size(10)) % (SIZE + GAP) >= SIZE
  assert (upper[:, between] == 255).all() and not (upper == 255).all()
  assert (frame[SIZE : SIZE + GAP] == 255).all()
  upper, lower = upper[:, ~between], lower[:, ~between]
  # Few pixels are far off in the palette of 256 colors.
  assert (np.abs(lower - upper / 2) > 25).mean() < 0.01


def test_data_picture():
  """Ten sequences of a batch."""
  _, target = make_predictions()
  (value,) = evaluate(summary_lib.data_summaries(target)).values()
  assert decode(value).size == STRIP


def test_prediction_numbers():
  """Log-probability and error of rewards that are off by two."""
  dists, target = make_predictions()
  values = scalars(summary_lib.dist_summaries(dists, target))
  np.testing.assert_allclose(values['reward_abs_error'], 2, 1e-5)
  log_prob = -2 - np.log(2 * np.pi) / 2
  np.testing.assert_allclose(values['reward_log_prob'], log_prob, 1e-5)
  assert values['reward_std_mean'] == 1 and values['reward_std_std'] == 0


def test_state_numbers():
  """Entropies, deviations and divergence of two normal distributions."""
  shape = (BATCH, TIME, SIZE)
  prior = dict(mean=tf.zeros(shape), stddev=tf.fill(shape, 2.0))
  posterior = dict(mean=tf.ones(shape), stddev=tf.ones(shape))
  cell = models.SSM(SIZE, 3)
  values = scalars(summary_lib.state_summaries(cell, prior, posterior))
  entropy = SIZE * np.log(2 * np.pi * np.e) / 2
  divergence = SIZE * (np.log(2) + (1 + 1) / 8 - 0.5)
  expected = dict(
    prior_entropy=entropy + SIZE * np.log(2),
    prior_std=2,
    posterior_entropy=entropy,
    posterior_std=1,
    divergence=divergence,
  )
  assert sorted(values) == sorted(expected)
  for key, value in expected.items():
    np.testing.assert_allclose(values[key], value, 1e-5, err_msg=key)


def test_timing():
  """The step in the phase, and the speed over all phases, 0 at first."""
  step = tf.placeholder(tf.int32, ())
  global_step = tf.placeholder(tf.int64, ())
  summary = tf.summary.merge(summary_lib.timing_summaries(step, global_step))
  with graphs.session() as sess:
    rows = []
    for values in ((5, 10), (2, 30)):
      feed = dict(zip((step, global_step), values))
      proto = tf.Summary.FromString(sess.run(summary, feed))
      rows.append({x.tag: x.simple_value for x in proto.value})
  assert rows[0] == dict(step=5, steps_per_second=0, seconds_per_step=0)
  assert rows[1]['step'] == 2 and rows[1]['steps_per_second'] > 0
  product = rows[1]['steps_per_second'] * rows[1]['seconds_per_step']
  np.testing.assert_allclose(product, 1, 1e-4)


def test_arguments_of_the_original(tmp_path):
  """By their positions, as in copies of its `define_summaries`."""
  dists, data = make_predictions()
  shape = (BATCH, TIME, SIZE)
  state = dict(mean=tf.zeros(shape), stddev=tf.fill(shape, 2.0))
  mask = tf.concat(
    [tf.zeros((BATCH, 1), bool), tf.ones((BATCH, TIME - 1), bool)], 1
  )
  objective = utility.Objective('reward', tf.constant(3.0), max, None, None)
  cell = models.SSM(SIZE, 3)
  values = evaluate(
    [
      *summary_lib.data_summaries(data, lambda x: x / 2, True),
      *summary_lib.dataset_summaries(str(tmp_path)),
      *summary_lib.objective_summaries([objective]),
      *summary_lib.state_summaries(cell, state, state, mask, True, 'own'),
      *summary_lib.dist_summaries(dists, {}, mask),
      *summary_lib.image_summaries(dists['image'], data['image'], max_batch=2),
      *summary_lib.prediction_summaries(dists, data, state),
      summary_lib.plot_summary(
        ['a'], [[tf.range(2), tf.range(3)]], [['b', 'c']], 'plot'
      ),
    ]
  )
  assert values['dataset/episodes'].simple_value == 0
  assert values['objectives/reward'].simple_value == 3
  # Masked steps have a deviation of 1.
  std = 2 - 1 / TIME
  np.testing.assert_allclose(values['own/prior_std'].simple_value, std)
  assert {'data/reward', 'own/prior_entropy_hist', 'plot'} < set(values)
  assert 'dist_summaries/reward_log_prob' not in values

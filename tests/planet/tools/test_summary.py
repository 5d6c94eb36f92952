"""Summaries of states, predictions and trajectories."""

import io

import numpy as np
from PIL import Image
from tensorflow_probability import distributions as tfd

from agents.tools.tf1 import tf
from planet import models
from planet.tools import summary as summary_lib
from tests import graphs

BATCH, TIME, SIZE = 8, 5, 4


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
  """Pictures of 3 panels for rewards and of 1 for each log-probability."""
  dists, target = make_predictions()
  values = evaluate(summary_lib.trajectory_summaries(dists, target, context=2))
  assert sorted(values) == ['state/logprobs', 'state/reward_trajectory']
  rewards = decode(values['state/reward_trajectory'])
  assert rewards.format == 'PNG' and rewards.size == (3 * 320, 240)
  assert decode(values['state/logprobs']).size == (2 * 320, 240)
  # Something is drawn in each panel, in more colours than the axes have.
  for index in range(3):
    panel = rewards.crop((320 * index, 0, 320 * (index + 1), 240))
    assert len(panel.convert('RGB').getcolors(1 << 16)) > 20


def test_prediction_pictures():
  """Strips of six sequences; the animation shows target over prediction."""
  dists, target = make_predictions()
  values = evaluate(summary_lib.prediction_summaries(dists, target))
  sizes = {
    tag.split('/')[1]: decode(x).size
    for tag, x in values.items()
    if x.HasField('image')
  }
  assert sizes == dict(
    prediction=(TIME * SIZE, 6 * SIZE),
    change=((TIME - 1) * SIZE, 6 * SIZE),
    error=(TIME * SIZE, 6 * SIZE),
    animation=(6 * SIZE, 2 * SIZE),
  )
  animation = decode(values['image/animation/gif'])
  assert animation.n_frames == TIME
  frame = np.asarray(animation.convert('RGB')).astype(float)
  upper, lower = frame[:SIZE], frame[SIZE:]
  np.testing.assert_allclose(lower, upper / 2, atol=25)


def test_prediction_numbers():
  """Log-probability and error of rewards that are off by two."""
  dists, target = make_predictions()
  values = scalars(summary_lib.prediction_summaries(dists, target))
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
  """Nothing to divide by at first, then steps per second."""
  step = tf.placeholder(tf.int64, ())
  summary = tf.summary.merge(summary_lib.timing_summaries(step))
  with graphs.session() as sess:
    rows = []
    for value in (10, 30):
      proto = tf.Summary.FromString(sess.run(summary, {step: value}))
      rows.append({x.tag: x.simple_value for x in proto.value})
  assert rows[0] == dict(step=10, steps_per_second=0, seconds_per_step=0)
  assert rows[1]['step'] == 30 and rows[1]['steps_per_second'] > 0
  product = rows[1]['steps_per_second'] * rows[1]['seconds_per_step']
  np.testing.assert_allclose(product, 1, 1e-4)

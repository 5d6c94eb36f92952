"""Strips and animations that can be decoded."""

import io

import numpy as np
import pytest
from PIL import Image

from agents.envs import video
from agents.tools.tf1 import tf
from planet.tools.gif_summary import gif_summary
from planet.tools.image_strip_summary import image_strip_summary
from tests import golden, graphs


def evaluate(summary):
  """List of tags, image fields and decoded pictures of a summary."""
  summary = tf.Summary.FromString(graphs.evaluate(summary))
  return [
    (x.tag, x.image, Image.open(io.BytesIO(x.image.encoded_image_string)))
    for x in summary.value
  ]


recorded_strips = pytest.mark.parametrize(
  'key, name, sizes, output',
  [
    ('float', 'x', {}, 'float'),
    ('uint8', 'y', dict(max_length=2, max_batch=1), 'uint8_maxlen2_maxbatch1'),
  ],
)


def define_strip(key, name, sizes):
  images = tf.constant(golden.load('planet/image_strip')['in/' + key])
  return image_strip_summary(name, images, **sizes)


@recorded_strips
def test_recorded_strips(key, name, sizes, output):
  """`planet/image_strip`: decoded pixels, exactly."""
  ((_, image, picture),) = evaluate(define_strip(key, name, sizes))
  expected = golden.load('planet/image_strip')[f'out/{output}/pixels']
  np.testing.assert_array_equal(np.asarray(picture), expected)
  assert (image.height, image.width) == expected.shape[:2]


@recorded_strips
def test_recorded_tags(key, name, sizes, output):
  """`planet/image_strip`: tags, such as `x/image/0`."""
  ((tag, _, _),) = evaluate(define_strip(key, name, sizes))
  assert tag == golden.load('planet/image_strip')[f'out/{output}/tag']


def test_strips_without_a_limit():
  """All sequences and steps, as in the original."""
  images = tf.zeros([12, 101, 2, 3, 3])
  ((_, image, _),) = evaluate(
    image_strip_summary('x', images, max_length=0, max_batch=0)
  )
  assert (image.height, image.width) == (12 * 2, 101 * 3)


@pytest.mark.parametrize('channels', [1, 2, 3, 6])
def test_channels_are_shown_side_by_side(channels):
  """Three at a time are colors, six two pictures, others gray ones."""
  images = np.random.default_rng(0).integers(0, 255, [2, 3, 4, 5, channels])
  images = images.astype(np.uint8)
  ((_, strip, picture),) = evaluate(
    image_strip_summary('x', tf.constant(images))
  )
  ((_, animation, _),) = evaluate(gif_summary('x', tf.constant(images), 1, 20))
  pictures = {1: 1, 2: 2, 3: 1, 6: 2}[channels]
  assert (strip.height, strip.width) == (2 * 4, 3 * 5 * pictures)
  assert (animation.height, animation.width) == (4, 5 * pictures)
  first = np.asarray(picture.convert('RGB'))[:4, : 5 * pictures]
  size = channels // pictures
  for index in range(pictures):
    expected = images[0, 0, ..., index * size : (index + 1) * size]
    shown = first[:, index * 5 : (index + 1) * 5]
    assert np.abs(shown.astype(int) - expected).max() <= 1
  same = video.to_rgb(images)[0, 0].astype(int) - first
  assert np.abs(same).max() <= 1


def test_strip_of_unknown_sizes():
  """Two sequences of three images [4, 5] make a strip [8, 15]."""
  images = tf.placeholder_with_default(
    tf.fill([2, 3, 4, 5, 3], 7.0), [None, None, 4, 5, 3]
  )
  ((_, _, picture),) = evaluate(image_strip_summary('x', images))
  assert np.asarray(picture).shape == (8, 15, 3)
  assert (np.asarray(picture) == 255).all()


@pytest.mark.parametrize('as_floats', [False, True])
def test_animation(as_floats):
  """Sizes, number, color and duration of the frames."""
  videos = np.zeros((2, 3, 4, 6, 3), np.uint8)
  videos[0, 1, :, 3:] = 255
  tensor = tf.constant(videos / np.float32(255) if as_floats else videos)
  summary = gif_summary('animation', tensor, 1, fps=20)
  ((tag, image, picture),) = evaluate(summary)
  assert tag == 'animation/gif'
  assert (image.height, image.width, image.colorspace) == (4, 6, 3)
  assert picture.format == 'GIF' and picture.size == (6, 4)
  assert picture.n_frames == 3 and picture.info['duration'] == 50
  for index, frame in enumerate(videos[0]):
    picture.seek(index)
    np.testing.assert_array_equal(np.asarray(picture.convert('RGB')), frame)


def test_several_animations():
  """Each has its number in its tag, and scopes come first."""
  videos = tf.zeros([3, 2, 4, 4, 3])
  with tf.name_scope('scope'):
    summary = gif_summary('a', videos, 2, 20, family='family')
  tags = [tag for tag, _, _ in evaluate(summary)]
  assert tags == ['scope/family/a/gif/0', 'scope/family/a/gif/1']
  assert summary in tf.get_collection(tf.GraphKeys.SUMMARIES)

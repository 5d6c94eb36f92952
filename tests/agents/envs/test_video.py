"""Sizes of frames, labels, contact sheets, and files."""

import contextlib
import os
import resource

import imageio.v3 as iio
import numpy as np
import pytest

from agents.envs import video
from agents.run import errors


@pytest.mark.parametrize(
  'shape, limits, expected',
  (
    ((64, 64), {}, (256, 256)),
    ((100, 80), {}, (320, 256)),
    ((500, 500), {}, (256, 256)),
    ((240, 320), {'largest': None}, (256, 341)),
    ((480, 640), {'largest': None}, (480, 640)),
  ),
)
def test_resize(shape, limits, expected):
  image = np.random.RandomState(0).randint(0, 255, (*shape, 3), np.uint8)
  assert video.resize(image, **limits).shape[:2] == expected


def test_pixels_are_enlarged_without_blur():
  image = np.random.RandomState(0).randint(0, 255, (64, 64, 3), np.uint8)
  expected = image.repeat(4, 0).repeat(4, 1)
  np.testing.assert_array_equal(video.resize(image), expected)


def test_captions_end_before_the_edge():
  """Letters are as large as fits, and none is cut off."""
  image = np.zeros((10, 256, 3), np.uint8)
  heights = []
  for text in ('step 1', 'episode 100  step 1000  return -1234567.8'):
    strip = video.caption(image, text)[10:]
    assert strip.shape == (24, 256, 3)
    bright = np.argwhere((strip > 100).any(-1))
    assert 100 * len(text) > len(bright) > 10 * len(text)
    assert bright[:, 1].max() < 253
    heights.append(np.ptp(bright[:, 0]))
  assert heights[0] > heights[1]


def test_contact_sheet():
  """Frames keep their size, the first and the last one among them."""
  frames = np.arange(100, dtype=np.uint8)[:, None, None, None]
  frames = frames * np.ones((1, 256, 256, 3), np.uint8)
  sheet = video.contact_sheet([frames, frames[:2]])
  assert sheet.shape == (2 * 258, 6 * 258, 3)
  assert sheet[0, ::258, 0].tolist() == [0, 20, 40, 59, 79, 99]
  assert sheet[258, ::258, 0].tolist() == [0, 0, 0, 1, 1, 1]
  assert (sheet[256:258] == 255).all()
  wide = np.zeros((5, 10, 900, 3), np.uint8)
  assert video.contact_sheet([wide]).shape == (12, 3 * 902, 3)


@pytest.mark.parametrize('ending', ['.mp4', '.gif'])
def test_videos_of_odd_sizes(ending, tmp_path):
  """Frames may come one by one; the encoder of .mp4 wants even sizes."""
  path = str(tmp_path / f'video{ending}')
  frames = (np.full((9, 21, 3), 60 * x, np.uint8) for x in range(4))
  video.write_video(path, frames, 20, scale=3)
  found = iio.imread(path)
  assert found.shape == (4, *((28, 64) if ending == '.mp4' else (27, 63)), 3)
  np.testing.assert_allclose(found.mean((1, 2, 3)), [0, 60, 120, 180], atol=3)


def test_full_disk(tmp_path):
  """No part of a video, and a sentence, whatever the encoder says."""
  frames = list(np.random.RandomState(0).randint(0, 255, (9, 99, 99, 3), 'u1'))
  for size in (0, 1000, 20000):
    with limited(size), pytest.raises(errors.Failure, match='Free some space'):
      video.write_video(str(tmp_path / 'a.mp4'), frames, 20)
    assert not os.listdir(tmp_path)


@contextlib.contextmanager
def limited(size):
  """Let no file become larger, as of the programs that are started."""
  before = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_folder(tmp_path):
  """Known before anything is encoded."""
  (tmp_path / 'file').touch()
  with pytest.raises(errors.UsageError, match='Cannot write to'):
    video.write_video(str(tmp_path / 'file' / 'a.mp4'), iter(()), 20)

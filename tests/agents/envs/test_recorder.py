"""When videos begin and end, and what is in them."""

import types

import numpy as np
import pytest
from PIL import Image

from agents.envs import recorder, spaces, video
from agents.run import errors
from baselines_her import vec_env
from tests import scripted_envs


@pytest.fixture
def written(monkeypatch):
  """List of path, frames and rate of the videos that would be written."""
  videos = []
  monkeypatch.setattr(video, 'write_video', lambda *args: videos.append(args))
  return videos


def test_recorder(written):
  """Large frames are reduced; memory that is drawn to again is copied."""
  image = np.zeros((600, 800, 3), np.uint8)
  camera = recorder.Recorder(lambda: image, 25, largest=300)
  camera.add()
  assert camera.finish() is None and not camera.recording
  camera.begin('one.mp4')
  image += 1
  camera.add()
  assert len(camera) == 2 and camera.finish() == 'one.mp4'
  camera.begin('two.mp4')
  camera.cancel()
  assert camera.finish() is None
  ((path, frames, fps),) = written
  assert (path, fps) == ('one.mp4', 25)
  assert np.shape(frames) == (2, 300, 400, 3)
  assert [x[0, 0, 0] for x in frames] == [0, 1]


def test_record_episodes(written):
  """Episodes that are reset early leave nothing, and later ones neither."""
  env = recorder.RecordEpisodes(
    scripted_envs.ScriptedEnv(2, [1, 2]), ['one.mp4', 'two.mp4']
  )
  infos = []
  for steps in (1, 2, 2):
    env.reset()
    infos += [env.step(np.zeros(1))[-1] for _ in range(steps)]
  ((path, frames, fps),) = written
  assert path == 'two.mp4'
  assert np.shape(frames) == (3, 256, 341, 3) and fps == 30
  episode = {'video': path, 'return': 3.0, 'length': 2}
  assert [x.get('episode') for x in infos] == [None] * 2 + [episode] + [
    None
  ] * 2


def test_rewards_that_are_no_numbers(written):
  """The return would be NaN, which JSON does not know."""
  env = recorder.RecordEpisodes(
    scripted_envs.ScriptedEnv(2, [1, np.nan]), ['one.mp4']
  )
  env.reset()
  env.step(np.zeros(1))
  with pytest.raises(errors.EnvError, match='NaN reward encountered in Scrip'):
    env.step(np.zeros(1))


@pytest.mark.parametrize(
  'image',
  [
    np.full((300, 300), 127, np.uint8),
    np.full((300, 300, 1), 127, np.uint8),
    np.full((300, 300, 4), 127, np.uint8),
    np.full((300, 300, 3), 0.5),
    np.full((300, 300, 3), 0.5, np.float16),
    np.full((300, 300, 3), 127),
    Image.fromarray(np.full((300, 300), 127, np.uint8)),
  ],
)
def test_images_of_all_kinds(written, monkeypatch, image):
  """As PlaNet learns from them, and of whatever size after the first one."""
  first = np.zeros((300, 400, 3), np.uint8)
  drawn = iter([first, image])
  env = scripted_envs.ScriptedEnv(1, [1])
  monkeypatch.setattr(env, 'render', lambda mode: next(drawn), raising=False)
  env = recorder.RecordEpisodes(env, ['one.mp4'])
  env.reset()
  env.step(np.zeros(1))
  ((_, (_, frame), _),) = written
  assert frame.shape == first.shape and frame.dtype == np.uint8
  assert (frame == 127).all()
  (seen,) = vec_env.DummyVecEnv([lambda: Drawing(image)]).get_images()
  assert seen.shape == (300, 300, 3) and (seen == 127).all()


class Drawing(scripted_envs.ScriptedEnv):
  """Renders an image."""

  def __init__(self, image):
    super().__init__()
    self.observation_space = spaces.dictionary({})
    self.spec = types.SimpleNamespace(id='Drawing-v0')
    self.image = image

  def render(self, mode):
    return self.image


def test_find_fps():
  env = scripted_envs.ScriptedEnv()
  assert recorder.find_fps(env) == 30
  env.metadata = {'video.frames_per_second': 50}
  assert recorder.find_fps(env) == 50

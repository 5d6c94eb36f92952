"""Files of what the camera sees."""

import imageio.v2 as imageio
import numpy as np
import pytest

from planet.envs.carla.env import CarlaEnv

pytest.importorskip('carla')

SMALL = {'map': 'loop', 'x_res': 32, 'y_res': 32, 'seed': 0}


@pytest.mark.parametrize('stack', [1, 2])
def test_images_are_logged(tmp_path, stack):
  """A file per step, with what the camera has seen."""
  env = CarlaEnv(
    SMALL
    | {'log_images': True, 'image_folder': str(tmp_path), 'framestack': stack}
  )
  expected = {}
  for episode in (1, 2):
    env.reset()
    for step in range(4):
      if step:
        env.step(np.float32([1, 0]))
      name = f'episode_{episode:05}_step_{step:05}.png'
      expected[name] = env.render()[..., -3:]
  env.close()
  (folder,) = tmp_path.iterdir()
  assert {x.name for x in folder.iterdir()} == set(expected)
  for name, image in expected.items():
    np.testing.assert_array_equal(imageio.imread(folder / name), image)


def test_images_become_videos(tmp_path):
  """One for each episode, instead of its images."""
  env = CarlaEnv(
    SMALL
    | {
      'log_images': True,
      'convert_images_to_video': True,
      'image_folder': str(tmp_path),
    }
  )
  for count in (3, 5):
    env.reset()
    for _ in range(count):
      env.step(np.float32([1, 0]))
  env.close()
  env.close()
  (folder,) = tmp_path.iterdir()
  names = sorted(x.name for x in folder.iterdir())
  assert names == ['episode_00001.mp4', 'episode_00002.mp4']
  assert len(imageio.mimread(folder / names[1])) == 6


def test_no_images_by_default(tmp_path, monkeypatch, caplog):
  monkeypatch.setenv('CARLA_OUT', str(tmp_path / 'out'))
  env = CarlaEnv(SMALL | {'convert_images_to_video': True})
  env.reset()
  env.close()
  assert not list(tmp_path.iterdir())
  assert 'convert_images_to_video' in caplog.text
  env = CarlaEnv(SMALL | {'log_images': True})
  env.reset()
  assert len(list((tmp_path / 'out').glob('*/*.png'))) == 1

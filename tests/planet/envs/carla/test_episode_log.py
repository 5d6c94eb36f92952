"""Files of what the camera sees, and of measurements."""

import json

import imageio.v2 as imageio
import numpy as np
import pytest

from agents.run import errors
from planet.envs.carla import backend
from planet.envs.carla.env import CarlaEnv
from tests.planet.envs.carla.recorded_world import RecordedBackend, frame

pytest.importorskip('carla')

SMALL = {'map': 'loop', 'x_res': 32, 'y_res': 32, 'seed': 0}


def test_images_are_logged(tmp_path):
  """A file per step, with what the camera has seen."""
  env = CarlaEnv(SMALL | {'log_images': True, 'log_folder': str(tmp_path)})
  expected = {}
  for episode in (1, 2):
    env.reset()
    for step in range(4):
      if step:
        env.step(np.float32([1, 0]))
      name = f'episode_{episode:05}_step_{step:05}.png'
      expected[name] = env.render()
  env.close()
  (folder,) = tmp_path.iterdir()
  assert {x.name for x in folder.iterdir()} == set(expected)
  for name, image in expected.items():
    np.testing.assert_array_equal(imageio.imread(folder / name), image)


def test_images_become_videos(tmp_path):
  """One for each episode, instead of its images."""
  env = CarlaEnv(
    SMALL | {'convert_images_to_video': True, 'log_folder': str(tmp_path)}
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


def test_no_images_by_default(tmp_path, monkeypatch):
  monkeypatch.setenv('CARLA_OUT', str(tmp_path / 'out'))
  env = CarlaEnv(SMALL)
  env.reset()
  env.close()
  assert not list(tmp_path.iterdir())
  env = CarlaEnv(SMALL | {'log_images': True})
  env.reset()
  assert len(list((tmp_path / 'out').glob('*/*.png'))) == 1


def read_lines(path):
  return [json.loads(x) for x in path.read_text().splitlines()]


def test_measurements_are_logged(tmp_path):
  """A line per step, which is there at once, in a file per episode."""
  env = CarlaEnv(SMALL | {'log_measurements': True, 'log_folder': tmp_path})
  expected = {}
  for episode in (1, 2):
    env.reset()
    steps = [env.measurements]
    for _ in range(3):
      steps.append(env.step(np.float32([1, 0]))[3])
      (folder,) = tmp_path.iterdir()
      path = folder / f'episode_{episode:05}.jsonl'
      assert len(read_lines(path)) == len(steps)
    expected[path.name] = steps
  env.close()
  assert {x.name for x in folder.iterdir()} == set(expected)
  for name, steps in expected.items():
    for line, now in zip(read_lines(folder / name), steps, strict=True):
      assert line.keys() == now.keys() and line['weather'] == now['weather']
      assert line['reward'] == now['reward'] and line['step'] == now['step']
      assert line['control'] == list(now['control'])


def test_failed_steps_are_logged(tmp_path):
  """With the reason, as the last line."""
  env = CarlaEnv(
    {'map': 'loop', 'log_measurements': True, 'log_folder': tmp_path},
    RecordedBackend([frame(0), frame(1), backend.BackendError('lost')]),
  )
  env.reset()
  for _ in range(3):
    env.step(np.float32([1, 0]))
  lines = read_lines(next(tmp_path.glob('*/*')))
  assert len(lines) == 3
  assert lines[-1] == {'episode_id': 1, 'step_error': 'lost'}


def test_log_folder_that_cannot_be_used(tmp_path):
  (tmp_path / 'file').touch()
  for kind in ('images', 'measurements'):
    with pytest.raises(errors.UsageError, match='file'):
      CarlaEnv(
        SMALL | {f'log_{kind}': True, 'log_folder': tmp_path / 'file' / 'x'}
      )


def test_videos_take_time_to_close():
  """Which the host of the environment grants."""
  seconds = [
    CarlaEnv(SMALL | {'log_images': True, 'convert_images_to_video': x})
    for x in (False, True)
  ]
  assert [x.seconds_to_close > 0 for x in seconds] == [False, True]


def test_two_cameras_are_logged_side_by_side(tmp_path):
  log = {'log_images': True, 'log_folder': str(tmp_path)}
  small = {'map': 'loop', 'x_res': 32, 'y_res': 32, 'seed': 0}
  env = CarlaEnv(small | log | {'use_sensor': 'use_2rgb'})
  env.reset()
  env.close()
  (file,) = tmp_path.glob('*/*.png')
  expected = np.concatenate(np.split(env.render(), 2, -1), 1)
  np.testing.assert_array_equal(imageio.imread(file), expected)

"""Trainings whose episodes are damaged, or cannot be read for the moment."""

import errno
import os

import pytest

from planet import control
from planet.envs import dummy_env
from planet.scripts import train
from planet.tools import numpy_episodes
from planet.tools.bind import bind

FLAGS = ['--config', 'debug', '--params']
PARAMS = (
  '{tasks: [dummy], image_size: 32, batch_shape: [2, 3], train_steps: 4, '
  'test_steps: 4, max_steps: 8, num_seed_episodes: 0, train_collects: [], '
  'test_collects: [], model_size: 8, num_layers: 1, isolate_envs: none}'
)


@pytest.fixture
def episodes(tmp_path):
  """Two episodes for training, and one for tests."""
  env_ctor = bind(dummy_env.make, 50, 20, image_size=32)
  run = tmp_path / '00001'
  for phase, amount in (('train', 2), ('test', 1)):
    control.random_episodes(env_ctor, amount, str(run / f'{phase}_episodes'))
  return sorted((run / 'train_episodes').iterdir())


def work(tmp_path):
  return train.run(['--logdir', str(tmp_path), *FLAGS, PARAMS])


def test_damaged_episode(episodes, tmp_path, capsys):
  """It is set aside with a sentence, and the training goes on."""
  content = bytearray(episodes[1].read_bytes())
  content[len(content) // 2] ^= 1
  episodes[1].write_bytes(content)
  assert work(tmp_path) == 0
  assert (tmp_path / '00001' / 'DONE').exists()
  assert f'{episodes[1].name} (' in capsys.readouterr().err
  names = [x.name for x in episodes]
  assert sorted(os.listdir(tmp_path / '00001' / 'train_episodes')) == [
    names[0],
    names[1] + '.damaged',
  ]


def test_disk_that_does_not_answer(episodes, tmp_path, capsys, monkeypatch):
  """Episodes keep their names, and the run goes on with the next command."""
  read = numpy_episodes.episode_reader

  def fail(filename):
    if filename == str(episodes[1]):
      raise OSError(errno.EIO, os.strerror(errno.EIO), filename)
    return read(filename)

  monkeypatch.setattr(numpy_episodes, 'episode_reader', fail)
  assert work(tmp_path) == 1
  last = capsys.readouterr().err.splitlines()[-1]
  assert last.startswith('Error: Input/output error')
  assert episodes[1].name in last
  assert all(x.exists() for x in episodes)
  names = os.listdir(tmp_path / '00001')
  assert 'DONE' not in names and 'FAIL' not in names

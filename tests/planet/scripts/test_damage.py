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
  'test_collects: [], model_size: 8, num_layers: 1, isolate_envs: none, '
  'planner_iterations: 1, planner_horizon: 2}'
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


@pytest.mark.slow
def test_damaged_episode(episodes, tmp_path, capsys):
  """It is set aside with a sentence, and the training goes on."""
  damage(episodes[1])
  assert work(tmp_path) == 0
  assert (tmp_path / '00001' / 'DONE').exists()
  assert f'{episodes[1].name} (' in capsys.readouterr().err
  names = [x.name for x in episodes]
  assert sorted(os.listdir(tmp_path / '00001' / 'train_episodes')) == [
    names[0],
    names[1] + '.damaged',
  ]


@pytest.mark.slow
def test_disk_that_does_not_answer(episodes, tmp_path, capsys, monkeypatch):
  """Episodes keep their names, and the run goes on with the next command."""
  read = numpy_episodes.episode_reader

  def fail(filename, **kwargs):
    if filename == str(episodes[1]):
      raise OSError(errno.EIO, os.strerror(errno.EIO), filename)
    return read(filename, **kwargs)

  monkeypatch.setattr(numpy_episodes, 'episode_reader', fail)
  assert work(tmp_path) == 1
  last = capsys.readouterr().err.splitlines()[-1]
  assert last.startswith('Error: Input/output error')
  assert episodes[1].name in last
  assert all(x.exists() for x in episodes)
  names = os.listdir(tmp_path / '00001')
  assert 'DONE' not in names and 'FAIL' not in names


def damage(path):
  """Change a byte in the middle, which leaves the headers as they are."""
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 1
  path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize('phase', ['train', 'test'])
def test_only_episode_is_damaged(phase, tmp_path, capsys):
  """What is missing is collected, with a sentence."""
  params = PARAMS.replace('num_seed_episodes: 0', 'num_seed_episodes: 1')
  flags = ['--logdir', str(tmp_path), *FLAGS]
  assert train.run([*flags, params]) == 0
  folder = tmp_path / '00001' / f'{phase}_episodes'
  (path,) = folder.iterdir()
  damage(path)
  capsys.readouterr()
  assert (
    train.run([*flags, params.replace('max_steps: 8', 'max_steps: 16')]) == 0
  )
  out, err = capsys.readouterr()
  assert f'Cannot use episode {path}' in err and 'Traceback' not in err
  assert f'Collecting 1 initial episodes ({phase}-dummy)' in out
  names = sorted(x.name for x in folder.iterdir())
  assert len(names) == 2 and f'{path.name}.damaged' in names


def test_only_episode_of_fixed_data_is_damaged(episodes, tmp_path, capsys):
  for path in episodes:
    damage(path)
  assert work(tmp_path) == 2
  last = capsys.readouterr().err.splitlines()[-1]
  assert 'There are no readable episodes in' in last

"""Checkpoints are plain data, whole or not there, and never run anything."""

import json
import os
import pathlib
import time

import numpy as np
import pytest

from agents.run import checkpoint, errors, stopping
from baselines_her import checkpoints, run
from tests.baselines_her import test_learn, toy


class Program:
  """Creates a file where it is unpickled."""

  def __init__(self, path):
    self._path = path

  def __reduce__(self):
    return pathlib.Path.touch, (self._path,)


@pytest.fixture
def learn(tmp_path, monkeypatch):
  """Function that trains in the folder of the test, with checkpoints."""
  toy.use_toy(monkeypatch, 10)

  def function(**kwargs):
    folder = str(tmp_path / 'checkpoints')
    return test_learn.learn(tmp_path, checkpoint_dir=folder, **kwargs)

  return function


def names(tmp_path):
  return sorted(set(os.listdir(tmp_path / 'checkpoints')) - {'params.json'})


def newest(tmp_path):
  return tmp_path / 'checkpoints' / names(tmp_path)[-1]


def test_plain_data(learn, tmp_path):
  """Anybody can read it without trusting it."""
  learn(total_timesteps=20)
  path = newest(tmp_path)
  files = {'rank0.json', 'rank0.npz', 'model.ckpt.index', 'COMPLETE'}
  assert files < set(os.listdir(path))
  content = json.loads((path / 'rank0.json').read_text())
  assert content['state']['epoch'] == 1 and content['num_envs'] == 1
  assert content['random']['numpy']['__tuple__'][0] == 'MT19937'
  with np.load(path / 'rank0.npz', allow_pickle=False) as arrays:
    shapes = [arrays[key].shape for key in arrays]
  assert (2, 10, 4) in shapes  # Two episodes in the replay.


def test_pickles_within_arrays(learn, tmp_path):
  """A file that somebody has exchanged is refused, not run."""
  learn(total_timesteps=20)
  program = np.array([Program(tmp_path / 'was_here')], object)
  np.savez(newest(tmp_path) / 'rank0.npz', **{'0': program})
  (newest(tmp_path) / 'COMPLETE').write_text('{}')
  with pytest.raises(errors.UsageError, match='is damaged'):
    learn(total_timesteps=40)
  assert not (tmp_path / 'was_here').exists()


def test_whole_or_not_at_all(learn, tmp_path, monkeypatch):
  """Dying while the next one is written leaves the last one as it was."""
  learn(total_timesteps=20)
  before = newest(tmp_path)

  def die(*unused):
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(os, 'rename', die)
    with pytest.raises(KeyboardInterrupt):
      learn(total_timesteps=40)
  assert list(checkpoint.list_folders(before.parent)) == [before.name]
  learn(total_timesteps=40)
  first, second = names(tmp_path)
  assert first == before.name and second > first


def test_same_number_of_updates(learn, tmp_path, monkeypatch):
  """One before and one after an evaluation; the newest two are kept."""
  listed, rename = [], os.rename

  def watch(old, new):
    listed.append(list(checkpoint.list_folders(tmp_path / 'checkpoints')))
    rename(old, new)

  monkeypatch.setattr(os, 'rename', watch)
  with monkeypatch.context() as patch:
    test_learn.interrupt_after(patch, 2)
    with pytest.raises(stopping.StopRequested):
      learn()
  assert names(tmp_path) == ['000000006']
  learn(total_timesteps=20)
  assert listed == [[], ['000000006']]
  assert names(tmp_path) == ['000000006', '000000006+']
  state = json.loads((newest(tmp_path) / 'rank0.json').read_text())
  assert state['state']['epoch'] == 1 and state['state']['cycle'] == 0


def test_without_a_log(tmp_path, monkeypatch):
  """Checkpoints alone are enough to continue, wherever logs go."""
  toy.use_toy(monkeypatch, 10)
  folder = str(tmp_path / 'checkpoints')
  for index, steps in enumerate([20, 40]):
    test_learn.learn(tmp_path / str(index), steps, checkpoint_dir=folder)
  first, second = names(tmp_path)
  assert first < second


def test_clock_that_is_set_back(learn, monkeypatch):
  """Checkpoints go on."""
  times, saved = iter(range(10**9, 0, -3600)), []
  save = checkpoint.Checkpoints.save

  def count(self, name, *args, **kwargs):
    saved.append(name)
    return save(self, name, *args, **kwargs)

  monkeypatch.setattr(checkpoint.Checkpoints, 'save', count)
  monkeypatch.setattr(checkpoints, '_TIME_SHARE', 1e9)
  monkeypatch.setattr(time, 'time', lambda: next(times))
  learn(total_timesteps=60, n_cycles=1)
  assert len(saved) >= 6


def read_newest(tmp_path):
  """Counters and arrays of the newest checkpoint."""
  path = newest(tmp_path)
  content = json.loads((path / 'rank0.json').read_text())
  with np.load(path / 'rank0.npz') as arrays:
    return content['state'], dict(arrays)


@pytest.mark.parametrize(
  'name',
  [pytest.param('rank0.npz', marks=pytest.mark.slow), 'model.ckpt.data'],
)
def test_truncated_checkpoint(learn, tmp_path, monkeypatch, name):
  """The one before is continued, says so, and leads to the same end."""
  for epochs in (1, 2, 3):
    learn(total_timesteps=20 * epochs)
  state, expected = read_newest(tmp_path)
  older, damaged = (tmp_path / 'checkpoints' / x for x in names(tmp_path))
  (file_,) = damaged.glob(f'{name}*')
  os.truncate(file_, file_.stat().st_size - 1)
  told = []
  monkeypatch.setattr(checkpoints.logger, 'warn', told.append)
  learn(total_timesteps=60)
  (sentence,) = [x for x in told if 'Checkpoint' in x]
  assert f'Checkpoint {damaged} is damaged ({file_.name} has' in sentence
  assert sentence.endswith(f'using {older}.')
  assert names(tmp_path) == [older.name, damaged.name + '+']
  again, found = read_newest(tmp_path)
  assert again == state and set(found) == set(expected)
  for key, value in expected.items():
    np.testing.assert_array_equal(found[key], value)


def test_nothing_but_damaged_checkpoints(learn, tmp_path, capsys):
  """The run is refused, and stays as it is, also by the command."""
  learn(total_timesteps=20)
  os.truncate(newest(tmp_path) / 'rank0.json', 5)
  with pytest.raises(errors.UsageError, match='rank0.json has 5 bytes'):
    learn(total_timesteps=40)
  before = sorted(tmp_path.rglob('*'))
  assert run.run(['program', f'--log_path={tmp_path}']) == 2
  assert 'All checkpoints are damaged' in capsys.readouterr().err
  assert sorted(tmp_path.rglob('*')) == before

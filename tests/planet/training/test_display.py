"""What users see of a run, and the count of episodes behind it."""

import io
import threading
import time

import numpy as np

from agents.run import log
from agents.tools import phases
from agents.tools.tf1 import tf
from planet.envs import collect_dataset
from planet.tools import AttrDict, episode_files
from planet.training import display, episode_folder


def write(folder, decisions, reward=1.0):
  """Record an episode of rewards only."""
  name = f'{len(list(folder.glob("*.npz"))):03}.npz'
  np.savez(folder / name, reward=np.full(decisions + 1, reward))


def test_environment_steps(tmp_path):
  """Episodes say how many simulator steps an action lasts."""
  for action_repeat in (4, 2, None):
    episode = {'reward': np.ones(11)}
    collect_dataset.write_episode(episode, str(tmp_path), action_repeat)
  episodes = episode_folder.EpisodeLog(str(tmp_path), 8)
  episodes.update()
  assert episodes.steps == 10 * (4 + 2 + 8)


def test_updates_wait_for_each_other(tmp_path, monkeypatch):
  """An update sees what another thread is still reading, and sees it once."""
  write(tmp_path, 5)
  reading, read = threading.Event(), episode_files.read

  def slow_read(*args):
    reading.set()
    time.sleep(0.2)
    return read(*args)

  monkeypatch.setattr(episode_files, 'read', slow_read)
  episodes = episode_folder.EpisodeLog(str(tmp_path))
  thread = threading.Thread(target=episodes.update)
  thread.start()
  assert reading.wait(5)
  episodes.update()
  assert episodes.returns == [6.0] and episodes.steps == 5
  thread.join()
  assert episodes.returns == [6.0] and episodes.steps == 5


def test_line_of_an_epoch(tmp_path):
  """Steps of driving are those of the world: 100 per episode."""
  config = AttrDict(
    train_dir=str(tmp_path / 'train_episodes'),
    test_dir=str(tmp_path / 'test_episodes'),
    max_steps=1000,
    batch_shape=[4, 5],
    train_steps=15,
    test_steps=5,
    tasks=[AttrDict(action_repeat=1)],
  )
  stream = io.StringIO()
  shown = display.Display(str(tmp_path), config, stream)
  (tmp_path / 'train_episodes').mkdir()
  write(tmp_path / 'train_episodes', 100, 0.5)
  for step, name in enumerate(4 * ['train'] + ['test']):
    phase = phases.Phase(name, 15, 4)
    shown.start_phase(phase, 0, 0, 4 * step)
    shown.step(phase, 4, 4 * step + 4)
  shown.score(None, 0, 20, 3.0)
  record = shown.record.take()
  assert record.pop('seconds') >= 0
  assert record == {
    'logdir': str(tmp_path),
    'epoch': 1,
    'environment_steps': 100,
    'episodes': 1,
    'updates': 4,
    'return': 50.5,
    'test_return': 3.0,
  }
  write(tmp_path / 'train_episodes', 100)
  summary = tf.Summary(
    value=[tf.Summary.Value(tag='graph/objectives/image', simple_value=-2)]
  )
  train = phases.Phase('train', 10, 1)
  shown.summary(train, 20, 30, summary.SerializeToString())
  shown.score(None, 1, 40, float('nan'))
  record = shown.record.take()
  assert record['loss/image'] == 2 and 'test_return' not in record
  shown.close()
  # Plain names over the steps of the world.
  events = [x[1:] for x in log.iterate_events(str(tmp_path / 'scalars'))]
  assert [x for x in events if 'second' not in x[1]] == [
    (100, 'time/episodes', 1),
    (100, 'return/train', 50.5),
    (100, 'return/test', 3.0),
    (100, 'time/updates', 4),
    (200, 'loss/image', 2.0),
    (200, 'time/episodes', 2),
    (200, 'return/train', 101.0),
    (200, 'time/updates', 4),
  ]
  assert (200, 'time/env_steps_per_second') in [x[:2] for x in events]
  told = stream.getvalue().splitlines(keepends=True)
  assert ''.join(x for x in told if 'train: 0/15' not in x) == (
    'Epoch 1: train return 50.5 (1 episodes), test return 3.0, '
    '100 environment steps.\n'
    'Epoch 2: train return 101.0 (1 episodes), test return no episode ended, '
    '200 environment steps.\n'
  )


def test_updates_of_earlier_settings_count(tmp_path):
  """And only metrics up to the checkpoint are kept."""
  config = AttrDict(
    train_dir=str(tmp_path),
    test_dir=str(tmp_path),
    max_steps=1000,
    batch_shape=[10, 5],
    train_steps=90,
    test_steps=10,
    tasks=[AttrDict(action_repeat=1)],
    first_step=120,
  )
  changes = [
    {'step': 40, 'train_steps': [15, 90], 'test_steps': [5, 10]},
    {'step': 80, 'seed': [1, 2]},
    {'step': 100, 'batch_shape': [[4, 5], [10, 5]]},
  ]
  metrics = log.MetricsWriter(str(tmp_path))
  for step in (100, 120, 140):
    metrics.write('train', step, step, {'a': 1}, 0)
  updates = []
  for source in ({}, {'changes': changes}):
    shown = display.Display(
      str(tmp_path), AttrDict(config, source=source), io.StringIO()
    )
    phase = phases.Phase('train', 90, 10)
    shown.start_phase(phase, 1, 20, 120)
    shown.step(phase, 10, 130)
    shown.score(None, 1, 130, 0.0)
    updates.append(shown.record.take()['updates'])
    shown.close()
  # In 0 to 39: 4 of 5; 40 to 99: those before 90; from 100 on: 2.
  assert updates == [9 + 2 + 1, 2 * 4 + 13 + 2 + 1]
  rows = log.read_metrics(str(tmp_path))
  assert [x['step'] for x in rows if x['phase'] == 'train'] == [100, 120]

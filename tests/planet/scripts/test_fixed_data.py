"""Training on episodes that exist, without playing any."""

import dataclasses
import os

import numpy as np
import pytest

from agents.run import errors, files
from agents.tools.tf1 import tf
from planet import control, trained
from planet.envs import collect_dataset, dummy_env
from planet.scripts import configs, train
from planet.tools.bind import bind
from planet.training import episode_folder
from tests.planet.scripts import test_experiments

PARAMS = {
  'image_size': 32,
  'train_collects': [],
  'test_collects': [],
  'num_seed_episodes': 0,
  'max_steps': 20,
}


def write_checkpoint(folder):
  step = tf.train.create_global_step()
  with tf.Session() as sess:
    sess.run(step.initializer)
    tf.train.Saver([step]).save(sess, str(folder / 'model.ckpt'), 5)


def test_evaluation_plays_nevertheless(tmp_path):
  """The run says how to play, though it did not play itself."""
  files.write_yaml(
    str(tmp_path / 'config.yaml'),
    {'version': 1, 'config': 'debug', 'params': {'tasks': ['dummy'], **PARAMS}},
  )
  write_checkpoint(tmp_path)
  _, config, shapes = trained.restore(
    str(tmp_path), params={'planner_horizon': 3}
  )
  assert shapes['image'] == (32, 32, 3)
  assert config.test_collects.test_main_dummy.horizon == 3


def test_evaluation_of_another_environment(tmp_path):
  """What it was trained on is compared, such as recorded gray images."""
  params = {'tasks': ['dummy'], **PARAMS}
  stored = {'version': 1, 'config': 'debug', 'params': params}
  stored['shapes'] = {'action': [5], 'reward': [], 'image': [32, 32, 1]}
  files.write_yaml(str(tmp_path / 'config.yaml'), stored)
  write_checkpoint(tmp_path)
  message = r'trained with image of shape \[32, 32, 1\], but now it has'
  with pytest.raises(errors.UsageError, match=message):
    trained.restore(str(tmp_path))


def process(folder, **changes):
  """Train in this process; returns what is shown of all epochs."""
  args = test_experiments.make_args(folder)
  params = {**args.params, **PARAMS, **changes}
  args = dataclasses.replace(args, params=params)
  return list(train.process(str(folder), args))


@pytest.mark.slow
def test_training_without_playing(tmp_path, capsys):
  """No episode is added, no score is made up, and the model is saved."""
  env_ctor = bind(dummy_env.make, 50, 20, image_size=32)
  for phase in ('train', 'test'):
    control.random_episodes(env_ctor, 1, str(tmp_path / f'{phase}_episodes'))
  epochs = process(tmp_path)
  assert epochs and not any('test_return' in x for x in epochs)
  assert 'test return no episode ended' in capsys.readouterr().err
  for phase in ('train', 'test'):
    assert len(os.listdir(tmp_path / f'{phase}_episodes')) == 1
  assert (tmp_path / 'model.ckpt-20.index').exists()


def test_only_what_is_used_is_read(tmp_path):
  """Episodes with more, such as those of earlier versions, still suit."""
  params = {'tasks': ['gym_Pendulum-v1'], 'logdir': str(tmp_path)}
  config = configs.make('debug', params)
  assert config.recorded_keys == ['action', 'reward', 'image']
  full = configs.make('debug', {**params, 'state_diagnostics': True})
  assert full.recorded_keys == ['action', 'reward', 'image', 'state']
  vector = configs.make('debug', {**params, 'observations': 'vector'})
  assert vector.recorded_keys == ['action', 'reward', 'state']
  episode = {
    'action': np.zeros((11, 1), np.float32),
    'reward': np.zeros(11),
    'image': np.zeros((11, 64, 64, 3), np.uint8),
    'state': np.zeros((11, 210, 160, 3), np.uint8),
  }
  path = collect_dataset.write_episode(episode, str(tmp_path))
  assert sorted(config.data_reader(path)) == sorted(
    [*config.recorded_keys, 'return']
  )
  shapes = {'image': (64, 64, 3), 'reward': (), 'action': (1,)}
  episode_folder.check(str(tmp_path), shapes)
  with pytest.raises(errors.UsageError, match='do not fit this task'):
    episode_folder.check(str(tmp_path), {**shapes, 'state': (3,)})


def record(folder, name, **changes):
  """Write an episode of one's own."""
  folder.mkdir(exist_ok=True)
  rng = np.random.RandomState(0)
  episode = {
    'action': rng.uniform(-1, 1, (21, 2)),
    'reward': np.ones(21),
    'image': rng.randint(0, 256, (21, 32, 32, 3)).astype(np.uint8),
  }
  episode = {**episode, **changes}
  np.savez(
    folder / f'{name}.npz',
    **{x: y for x, y in episode.items() if y is not None},
  )


def offline(folder, recorded, **changes):
  return process(
    folder,
    tasks=['gym_nowhere:Such-v0'],
    train_episodes=str(recorded),
    **changes,
  )


# What others store beside: texts, numbers without a time, other lengths.
OTHER = {'env_id': 'Such-v0', 'seed': 3, 'info': np.array([{}]), 'low': [1, 2]}


def test_other_arrays_from_elsewhere(tmp_path, caplog):
  """Ignored by the check, the reader and the count."""
  record(tmp_path, 'a', action=np.zeros((21, 2)), **OTHER)
  shapes = episode_folder.find_shapes(str(tmp_path), ['action', 'image'], 32)
  episode_folder.check(str(tmp_path), {**shapes, 'reward': ()}, rename=False)
  log = episode_folder.EpisodeLog(str(tmp_path))
  assert log.count_steps() == 20 and not caplog.records


def test_first_action(tmp_path, caplog):
  """Pointed out where it is not zero, as where actions follow observations."""
  shapes = {'image': (32, 32, 3), 'action': (2,), 'reward': ()}
  record(tmp_path, 'a', action=np.zeros((21, 2)), is_first=np.arange(21) == 0)
  episode_folder.check(str(tmp_path), shapes, rename=False)
  assert not caplog.records
  record(tmp_path, 'b')
  episode_folder.check(str(tmp_path), shapes, rename=False)
  assert 'not zero in 1 of the episodes in' in caplog.text
  assert 'such as b.npz' in caplog.text


@pytest.mark.slow
def test_episodes_from_elsewhere(tmp_path):
  """No environment exists; nothing is written beside the files."""
  recorded = tmp_path / 'recorded'
  record(recorded, 'a', note=np.zeros((21, 3)), **OTHER)
  record(recorded, 'b')
  before = sorted(os.listdir(recorded))
  assert offline(tmp_path / 'run', recorded, train_collects=[{}])
  assert sorted(os.listdir(recorded)) == before
  assert (tmp_path / 'run' / 'model.ckpt-20.index').exists()
  assert not (tmp_path / 'run' / 'train_episodes').exists()


WRONG = {
  'nan': (dict(reward=np.full(21, np.nan)), 'b.npz: reward is nan at step 0'),
  'length': (dict(reward=np.ones(20)), 'b.npz: its arrays differ in length'),
  'keys': (dict(action=None), 'b.npz: it has no action'),
  'dtype': (dict(image=np.zeros((21, 32, 32, 3))), 'b.npz: .*float64 instead'),
  'size': (dict(action=np.zeros((21, 3))), r'b.npz: .*action \[3\] instead'),
  'several': (
    dict(is_first=np.arange(21) % 12 == 0),
    'b.npz: is_first is true at step 12',
  ),
  'action': (dict(action=np.full((21, 2), 2)), 'b.npz: action is 2 at step 0'),
  'short': (
    dict(
      action=np.zeros((4, 2)),
      reward=np.zeros(4),
      image=np.zeros((4, 32, 32, 3), np.uint8),
    ),
    'b.npz: it has 4 observations',
  ),
}


@pytest.mark.parametrize('name', WRONG)
def test_wrong_episodes_from_elsewhere(name, tmp_path):
  """Named before the training, and left as they are."""
  recorded = tmp_path / 'recorded'
  record(recorded, 'a')
  changes, message = WRONG[name]
  record(recorded, 'b', **changes)
  with pytest.raises(errors.UsageError, match=message):
    offline(tmp_path / 'run', recorded)
  assert sorted(os.listdir(recorded)) == ['a.npz', 'b.npz']


@pytest.mark.parametrize('key', ['action', 'state'])
@pytest.mark.parametrize('shape', [(), (4, 2)])
def test_vectors_from_elsewhere(key, shape, tmp_path):
  """Numbers and matrices are refused before the training."""
  changes = {'state': np.zeros((21, 4)), key: np.ones((21, *shape))}
  record(tmp_path, 'a', **changes)
  with pytest.raises(errors.UsageError, match=f'a.npz, {key} has shape .* vec'):
    episode_folder.find_shapes(str(tmp_path), ['action', 'state'], 32)


def test_nothing_from_elsewhere(tmp_path):
  with pytest.raises(errors.UsageError, match='no episodes .*offline.md'):
    offline(tmp_path / 'run', tmp_path / 'recorded')
  record(tmp_path / 'recorded', 'a')
  with pytest.raises(errors.UsageError, match='or change image_size'):
    offline(tmp_path / 'run', tmp_path / 'recorded', image_size=64)


def test_refused_episodes_change_no_run(tmp_path):
  """Of another shape than the run was trained with."""
  run = tmp_path / 'run'
  run.mkdir()
  record(tmp_path / 'recorded', 'a', action=np.zeros((21, 3)))
  values = {
    **PARAMS,
    'tasks': ['gym_nowhere:Such-v0'],
    'train_episodes': str(tmp_path / 'before'),
  }
  stored = {'version': 1, 'config': 'debug', 'params': values}
  stored['shapes'] = {'action': [2], 'reward': [], 'image': [32, 32, 3]}
  files.write_yaml(str(run / 'config.yaml'), stored)
  write_checkpoint(run)
  before = {x: x.read_bytes() for x in run.iterdir()}
  message = r'trained with action of shape \[2\], but now it has \[3\]'
  with pytest.raises(errors.UsageError, match=message):
    offline(run, tmp_path / 'recorded')
  assert {x: x.read_bytes() for x in run.iterdir()} == before

"""Training on episodes that exist, without playing any."""

import os

from agents.run import files
from agents.tools.tf1 import tf
from planet import control, trained
from planet.envs import dummy_env
from planet.scripts import train
from planet.tools.bind import bind
from tests.planet.scripts import test_experiments

PARAMS = {
  'image_size': 32,
  'train_collects': [],
  'test_collects': [],
  'num_seed_episodes': 0,
  'max_steps': 20,
}


def test_evaluation_plays_nevertheless(tmp_path):
  """The run says how to play, though it did not play itself."""
  files.write_yaml(
    str(tmp_path / 'config.yaml'),
    {'version': 1, 'config': 'debug', 'params': {'tasks': ['dummy'], **PARAMS}},
  )
  step = tf.train.create_global_step()
  with tf.Session() as sess:
    sess.run(step.initializer)
    tf.train.Saver([step]).save(sess, str(tmp_path / 'model.ckpt'), 5)
  _, config, shapes = trained.restore(
    str(tmp_path), params={'planner_horizon': 3}
  )
  assert shapes['image'] == (32, 32, 3)
  assert config.test_collects.test_main_dummy.horizon == 3


def process(folder, **changes):
  """Train in this process; returns what is shown of all epochs."""
  args = test_experiments.make_args(folder)
  with args.params.unlocked:
    args.params.update({**PARAMS, **changes})
  return list(train.process(str(folder), args))


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

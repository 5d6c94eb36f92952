"""Observations that are vectors, normalized by the first episodes."""

import numpy as np

from agents.tools.tf1 import tf
from planet.scripts import configs
from planet.tools import AttrDict
from planet.training import collection, episode_folder
from planet.training.define_networks import define_networks
from tests import graphs


def test_statistics(tmp_path):
  rng = np.random.RandomState(0)
  position, velocity = rng.normal(3, 2, (50, 8)), rng.normal(0, 9, (50, 9))
  velocity[:, 0] = 4  # does not move
  for index in range(2):
    part = slice(25 * index, 25 * index + 25)
    parts = {'position': position[part], 'velocity': velocity[part]}
    np.savez(tmp_path / f'{index}.npz', **parts)
  keys = ['position', 'velocity']
  mean, stddev = episode_folder.read_statistics(str(tmp_path), keys)
  both = np.concatenate([position, velocity], -1)
  np.testing.assert_allclose(mean, both.mean(0), rtol=1e-5)
  np.testing.assert_allclose(stddev[:8], both.std(0)[:8], rtol=1e-5)
  assert stddev[8] == np.float32(0.01)


def test_model_and_planner_see_normalized_vectors():
  params = dict(tasks=['cheetah_run'], observations='vector')
  config = configs.make('debug', params)
  mean, stddev = np.arange(17, dtype=np.float32), np.full(17, 2, np.float32)
  config = config.replace(vector_statistics=(mean, stddev))
  shapes = {'position': [8], 'velocity': [9], 'action': [6], 'reward': []}
  data = {key: tf.ones([1, 1, *shape]) for key, shape in shapes.items()}
  graph = define_networks(data, config)
  graph = AttrDict(graph, step=tf.constant(0))
  (name, simulation), *_ = config.train_collects.items()
  agent = collection.agent_config(config, simulation, graph, name)
  seen = agent.preprocess_fn(tf.ones([1, 17]))
  with graphs.session() as sess:
    sess.run(tf.global_variables_initializer())
    expected = (1 - mean) / 2
    assert np.array_equal(sess.run(graph.data['vector'])[0, 0], expected)
    assert np.array_equal(sess.run(seen)[0], expected)
  # Checkpoints keep them.
  saved = {x.op.name for x in tf.global_variables()}
  assert {'normalize/mean', 'normalize/stddev'} <= saved


def test_planner_sees_images_and_vectors():
  """One observation is taken apart again, and both parts are encoded."""
  params = dict(tasks=['cheetah_run'], observations='both')
  config = configs.make('debug', params)
  mean, stddev = np.arange(17, dtype=np.float32), np.full(17, 2, np.float32)
  config = config.replace(vector_statistics=(mean, stddev))
  side = config.image_size
  shapes = {'position': [8], 'velocity': [9], 'action': [6], 'reward': []}
  data = {key: tf.ones([1, 1, *shape]) for key, shape in shapes.items()}
  image = np.random.RandomState(0).randint(0, 256, (side, side, 3), np.uint8)
  data['image'] = config.preprocess_fn(tf.constant(image)[None, None])
  graph = define_networks(data, config)
  joined = np.concatenate([image.ravel(), np.ones(17)]).astype(np.float32)
  seen = graph.preprocess(tf.constant(joined)[None])
  embedded = graph.encoder({k: v[:, None] for k, v in seen.items()})
  with graphs.session() as sess:
    sess.run(tf.global_variables_initializer())
    seen, known, ours, theirs = sess.run(
      [seen, graph.data, embedded, graph.embedded]
    )
  assert np.array_equal(seen['vector'][0], (1 - mean) / 2)
  assert seen['image'].shape == (1, side, side, 3)
  # But for the noise of the last bit.
  assert np.abs(seen['image'][0] - known['image'][0, 0]).max() <= 1 / 32
  assert ours.shape == theirs.shape
  assert np.array_equal(known['vector'][0, 0], seen['vector'][0])

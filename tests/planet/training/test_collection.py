"""Episodes that are played with the planner during training."""

import os

from agents.tools.tf1 import tf
from planet.scripts import configs
from planet.tools import AttrDict, loaders
from planet.training import collection
from planet.training.define_networks import define_networks
from tests import graphs

SHAPES = {'image': (64, 64, 3), 'action': (5,), 'reward': ()}


def define_graph(config):
  """Networks of a configuration on a batch of zeros."""
  data = {key: tf.zeros([1, 1, *shape]) for key, shape in SHAPES.items()}
  graph = define_networks(data, config)
  return AttrDict(graph, step=tf.constant(0))


def test_episodes_at_once(tmp_path):
  """Each is recorded, and one planner serves all of them."""
  params = AttrDict(logdir=str(tmp_path), tasks=['dummy'], collect_batch=3)
  config = configs.make('debug', params)
  (name, simulation), *_ = config.train_collects.items()
  cleanups = []
  with tf.variable_scope('graph', use_resource=True):
    graph = define_graph(config)
    # A model of a user may have only the entries of the original.
    graph = AttrDict((k, v) for k, v in graph.items() if k != 'preprocess')
    _, score = collection.simulate_episodes(
      config, simulation, graph, cleanups, False, False, name
    )
  with graphs.session() as sess:
    sess.run(
      [tf.global_variables_initializer(), tf.local_variables_initializer()]
    )
    assert 400 < sess.run(score) < 600
    selections = [x for x in sess.graph.get_operations() if x.type == 'TopKV2']
  for cleanup in cleanups:
    cleanup()
  assert len(loaders.list_episodes(config.train_dir)) == 3
  assert os.listdir(tmp_path) == ['train_episodes']
  (selection,) = selections
  assert selection.inputs[0].shape.as_list() == [3, 5]

"""What an update and an episode cost, found out by trying."""

import pytest

from agents.tools import devices
from agents.tools.tf1 import tf
from planet.scripts import configs, train
from planet.tools import AttrDict
from planet.training import cost

SHAPES = {'image': [64, 64, 3], 'action': [5], 'reward': [], 'return': []}


def test_measure(tmp_path):
  """In a graph of its own, whatever the one of the training holds."""
  params = AttrDict(logdir=str(tmp_path), tasks=['dummy'])
  config = configs.debug(AttrDict(), params)
  update, decision = cost.measure(config, SHAPES)
  assert update > decision > 0
  assert not tf.get_default_graph().get_operations()


def test_sentence(monkeypatch, tmp_path):
  monkeypatch.setattr(cost, 'measure', lambda *args: (2.52, 0.5))
  params = AttrDict(logdir=str(tmp_path), tasks=['dummy'], action_repeat=4)
  config = configs.default(AttrDict(), params)
  text = cost.describe(config, SHAPES)
  assert 'an update takes 2.5 seconds here, and planning an ep' in text
  assert 'episode of 250 decisions 2.1 minutes. --config cpu' in text
  with config.unlocked:
    config.train_collects = {}
  assert 'planning' not in cost.describe(config, SHAPES)


@pytest.mark.parametrize(
  'name, gpus, costly',
  [('default', [], True), ('cpu', [], False), ('default', ['X'], False)],
)
def test_only_where_it_is_worth_knowing(monkeypatch, name, gpus, costly):
  monkeypatch.setattr(devices, 'list_usable', lambda: gpus)
  monkeypatch.setattr(cost, 'describe', lambda config, shapes: shapes)
  batch = {'action': tf.zeros([2, 3, 4]), 'length': tf.zeros([2])}
  dataset = tf.data.Dataset.from_tensors(batch)
  config = AttrDict(source=AttrDict(config=name))
  device, *rest = train._describe_device(config, dataset)
  assert device.startswith('Computing on the ')
  assert rest == ([{'action': [4], 'length': []}] if costly else [])

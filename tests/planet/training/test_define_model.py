"""How simulations of a training step relate to each other."""

import threading

import pytest

from agents.tools.tf1 import tf
from planet.tools.attr_dict import AttrDict
from planet.training import collection
from planet.training.define_model import _define_collection
from planet.training.define_summaries import _define_simulation

DEFINE = {'train': _define_collection, 'test': _define_simulation}


@pytest.mark.parametrize('isolation', ['process', 'none'])
@pytest.mark.parametrize('phase', ['train', 'test'])
def test_simulations_play_at_the_same_time(monkeypatch, phase, isolation):
  """Unless they may share an environment."""
  meeting, log = threading.Barrier(2), []

  def play(name):
    log.append(name)
    try:
      meeting.wait(1 if isolation == 'none' else 20)
    except threading.BrokenBarrierError:
      pass
    log.append(name)

  def simulate_episodes(*args):
    name = args[-1]
    with tf.control_dependencies([tf.py_func(lambda: play(name), [], [])]):
      return tf.constant(name), tf.constant(1.0)

  monkeypatch.setattr(collection, 'simulate_episodes', simulate_episodes)
  tf.reset_default_graph()
  simulation = AttrDict(
    steps_after=0, steps_every=1, steps_until=-1, task=AttrDict(name='x')
  )
  collects = {'a': simulation, 'b': simulation, 'c': simulation}
  config = AttrDict(
    batch_shape=[1, 5],
    isolate_envs=isolation,
    train_collects={x: collects[x] for x in 'ab'},
    test_collects={x: collects[x] for x in 'ab'},
  )
  graph = AttrDict(step=tf.constant(1), trainer=AttrDict(phase=phase))
  outputs = DEFINE[phase](graph, config, [])
  threads = tf.ConfigProto(
    inter_op_parallelism_threads=2, use_per_session_threads=True
  )
  with tf.Session(config=threads) as sess:
    sess.run(outputs)
  assert (log in (list('aabb'), list('bbaa'))) == (isolation == 'none')

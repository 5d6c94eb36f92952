"""How simulations of a training step relate to each other."""

import threading
import time

import pytest

from agents.tools.tf1 import tf
from planet.tools.attr_dict import AttrDict
from planet.training import collection, define_model, objectives, utility
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

  def simulate_episodes(*unused, name, **more):
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


@pytest.mark.parametrize('phase', ['train', 'test'])
def test_episodes_are_played_with_new_weights(monkeypatch, phase):
  """Also by a planner's loop, which reads them once an iteration."""
  weight = tf.get_variable('weight', (), initializer=tf.zeros_initializer())

  def apply_optimizers(*unused):
    with tf.control_dependencies([tf.py_func(lambda: time.sleep(0.2), [], [])]):
      assign = weight.assign(1.0)
    with tf.control_dependencies([assign]):
      return [tf.constant('')], {}

  def simulate_episodes(*unused, **more):
    _, total = tf.while_loop(
      lambda index, total: index < 3,
      lambda index, total: (index + 1, total + weight.read_value()),
      (0, weight.read_value()),
    )
    with tf.control_dependencies([tf.py_func(played.append, [total], [])]):
      return tf.constant(''), tf.constant(0.0)

  played = []
  monkeypatch.setattr(collection, 'simulate_episodes', simulate_episodes)
  monkeypatch.setattr(utility, 'apply_optimizers', apply_optimizers)
  networks = AttrDict(posterior=(), prior=(), data={})
  names = define_model.__globals__
  monkeypatch.setitem(names, 'define_networks', lambda *_: networks)
  simulation = AttrDict(
    steps_after=0, steps_every=1, steps_until=-1, task=AttrDict(name='x')
  )
  monkeypatch.setattr(objectives, 'compute_objectives', lambda *_: [])
  config = AttrDict(
    batch_shape=[1, 5],
    isolate_envs='process',
    print_metrics_every=1,
    train_collects={'a': simulation},
    test_collects={'b': simulation},
  )
  trainer = AttrDict(
    ranks=AttrDict(size=1, is_first=False, average=list),
    step=tf.constant(1),
    global_step=tf.constant(1),
    phase=tf.constant(phase),
    log=tf.constant(True),
  )
  score, summary, _ = define_model({}, trainer, config)
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run([score, summary])
  assert played == [4]

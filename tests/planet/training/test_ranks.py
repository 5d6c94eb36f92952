"""Ranks that train one model together, here in threads of this process."""

import functools
import os
import threading
import types

import numpy as np
import pytest

from agents.run import limits, stopping
from agents.tools import graph_errors, mpi_ops
from agents.tools.tf1 import tf
from planet import control
from planet.envs import dummy_env
from planet.scripts import configs
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind
from planet.training import collection, define_networks
from planet.training import objectives as objectives_lib
from planet.training import ranks as ranks_lib
from planet.training.ranks import Ranks
from planet.training.trainer import Trainer
from tests.planet.training import rank_threads

BATCH, TIME, STATE, UPDATES = 6, 4, 5, 50
CLIPPING, FREE_NATS = 8.0, 0.1
# A rank that waits holds a thread, which ranks of one process must not share.
OPTIONS = tf.ConfigProto(
  use_per_session_threads=True,
  inter_op_parallelism_threads=2,
  intra_op_parallelism_threads=1,
)
SHAPES = {'position': 3, 'velocity': 2, 'action': 2}


def define_config(**params):
  """Small model of vectors, whose losses and gradients are cut in places."""
  params = {
    'tasks': ['cartpole_balance'],
    'observations': 'vector',
    'batch_shape': [BATCH, TIME],
    'free_nats': FREE_NATS,
    'main_gradient_clipping': CLIPPING,
    'logdir': 'unused',
    **params,
  }
  return configs.make('debug', params)


def define_training(ranks, monkeypatch, average=True):
  """Graph of an update on the rows of a rank, with the noise of these."""
  first, count = ranks.share(BATCH)
  noise = np.random.RandomState(1).normal(size=(BATCH, STATE))
  rows = noise[first : first + count].astype(np.float32)
  config = define_config()
  graph = tf.Graph()
  with graph.as_default(), monkeypatch.context() as patch:
    tf.set_random_seed(ranks.rank)
    patch.setattr(tf, 'random_normal', lambda shape: tf.reshape(rows, shape))
    data = {
      name: tf.placeholder(tf.float32, (count, TIME, size))
      for name, size in SHAPES.items()
    }
    data['reward'] = tf.placeholder(tf.float32, (count, TIME))
    data['length'] = tf.fill([count], TIME)
    with tf.variable_scope('graph'):
      networks = define_networks.define_networks(data, config)
      objectives = objectives_lib.compute_objectives(
        networks.posterior, networks.prior, networks.data, networks, config
      )
      trainer = types.SimpleNamespace(
        step=tf.constant(0), log=tf.constant(False), phase=tf.constant('train')
      )
      updates, norms = objectives_lib.apply_optimizers(
        objectives, trainer, config, ranks.average if average else None
      )
      with tf.control_dependencies(updates):
        objectives = objectives_lib.average(objectives, ranks.average)
    divergence = networks.cell.divergence_from_states(
      networks.posterior, networks.prior
    )
    fetches = dict(norms, **objectives_lib.as_dict(objectives))
    return graph, data, fetches, divergence, slice(first, first + count)


def train(ranks, training, weights=None):
  """Losses and weights after each update."""
  graph, data, fetches, divergence, rows = training
  random = np.random.RandomState(0)
  losses, after = [], []
  with graph.as_default(), tf.Session(config=OPTIONS) as sess:
    sess.run(tf.global_variables_initializer())
    variables = tf.trainable_variables()
    if ranks.is_first and weights:
      for variable, value in zip(variables, weights):
        variable.load(value, sess)
    ranks.broadcast(sess)
    first = sess.run(variables)
    for _ in range(UPDATES):
      feed = {
        tensor: random.normal(size=(BATCH, TIME, *tensor.shape[2:]))[rows]
        for name, tensor in data.items()
        if name != 'length'
      }
      result, kl = sess.run([fetches, divergence], feed)
      losses.append({**result, 'kl': kl})
      after.append(sess.run(variables))
  return losses, after, first


def train_ranks(size, monkeypatch, weights, average=True):
  """What `train` returns, of each rank."""
  barrier, graphs = threading.Barrier(size), []

  def work(comm):
    ranks = Ranks(comm)
    # Graphs are built one after the other, as they replace the noise.
    for turn in range(size):
      barrier.wait()
      if turn == ranks.rank:
        training = define_training(ranks, monkeypatch, average)
        graphs.append(training)
      barrier.wait()
    return train(ranks, training, weights)

  return rank_threads.run(size, work)


@pytest.fixture(scope='module')
def alone():
  """Training of one process."""
  with pytest.MonkeyPatch.context() as monkeypatch:
    return train(Ranks(), define_training(Ranks(), monkeypatch))


def test_updates_of_ranks_are_those_of_one_process(alone, monkeypatch):
  """Same batches, same noise: losses, norms and weights of 50 updates.

  Free nats cut some steps of some sequences, gradients are clipped in some
  updates. All ranks have the same weights after each, bit for bit.
  """
  losses, after, weights = alone
  results = train_ranks(2, monkeypatch, weights)
  kl = np.array([x['kl'] for x in losses])
  norms = np.array([x['main'] for x in losses])
  assert 0.1 < (kl < FREE_NATS).mean() < 0.9
  assert 0.1 < (norms > CLIPPING).mean() < 0.9, norms
  for update, expected in enumerate(losses):
    for name in set(expected) - {'kl'}:
      values = [x[0][update][name] for x in results]
      assert len(set(values)) == 1
      np.testing.assert_allclose(values[0], expected[name], 1e-4, 1e-5)
    hashes = {mpi_ops.hash_values(x[1][update]) for x in results}
    assert len(hashes) == 1
    for found, value in zip(results[0][1][update], after[update]):
      np.testing.assert_allclose(found, value, 1e-4, 1e-6)


def test_shares_are_even_and_complete():
  for size in range(1, 6):
    for amount in range(8):
      for turn in range(size):
        shares = rank_threads.run(
          size, lambda comm, a=amount, t=turn: Ranks(comm).share(a, t)
        )
        counts = [count for _, count in shares]
        assert [x for f, c in shares for x in range(f, f + c)] == list(
          range(amount)
        )
        assert max(counts) - min(counts) <= 1
        assert amount >= size or not amount or counts[turn] == 1


@pytest.mark.parametrize('each', [False, True])
def test_collections_of_ranks(each):
  """As many environments as one process has, or as many on each rank.

  Test episodes are split in any case. Environments keep their seeds.
  """
  entries = [dict(batch_size=4), dict(name='b'), dict(name='c')]
  config = define_config(
    train_collects=entries, test_collects=entries, collect_per_rank=each
  )

  def split(comm):
    own = ranks_lib.own_config(config, Ranks(comm))
    assert own.data_loader.keywords['max_bytes'] == (
      limits.allowed_memory() // 12
    )
    return own.train_collects, own.test_collects

  train_collects, test_collects = zip(*rank_threads.run(3, split))
  for phase, collects in (('train', train_collects), ('test', test_collects)):
    for name, amount in (('main', 4), ('b', 1), ('c', 1)):
      name = f'{phase}_{name}_cartpole_balance'
      parts = [x[name] for x in collects if name in x]
      agents = [
        x.first_agent + index for x in parts for index in range(x.num_agents)
      ]
      times = 3 if each and phase == 'train' else 1
      assert agents == list(range(times * amount))
      assert sum(x.part for x in parts) == pytest.approx(times)
  if not each:
    # Four, then one, and one: nobody waits for a second one.
    counts = [sum(x.num_agents for x in y.values()) for y in train_collects]
    assert counts == [2, 2, 2]
  assert ranks_lib.own_config(config, Ranks()) is config


def iterate(comm, logdir, stop_rank, stop_step):
  """Phases of a trainer whose episodes are asked to stop in a rank.

  Returns:
    Tuple of the scores, the last global step, and the checkpoint's variable.
  """
  ranks = Ranks(comm)

  def play(step, phase):
    if (ranks.rank, step) == (stop_rank, stop_step) and phase == b'train':
      raise stopping.StopRequested('as if a user had asked')
    return np.array([10.0 * ranks.rank + step], np.float32)

  with tf.Graph().as_default():
    trainer = Trainer(logdir, AttrDict(checkpoint_at_end=True), ranks)
    weight = tf.get_variable('w', initializer=5.0 + ranks.rank)
    score = tf.py_func(
      graph_errors.remember(play), [trainer.step, trainer.phase], tf.float32
    )
    score.set_shape((1,))
    summary = tf.summary.scalar(f'of_{ranks.rank}', score[0])
    trainer.score_weight = 1.0 + ranks.rank
    for name in ('train', 'test'):
      reports = dict(report_every=2, log_every=2) if name == 'test' else {}
      trainer.add_phase(name, 2, score, summary, **reports)
    trainer.add_saver()
    with tf.Session(config=OPTIONS) as sess:
      scores = list(trainer.iterate(8, sess))
      return scores, *sess.run([trainer.global_step, weight])


def test_ranks_go_through_the_phases_together(tmp_path):
  """The score is that of all; only the first rank writes."""
  results = rank_threads.run(
    2, lambda comm: iterate(comm, str(tmp_path), None, 0)
  )
  # One part of step + 0, two parts of step + 10; the mean over steps 0 and 1.
  expected = np.array([0.5, 2.5]) + 20 / 3
  for scores, global_step, weight in results:
    np.testing.assert_allclose(scores, expected, 1e-6)
    assert global_step == 8 and weight == 5
  assert (tmp_path / 'model.ckpt-8.index').exists()
  shown = [
    (value.tag, value.simple_value)
    for path in (tmp_path / 'test').iterdir()
    for event in tf.train.summary_iterator(str(path))
    for value in event.summary.value
  ]
  tags = {tag for tag, _ in shown}
  assert 'of_0' in tags and 'of_1' not in tags
  scores = [value for tag, value in shown if tag.endswith('trainer/test/score')]
  np.testing.assert_allclose(scores, expected, 1e-6)


def test_rank_without_finished_episodes():
  """Does not make the mean of the others NaN."""
  given = [(np.nan, 1.0), (2.0, 1.0), (5.0, 2.0)]
  assert rank_threads.run(
    3, lambda comm: Ranks(comm).average_score(*given[comm.Get_rank()])
  ) == [4, 4, 4]


@pytest.mark.parametrize('stop_rank', [0, 1])
def test_rank_that_is_asked_to_stop_takes_the_others_along(stop_rank, tmp_path):
  """Within its episodes; nobody waits, and the first rank saves."""
  results = rank_threads.run(
    2, lambda comm: iterate(comm, str(tmp_path), stop_rank, 2)
  )
  for rank, (scores, global_step, _) in enumerate(results):
    # The others have finished their execution.
    assert len(scores) == 1 and global_step == (4 if rank == stop_rank else 5)
  assert (tmp_path / f'model.ckpt-{results[0][1]}.index').exists()


def test_different_weights_are_noticed():
  def check(comm, value):
    with tf.Graph().as_default(), tf.Session() as sess:
      weight = tf.get_variable('w', initializer=value)
      sess.run(weight.initializer)
      Ranks(comm).check_same(sess)

  rank_threads.run(2, lambda comm: check(comm, 1.0))
  with pytest.raises(RuntimeError, match='weights of rank 1 of 2 differ'):
    rank_threads.run(2, lambda comm: check(comm, 1.0 + 1e-6 * comm.Get_rank()))


def collect(comm, config):
  collection.collect_initial_episodes(config, Ranks(comm))


def random_config(folder, amount):
  make = bind(dummy_env.make, 50, 20, image_size=32)
  task = AttrDict(env_ctor=make, action_repeat=50)
  item = AttrDict(task=task, save_episode_dir=str(folder), num_episodes=amount)
  return AttrDict(
    random_collects=AttrDict(train=item), isolate_envs='none', seed=3
  )


def test_first_episodes_are_shared(tmp_path, monkeypatch, capsys):
  """Missing ones only, each rank its part, with different random numbers."""
  played = []
  original = control.random_episodes

  def random_episodes(env_ctor, count, *rest):
    played.append(count)
    return original(env_ctor, count, *rest)

  monkeypatch.setattr(control, 'random_episodes', random_episodes)
  original(bind(dummy_env.make, 50, 20, image_size=32), 1, str(tmp_path))
  config = random_config(tmp_path, 6)
  rank_threads.run(2, functools.partial(collect, config=config))
  names = os.listdir(tmp_path)
  assert len(names) == 6 and sorted(played) == [2, 3]
  assert capsys.readouterr().out.count('Collecting 5 initial') == 1
  actions = {np.load(tmp_path / x)['action'].tobytes() for x in names}
  assert len(actions) == 6


def test_request_to_stop_during_the_first_episodes(tmp_path, monkeypatch):
  """All ranks leave, also those that have nothing left to play."""

  def random_episodes(*unused):
    raise stopping.StopRequested('as if a user had asked')

  monkeypatch.setattr(control, 'random_episodes', random_episodes)

  def work(comm):
    with pytest.raises(stopping.StopRequested):
      collect(comm, random_config(tmp_path, 1))

  rank_threads.run(2, work)

"""The algorithm within the whole graph, and by its four callbacks."""

import numpy as np
import pytest

from agents import configs, networks, ppo, tools
from agents.ppo import policy as policy_lib
from agents.run import errors
from agents.tools import wrappers
from agents.tools.tf1 import tf
from tests import golden, graphs, scripted_envs
from tests.agents.ppo import recorded, scripted

# Actions have the sine of 17 times the observations.
ACTIONS = dict(rtol=1e-5, atol=1e-4)
NAMES = {
  'ofc': 'normalize_observ/count',
  'ofm': 'normalize_observ/mean',
  'ofv': 'normalize_observ/var_sum',
  'rfc': 'normalize_reward/count',
  'rfm': 'normalize_reward/mean',
  'rfv': 'normalize_reward/var_sum',
  'memory_index': 'memory_index/index',
  'memory_length': 'memory/length',
  'episode_length': 'episodes/length',
  'penalty': 'penalty',
  'last_mean': 'last_mean',
  'last_action': 'last_action',
  'var_policy_w': 'policy/w',
  'var_policy_b': 'policy/b',
  'var_policy_logstd': 'policy/logstd',
  'var_value_w': 'value/w',
  'var_value_b': 'value/b',
}
FLAGS = ('training', 'log', 'reset')


def define(envs, comm=None, **settings):
  """Placeholders of the flags, batch environment, and the algorithm."""
  config = dict(
    configs.default(),
    num_agents=len(envs),
    update_epochs=2,
    policy_layers=(5, 4),
    value_layers=(5,),
  )
  config.update(settings)
  batch_env = tools.InGraphBatchEnv(tools.BatchEnv(envs, True))
  step = tf.Variable(0, False, dtype=tf.int32, name='global_step')
  flags = {x: tf.placeholder(tf.bool, (), x) for x in FLAGS}
  algorithm = ppo.PPOAlgorithm(
    batch_env,
    step,
    flags['training'],
    flags['log'],
    tools.AttrDict(config),
    comm,
  )
  return flags, batch_env, algorithm


class Comm:
  """Communicator of two ranks that do the same."""

  def Get_rank(self):
    return 0

  def Get_size(self):
    return 2

  def Allreduce(self, source, target):
    target[:] = 2 * source

  def allgather(self, value):
    return [value, value]


def test_end_to_end():
  """`ppo/end_to_end`: 24 executions; weights 2e-5, actions 1e-4."""
  data, clock = golden.load(scripted.END_TO_END), [0]
  envs = [
    wrappers.ConvertTo32Bit(scripted.Replay(index, clock)) for index in (0, 1)
  ]
  flags, batch_env, algorithm = define(
    envs,
    network=scripted.network,
    update_every=int(data['update_every']),
    update_epochs=int(data['update_epochs']),
    learning_rate=float(data['learning_rate']),
    max_length=int(data['max_length']),
  )
  outputs = tools.simulate(batch_env, algorithm, flags['log'], flags['reset'])
  state = {key: recorded.variable(name) for key, name in NAMES.items()}
  state['action'] = batch_env.action
  with graphs.session() as sess:
    for index in range(len(data['done'])):
      clock[0] = index
      feed = {flags[x]: data[x][index] for x in FLAGS}
      done, score, summary = sess.run(outputs, feed)
      assert done.tolist() == data['done'][index].tolist()
      np.testing.assert_allclose(score, data['score'][index], 1e-5)
      for key, value in sess.run(state).items():
        tolerance = ACTIONS if 'action' in key else recorded.UPDATE
        golden.assert_close(value, data[key][index], name=key, **tolerance)
      check_tags(summary, data, index)


def check_tags(summary, data, index):
  """At least as many summaries as the original writes, or none."""
  tags = list(recorded.scalars(summary)) + list(recorded.histograms(summary))
  values = tf.Summary.FromString(summary).value
  number = data['num_summary_tags'][index]
  assert len(values) >= number and bool(values) == bool(number), index
  if data['log'][index] and number:
    wanted = {'mean', 'std', 'action', 'logprob', 'mean_score', 'mean_length'}
    if data['training'][index]:
      wanted |= {'memory_size', 'normalized_observ', 'normalized_reward'}
      wanted |= {'stddev', 'value'}
    assert wanted <= set(tags), index


def make_envs(*lengths):
  return [
    wrappers.ConvertTo32Bit(scripted_envs.EchoEnv(length)) for length in lengths
  ]


def snapshot(sess):
  """Values of everything that survives an evaluation."""
  return {
    x.op.name: sess.run(x)
    for x in tf.global_variables()
    if '_temporary' not in x.op.name
  }


def test_evaluation_changes_nothing():
  """Neither statistics nor memory nor weights; actions are the means."""
  flags, batch_env, algorithm = define(
    make_envs(2, 3),
    update_every=2,
    max_length=3,
    network=networks.recurrent_gaussian,
  )
  outputs = tools.simulate(batch_env, algorithm, flags['log'], flags['reset'])
  last = [recorded.variable('last_action'), recorded.variable('last_mean')]
  with graphs.session() as sess:
    before = snapshot(sess)
    for index in range(7):
      feed = {flags['training']: False, flags['log']: True}
      sess.run(outputs, {**feed, flags['reset']: index == 0})
      action, mean = sess.run(last)
      np.testing.assert_array_equal(action, mean)
    np.testing.assert_equal(snapshot(sess), before)
    feed[flags['training']] = True
    for index in range(4):
      sess.run(outputs, {**feed, flags['reset']: index == 0})
    after = snapshot(sess)
  changed = {k for k in before if not np.array_equal(before[k], after[k])}
  assert any('/policy/' in x for x in changed)
  assert any('/value/' in x for x in changed)
  assert {f'normalize_{x}/count' for x in ('observ', 'reward')} <= changed


def test_surplus_episodes_are_dropped():
  """Three of four environments end, two episodes fit: the first two rows."""
  flags, batch_env, algorithm = define(
    make_envs(5, 5, 5, 5), update_every=3, max_length=4
  )
  rows, every = tf.constant([0, 2, 3]), tf.range(4)
  observ = tf.placeholder(tf.float32, [4, 3])
  begin = algorithm.begin_episode(every)
  act, _ = algorithm.perform(every, observ)
  with tf.control_dependencies([act]):
    store = algorithm.experience(
      every, observ, act, tf.ones([4]), tf.zeros([4], tf.bool), observ
    )
  end = algorithm.end_episode(rows[:1]), algorithm.end_episode(rows)
  memory = [recorded.variable('memory/buffer0')]
  memory += [recorded.variable('memory/length')]
  index = recorded.variable('memory_index/index')
  values = np.arange(12, dtype=np.float32).reshape(4, 3)
  feed = {flags['training']: True, flags['log']: False, observ: values}
  with graphs.session() as sess:
    sess.run(begin, feed)
    sess.run(store, feed)
    sess.run(end[0], feed)
    assert sess.run(index) == 1
    sess.run(store, {**feed, observ: values + 100})
    summary = sess.run(end[1], feed)
    content, length = sess.run(memory)
    assert sess.run(index) == 0
  assert 'kl_change' in recorded.scalars(summary)
  # The update clears lengths, but leaves what was stored.
  assert not length.any()
  np.testing.assert_array_equal(content[:, 0], values[[0, 0, 2]])
  np.testing.assert_array_equal(content[1:, 1], values[[0, 2]] + 100)


def test_each_rank_contributes_its_share():
  """Two of four episodes here; those of the other rank count, too."""
  flags, _, algorithm = define(
    make_envs(5, 5, 5), Comm(), update_every=4, max_length=4
  )
  every = tf.range(3)
  observ = tf.placeholder(tf.float32, [3, 3])
  act, _ = algorithm.perform(every, observ)
  with tf.control_dependencies([act]):
    store = algorithm.experience(
      every, observ, act, tf.ones([3]), tf.zeros([3], tf.bool), observ
    )
  end = algorithm.end_episode(every[:1]), algorithm.end_episode(every[1:])
  values = np.arange(9, dtype=np.float32).reshape(3, 3)
  feed = {flags['training']: True, flags['log']: False, observ: values}
  index = recorded.variable('memory_index/index')
  seen = recorded.variable('normalize_observ/count')
  with graphs.session() as sess:
    sess.run(algorithm.begin_together())
    sess.run(store, feed)
    assert sess.run(seen) == 3
    assert not recorded.scalars(sess.run(end[0], feed))
    assert sess.run(index) == 1
    assert 'kl_change' in recorded.scalars(sess.run(end[1], feed))
    assert sess.run(index) == 0 and sess.run(seen) == 6


def test_beginning_clears_its_rows_only():
  flags, batch_env, algorithm = define(
    make_envs(5, 5),
    update_every=3,
    max_length=4,
    network=networks.recurrent_gaussian,
  )
  begin = algorithm.begin_episode(tf.constant([1]))
  state = recorded.variable('last_state')
  length = recorded.variable('episodes/length')
  with graphs.session() as sess:
    state.load(np.ones((2, 4)), sess)
    length.load([2, 3], sess)
    assert sess.run(begin) == b''
    assert sess.run(length).tolist() == [2, 0]
    assert sess.run(state).tolist() == [[1] * 4, [0] * 4]


@pytest.mark.parametrize('name', ['network', 'update_epochs', 'discount'])
def test_incomplete_configuration(name):
  """As in training loops of others, which check nothing."""
  config = {**configs.default(), name: None}
  with pytest.raises(errors.UsageError, match=f'no {name!r}; start from one'):
    policy_lib.Policy([3], 2, tf.constant(True), config)

"""Steps of environments and algorithm, with exact counts."""

import types

import numpy as np

from agents.envs import spaces
from agents.envs.batch_env import BatchEnv
from agents.tools import simulate, wrappers
from agents.tools.in_graph_batch_env import InGraphBatchEnv
from agents.tools.mock_algorithm import MockAlgorithm
from agents.tools.mock_environment import MockEnvironment
from agents.tools.tf1 import tf
from tests import graphs, scripted_envs

DURATIONS = (1, 2, 3, 4)


def make_mocks():
  envs = [MockEnvironment((2,), (1,), x, x) for x in DURATIONS]
  converted = [wrappers.ConvertTo32Bit(env) for env in envs]
  return envs, InGraphBatchEnv(BatchEnv(converted, blocking=True))


def test_episodes_end_and_begin_on_time():
  """Episodes of 1, 2, 3, 4 steps over 12 steps; no step is lost."""
  envs, batch_env = make_mocks()
  done, _, _ = simulate(batch_env, MockAlgorithm(envs), log=False)
  with graphs.session() as sess:
    dones = np.array([sess.run(done) for _ in range(12)])
  steps = np.arange(1, 13)[:, None]
  np.testing.assert_array_equal(dones, steps % np.array(DURATIONS) == 0)
  for env, duration in zip(envs, DURATIONS):
    assert env.steps == [duration] * (12 // duration)


def test_forced_reset():
  """A reset ends all episodes early and counts as no step."""
  envs, batch_env = make_mocks()
  reset = tf.placeholder_with_default(False, ())
  done, _, _ = simulate(batch_env, MockAlgorithm(envs), False, reset)
  with graphs.session() as sess:
    for _ in range(3):
      assert sess.run(done, {reset: True}).tolist() == [True] + [False] * 3
    assert sess.run(done).tolist() == [True, True, False, False]
  assert [env.steps for env in envs] == [[1] * 4, [1, 1, 2], [1, 1, 2]] + [
    [1, 1, 2]
  ]


def test_mock_actions():
  """Uniform within the bounds of each dimension."""
  low, high = np.float32([-1, 2, 5]), np.float32([0, 2.5, 9])
  env = types.SimpleNamespace(action_space=spaces.box(low, high))
  actions, _ = MockAlgorithm([env]).perform(tf.range(1000), None)
  actions = graphs.evaluate(actions)
  assert actions.dtype == np.float32
  assert ((low <= actions) & (actions <= high)).all()
  np.testing.assert_allclose(actions.mean(0), (low + high) / 2, atol=0.2)


class Recorder(MockAlgorithm):
  """Does nothing, and remembers the order of the calls and their numbers."""

  def __init__(self):
    super().__init__(None)
    self.calls = []

  def _record(self, name, *tensors):
    def note(*values):
      self.calls.append((name,) + tuple(x.tolist() for x in values))
      return ''

    result = tf.py_func(note, list(tensors), tf.string)
    result.set_shape(())
    return result

  def begin_episode(self, indices):
    return self._record('begin', indices)

  def perform(self, indices, observ):
    with tf.control_dependencies([self._record('perform', observ)]):
      action = observ[:, :1] / 10 + tf.constant([[0.0, 0.5]])
    return action, tf.constant('')

  def experience(self, indices, observ, action, reward, done, next_observ):
    return self._record('experience', observ, reward, done, next_observ)

  def end_episode(self, indices):
    return self._record('end', indices)


def test_order_and_transitions():
  """Begin, perform, experience, end; observations before and after a step."""
  envs = [scripted_envs.EchoEnv(x) for x in (1, 2)]
  algo = Recorder()
  done, score, _ = simulate(InGraphBatchEnv(BatchEnv(envs, True)), algo, False)
  with graphs.session() as sess:
    scores = [sess.run([done, score])[1].tolist() for _ in range(2)]
  names = [call[0] for call in algo.calls]
  assert names == ['begin', 'perform', 'experience', 'end'] * 2
  assert [algo.calls[i][1] for i in (0, 3, 4, 7)] == [[0, 1], [0], [0], [0, 1]]
  first, second = algo.calls[2], algo.calls[6]
  zero = [0, 0, 0]
  assert first[1:4] == ([zero, zero], [0.5, 0.5], [True, False])
  assert first[4] == [[1, 0, 0.5]] * 2
  np.testing.assert_allclose(second[1], [zero, [1, 0, 0.5]])
  np.testing.assert_allclose(second[4], [[1, 0, 0.5], [2, 0.1, 0.6]], 1e-6)
  np.testing.assert_allclose(scores, [[0.5, 0.5], [0.5, 1.2]], 1e-6)


def test_observation_is_copied_before_the_step():
  """Also for an algorithm that does not look at it."""

  class Blind(Recorder):
    def perform(self, indices, observ):
      return tf.ones([1, 2]), tf.constant('')

  algo = Blind()
  batch_env = InGraphBatchEnv(BatchEnv([scripted_envs.EchoEnv(99)], True))
  done, _, _ = simulate(batch_env, algo, False)
  with graphs.session() as sess:
    for _ in range(50):
      sess.run(done)
  rows = [call for call in algo.calls if call[0] == 'experience']
  times = [(row[1][0][0], row[4][0][0]) for row in rows]
  assert times == [(x, x + 1) for x in range(50)]


def test_summaries_of_finished_episodes():
  """Mean score and length over what ended since the last log."""
  envs = [scripted_envs.EchoEnv(x) for x in (1, 2)]
  log = tf.placeholder_with_default(False, ())
  outputs = simulate(InGraphBatchEnv(BatchEnv(envs, True)), Recorder(), log)
  with graphs.session() as sess:
    assert sess.run(outputs)[2] == b''
    summary = tf.Summary.FromString(sess.run(outputs, {log: True})[2])
  values = {x.tag.split('/')[-1]: x.simple_value for x in summary.value}
  # Episodes of 1, 1 and 2 steps with scores of 0.5, 0.5 and 1.2.
  np.testing.assert_allclose(values['mean_score'], 2.2 / 3, 1e-6)
  np.testing.assert_allclose(values['mean_length'], 4 / 3, 1e-6)

"""Environments as part of the graph."""

import gymnasium
import numpy as np
import pytest

from agents.envs.batch_env import BatchEnv
from agents.tools import graph_errors, wrappers
from agents.tools.in_graph_batch_env import InGraphBatchEnv
from agents.tools.tf1 import tf
from planet import control
from tests import graphs, scripted_envs


def make(*lengths, cls=scripted_envs.EchoEnv):
  envs = [wrappers.ConvertTo32Bit(cls(x)) for x in lengths]
  return InGraphBatchEnv(BatchEnv(envs, blocking=True))


def test_step_and_reset():
  """Variables hold the last transition; a reset touches only its rows."""
  env = make(1, 3)
  action = tf.placeholder(tf.float32, [2, 2])
  step, reset_all, reset_first = env.step(action), env.reset(), env.reset([0])
  state = dict(
    observ=env.observ, action=env.action, reward=env.reward, done=env.done
  )
  actions = np.float32([[0.5, 0.25], [-1, 1]])
  with graphs.session() as sess:
    assert sess.run(env.done).tolist() == [True, True]
    assert sess.run(reset_all).tolist() == [[0, 0, 0]] * 2
    sess.run(step, {action: actions})
    values = sess.run(state)
    assert values['observ'].tolist() == [[1, 0.5, 0.25], [1, -1, 1]]
    assert values['action'].tolist() == actions.tolist()
    assert values['reward'].tolist() == [0.75, 0]
    assert values['done'].tolist() == [True, False]
    assert sess.run(reset_first).tolist() == [[0, 0, 0]]
    values = sess.run(state)
  assert values['observ'].tolist() == [[0, 0, 0], [1, -1, 1]]
  assert values['done'].tolist() == [False, False]
  assert values['reward'].tolist() == [0, 0]


def test_reading_waits_for_the_step():
  """Copies read under a control dependency see its effect."""
  env = make(9)
  with tf.control_dependencies([env.reset()]):
    with tf.control_dependencies([env.step(tf.ones([1, 2]))]):
      after = env.observ
  assert graphs.evaluate(after).tolist() == [[1, 1, 1]]


def test_variables_are_neither_trained_nor_saved():
  make(1)
  assert not tf.trainable_variables()
  names = [x.op.name for x in tf.global_variables()]
  assert len(names) == 4
  assert all(name.startswith('env_temporary/') for name in names)


def test_integer_observations():
  """Discrete observations become int32 scalars."""

  class Counter(scripted_envs.ScriptedEnv):
    def __init__(self, length):
      space = gymnasium.spaces.Discrete(9)
      super().__init__(length, observe=np.int64, space=space)

  env = make(5, 5, cls=Counter)
  assert env.observ.dtype == tf.int32 and env.observ.shape.as_list() == [2]
  reset, step = env.reset(), env.step(tf.zeros([2, 1]))
  with graphs.session() as sess:
    assert sess.run(reset).tolist() == [0, 0]
    sess.run(step)
    assert sess.run(env.observ).tolist() == [1, 1]


def test_dictionaries_are_refused():
  with pytest.raises(NotImplementedError, match='Dict'):
    make(1, cls=scripted_envs.ScriptedEnv)


@pytest.mark.parametrize(
  'make_env, done',
  [(InGraphBatchEnv, True), (control.InGraphBatchEnv, False)],
)
def test_initial_done(make_env, done):
  """True in the original of PPO, False in that of PlaNet."""
  envs = [scripted_envs.VectorEnv()]
  assert graphs.evaluate(make_env(BatchEnv(envs, True)).done).tolist() == [done]


def test_errors_of_environments_come_out_of_the_graph():
  """Their own error is raised, not TensorFlow's report about it."""

  class Crashing(scripted_envs.VectorEnv):
    def __init__(self, length):
      super().__init__(length, crash_at=1)

  env = make(3, cls=Crashing)
  reset, step = env.reset(), env.step(tf.zeros([1, 1]))
  with graphs.session() as sess:
    sess.run(reset)
    with pytest.raises(RuntimeError, match='^boom in step$'):
      with graph_errors.unwrapped():
        sess.run(step)


def test_errors_stay_in_their_graph():
  """What fails in a graph is not explained by an error in another."""

  class Crashing(scripted_envs.VectorEnv):
    def __init__(self, length):
      super().__init__(length, crash_at=1)

  env = make(3, cls=Crashing)
  reset, step = env.reset(), env.step(tf.zeros([1, 1]))
  with graphs.session() as sess:
    sess.run(reset)
    with pytest.raises(tf.errors.OpError):
      sess.run(step)
  with tf.Graph().as_default():
    wrong = tf.check_numerics(tf.constant(np.nan), 'wrong')
    with graphs.session() as sess:
      with pytest.raises(tf.errors.InvalidArgumentError, match='wrong'):
        with graph_errors.unwrapped():
          sess.run(wrong)

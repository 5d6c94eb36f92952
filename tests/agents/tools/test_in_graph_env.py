"""A single environment as part of the graph."""

import pytest

from agents.tools import wrappers
from agents.tools.in_graph_env import InGraphEnv
from agents.tools.tf1 import tf
from tests import graphs, scripted_envs


def make(length=2):
  return InGraphEnv(wrappers.ConvertTo32Bit(scripted_envs.EchoEnv(length)))


def test_step_and_reset():
  """Variables hold the last transition, a counter the steps."""
  env = make()
  step, reset = env.simulate(tf.constant([0.5, -0.25])), env.reset()
  state = dict(
    observ=env.observ,
    action=env.action,
    reward=env.reward,
    done=env.done,
    step=env.step,
  )
  with graphs.session() as sess:
    assert sess.run(reset).tolist() == [0, 0, 0]
    for number in (1, 2):
      sess.run(step)
      values = {k: v.tolist() for k, v in sess.run(state).items()}
      assert values == dict(
        observ=[number, 0.5, -0.25],
        action=[0.5, -0.25],
        reward=0.25,
        done=number == 2,
        step=number,
      )
    assert sess.run(reset).tolist() == [0, 0, 0]
    values = sess.run(state)
  assert values['reward'] == 0 and not values['done'] and values['step'] == 0


def test_shapes_and_attributes():
  env = make()
  assert env.observ.shape.as_list() == [3]
  assert env.action.shape.as_list() == [2]
  assert env.reward.shape.as_list() == env.done.shape.as_list() == []
  assert env.magic == 'hello' and env.length == 2
  assert not tf.trainable_variables()
  assert all(
    x.op.name.startswith('env_temporary') for x in tf.global_variables()
  )


def test_dictionaries_are_refused():
  with pytest.raises(NotImplementedError, match='Dict'):
    InGraphEnv(scripted_envs.ScriptedEnv())

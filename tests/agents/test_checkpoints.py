"""What checkpoints of PPO hold, with one and with several processes."""

import os
import types

import pytest

from agents import utility
from agents.run import errors
from agents.tools import in_graph_batch_env
from agents.tools.tf1 import tf
from tests.agents import batches, training_runs

TEMPORARY = (r'.*_temporary.*',)


def define_graph(processes=1):
  """Graph of a training run, and a saver of what outlives it."""
  comm = types.SimpleNamespace(
    Get_rank=lambda: 0, Get_size=lambda: processes, allgather=None
  )
  config = training_runs.config(num_agents=2 * processes)
  tf.reset_default_graph()
  batch_env = in_graph_batch_env.InGraphBatchEnv(batches.make(config, 2))
  graph = utility.define_simulation_graph(
    batch_env, config.algorithm, config, comm
  )
  return graph, utility.define_saver(TEMPORARY)


def names():
  """Names of the global variables that checkpoints hold."""
  found = [x.op.name for x in tf.global_variables()]
  return {x for x in found if '_temporary' not in x}


@pytest.mark.slow
def test_names_do_not_depend_on_the_number_of_processes():
  define_graph(1)
  single = names()
  define_graph(3)
  assert names() == single
  assert {'optimizer/beta1_power', 'optimizer/beta2_power'} <= single


def test_checkpoint_that_does_not_fit(tmp_path):
  """One sentence with the file and the name that is missing."""
  graph, saver = define_graph()
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    tf.train.Saver({'global_step': graph.step}).save(
      sess, str(tmp_path / 'model.ckpt'), 7
    )
  with tf.Session() as sess, pytest.raises(errors.UsageError) as error:
    utility.initialize_variables(sess, saver, str(tmp_path))
  text = str(error.value)
  assert os.path.join(tmp_path, 'model.ckpt-7') in text and '\n' not in text
  assert 'not found' in text


def test_checkpoint_that_a_training_has_replaced(tmp_path):
  """The run is intact, so it must not be told to be unusable."""
  path = str(tmp_path / 'best' / 'model.ckpt-7')
  with tf.Graph().as_default(), tf.Session() as sess:
    tf.get_variable('weights', [2], use_resource=True)
    with pytest.raises(errors.UsageError, match='any more.* Repeat the com'):
      utility.define_saver().restore(sess, path)


def test_weights_of_another_shape(tmp_path):
  """Nothing else would notice; TensorFlow fails when it uses them."""
  path = str(tmp_path / 'model.ckpt')
  with tf.Graph().as_default(), tf.Session() as sess:
    tf.get_variable('weights', [2], use_resource=True)
    sess.run(tf.global_variables_initializer())
    utility.define_saver().save(sess, path)
  with tf.Graph().as_default(), tf.Session() as sess:
    tf.get_variable('weights', [3], use_resource=True)
    with pytest.raises(errors.UsageError, match='does not fit .*Shapes'):
      utility.define_saver().restore(sess, path)

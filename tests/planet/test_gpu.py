"""The model on a graphics card, against the processor."""

import numpy as np
import pytest

from agents.tools import devices
from agents.tools.tf1 import tf
from planet.scripts import configs
from planet.tools import AttrDict
from planet.training import objectives as objectives_lib
from planet.training import precision
from scripts.benchmarks import planet as benchmark
from tests.planet.scripts import training_runs

pytestmark = pytest.mark.gpu

SHAPES = {'image': [64, 64, 3], 'action': [5], 'reward': []}


def losses(logdir, device, bits='float32'):
  """Objectives over some updates with latent means, [updates, objectives]."""
  tf.reset_default_graph()
  tf.set_random_seed(0)
  params = AttrDict(
    logdir=str(logdir), tasks=['dummy'], mean_only=True, precision=bits
  )
  config = configs.debug(AttrDict(), params)
  with tf.device(device), tf.variable_scope('graph', use_resource=True):
    data = benchmark.draw_data(config.batch_shape, SHAPES)
    graph = benchmark.define_networks(config, data)
    objectives = objectives_lib.compute_objectives(
      graph.posterior, graph.prior, graph.data, graph, config
    )
    update = benchmark.define_update(config, graph)
  session = tf.ConfigProto(allow_soft_placement=True)
  session.gpu_options.allow_growth = True
  precision.enable(bits, session)
  with tf.Session(config=session) as sess:
    sess.run(
      [tf.global_variables_initializer(), tf.local_variables_initializer()]
    )
    weights = tf.trainable_variables()
    random = np.random.RandomState(0)
    for variable in weights:
      value = random.normal(0, 0.05, variable.shape.as_list())
      variable.load(value, sess)
    found = []
    for _ in range(20):
      found.append(sess.run([x.value for x in objectives]))
      sess.run(update)
    return np.array(found)


@pytest.fixture(scope='module')
def expected(tmp_path_factory):
  return losses(tmp_path_factory.mktemp('cpu'), '/cpu:0')


@pytest.mark.parametrize('bits', ['float32', 'float16'])
def test_losses(tmp_path, expected, bits):
  """Within one percent; cards round products of float32 to 19 bits."""
  precision.check(bits)
  found = losses(tmp_path, '/gpu:0', bits)
  np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
  'params',
  [{}, {'precision': 'float16'}, {'xla': True}],
)
def test_run(tmp_path, params):
  """The usual command trains on the card, and says so."""
  result = training_runs.train(tmp_path, params)
  assert result.code == 0, result.output
  assert f'Computing on the GPU {devices.list_usable()[0]}' in result.output

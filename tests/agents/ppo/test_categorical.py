"""Discrete actions: the distribution, the update, and a whole run."""

import functools

import numpy as np
import pytest

import agents
from agents import configs, networks, tools, train_ppo, utility, visualize_ppo
from agents.ppo import policy as policy_lib
from agents.run import errors
from agents.tools.categorical import Categorical
from agents.tools.tf1 import tf
from tests import graphs
from tests.agents import training_runs
from tests.agents.ppo import recorded

# Two episodes of at most three steps, of which the second has two.
LENGTH = np.array([3, 2], np.int32)
MASK = np.array([[1, 1, 1], [1, 1, 0]], float)
CONFIG = dict(
  update_every=2,
  max_length=3,
  update_epochs=1,
  policy_layers=[5],
  value_layers=[4],
  kl_init_penalty=0.5,
  kl_target=0.02,
)


def log_softmax(logits):
  logits = logits.astype(float)
  return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def pick(values, index):
  return np.take_along_axis(values, index[..., None], -1)[..., 0]


def test_distribution():
  """In closed form, and by counting what is drawn."""
  random = np.random.RandomState(0)
  logits, others = random.normal(0, 2, [2, 2, 3, 4]).astype(np.float32)
  index = random.randint(0, 4, [2, 3]).astype(np.int32)
  policy, other = Categorical(tf.constant(logits)), Categorical(others)
  tensors = dict(
    kl=policy.kl(other),
    entropy=policy.entropy(),
    log_prob=policy.log_prob(index),
    mode=policy.mode(),
  )
  found = graphs.evaluate(tensors)
  p, q = log_softmax(logits), log_softmax(others)
  expected = dict(
    kl=(np.exp(p) * (p - q)).sum(-1),
    entropy=-(np.exp(p) * p).sum(-1),
    log_prob=pick(p, index),
    mode=logits.argmax(-1),
  )
  for key, value in expected.items():
    np.testing.assert_allclose(found[key], value, 1e-5, 1e-6, err_msg=key)
  many = Categorical(tf.tile(tf.constant(logits)[:1, :1], [1, 20000, 1]))
  drawn = graphs.evaluate(many.sample())
  assert drawn.dtype == found['mode'].dtype == np.int32
  frequency = np.bincount(drawn.ravel(), minlength=4) / drawn.size
  np.testing.assert_allclose(frequency, np.exp(p[0, 0]), atol=0.015)


def define_policy(config=(), **kwargs):
  """Policy for four numbers and three actions."""
  config = dict(configs.default(), **CONFIG, **dict(config))
  return policy_lib.Policy(
    [4], 3, tf.constant(True), config, discrete=True, **kwargs
  )


def test_losses():
  """Terms of the loss by NumPy; the parameters hardly move."""
  random = np.random.RandomState(1)
  observ = random.normal(size=[2, 3, 4]).astype(np.float32)
  old = random.normal(size=[2, 3, 3]).astype(np.float32)
  action = random.randint(0, 3, [2, 3]).astype(np.int32)
  reward = random.normal(size=[2, 3]).astype(np.float32)
  policy = define_policy({'optimizer': recorded.RecordGradients})
  episodes = [tf.constant(x) for x in (observ, action, old, reward)]
  summary = policy.update(episodes, tf.constant(LENGTH))
  inputs = [
    policy.observ_filter.transform(episodes[0]),
    policy.reward_filter.transform(episodes[3]),
  ]
  output = policy._network(inputs[0], tf.constant(LENGTH))
  with graphs.session() as sess:
    logits, value, reward = sess.run([output.logits, output.value, inputs[1]])
    found = sess.run(summary)
  scalars, histograms = recorded.scalars(found), recorded.histograms(found)
  expected, kl, surrogate, entropy = compute_losses(
    log_softmax(logits), log_softmax(old), action, reward, value
  )
  for key, number in expected.items():
    np.testing.assert_allclose(scalars[key], number, 2e-5, 1e-5, err_msg=key)
  for key, values in (
    ('kl', kl),
    ('surrogate_loss', surrogate),
    ('entropy', entropy),
  ):
    bounds = [values.min(), values.max(), values.sum(), values.size]
    np.testing.assert_allclose(histograms[key], bounds, 2e-5, 1e-5)


def compute_losses(new, old, action, reward, value):
  """Scalars of an update, and terms, from logarithms of probabilities."""
  discount = configs.default()['discount']
  return_ = np.zeros((2, 4))
  for time in (2, 1, 0):
    return_[:, time] = (
      MASK[:, time] * reward[:, time] + discount * return_[:, time + 1]
    )
  return_ = return_[:, :3]
  advantage = return_ - value
  advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
  ratio = np.exp(pick(new, action) - pick(old, action))
  surrogate = -(MASK * ratio * advantage).mean(1)
  kl = (MASK * (np.exp(old) * (old - new)).sum(-1)).mean(1)
  above = np.maximum(0, kl - 2 * CONFIG['kl_target'])
  policy_loss = surrogate + 0.5 * kl + 1000 * above**2
  scalars = dict(
    avg_value_loss=(MASK * (return_ - value) ** 2).mean() / 2,
    avg_surr_loss=surrogate.mean(),
    avg_kl_penalty=0.5 * kl.mean(),
    avg_policy_loss=policy_loss.mean(),
    kl_change=kl.mean(),
    penalty=0.75,
  )
  entropy = -MASK * (np.exp(new) * new).sum(-1)
  return scalars, kl, surrogate, entropy


@pytest.mark.parametrize(
  'processes', [pytest.param(False, marks=pytest.mark.slow), True]
)
def test_run(tmp_path, processes):
  """Train, load and play; actions and logits are stored."""
  config = training_runs.config(env='CartPole-v1', policy_layers=[8, 4])
  utility.save_config(config, str(tmp_path))
  scores = list(train_ppo.train(config, processes))
  assert len(scores) == 4 and all(1 <= x <= 20 for x in scores)
  reader = tf.train.load_checkpoint(str(tmp_path))
  shapes = reader.get_variable_to_shape_map()
  buffers = [shapes[f'memory/buffer{index}'] for index in range(4)]
  assert buffers == [[2, 20, 4], [2, 20], [2, 20, 2], [2, 20]]
  assert 'memory/buffer4' not in shapes
  assert reader.get_variable_to_dtype_map()['memory/buffer1'] == tf.int32
  with agents.load(str(tmp_path)) as agent:
    action, _ = agent.predict(np.zeros(4, np.float32), deterministic=True)
    assert action.dtype == np.int64 and action in (0, 1)
    drawn = {int(agent.predict(np.zeros(4))[0]) for _ in range(40)}
    assert drawn == {0, 1}
    assert agents.evaluate(agent, 'CartPole-v1', 1, seed=0).lengths[0] >= 8
  played = visualize_ppo.visualize(
    str(tmp_path), str(tmp_path / 'videos'), 1, 1, None, processes
  )
  assert played[0]['return'] == played[0]['length']


def test_default_network_is_replaced(tmp_path):
  """As a notebook does it, without `agents.runs`."""
  config = tools.AttrDict(
    dict(configs.default(), **training_runs.SMALL), env='CartPole-v1'
  )
  with config.unlocked:
    config.update(steps=40, logdir=None, seed=0)
  assert all(np.isfinite(list(train_ppo.train(config, False))))


def strange(unused_config, unused_size, observations, *unused):
  value = tf.reduce_sum(observations, -1)
  return networks.NetworkOutput(None, value, value, value, None)


def test_networks_that_do_not_suit():
  recurrent = networks.recurrent_gaussian
  for network in (recurrent, functools.partial(recurrent), strange):
    tf.reset_default_graph()
    with pytest.raises(errors.UsageError, match='not support discrete actions'):
      define_policy({'network': network})

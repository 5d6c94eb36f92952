"""Losses of networks whose values are given, against sums by hand."""

import types

import numpy as np

from agents.tools.tf1 import tf
from baselines_her import losses
from baselines_her.settings import Settings
from tests.baselines_her import toy

SETTINGS = dict(
  gamma=0.5,
  clip_return=2.0,
  clip_pos_returns=True,
  max_u=2.0,
  action_l2=0.1,
  bc_loss=0,
  q_filter=0,
  batch_size=3,
  demo_batch_size=2,
  prm_loss_weight=0.25,
  aux_loss_weight=4.0,
)
BATCH = {'r': [[-1], [-1], [1]], 'u': [[9, 9], [0, 1], [1, 1]]}
MAIN = {
  'pi_tf': [[2, 0], [1, 1], [0, 0]],
  'Q_pi_tf': [[-1], [-2], [-3]],
  'Q_tf': [[0], [-1], [-4]],
}
TARGET = {'Q_pi_tf': [[-1], [-8], [3]]}


def constants(values):
  return {k: tf.constant(v, tf.float32) for k, v in values.items()}


def compute(main=MAIN, target=TARGET, **changes):
  """Evaluate all losses; returns a dict of numbers."""
  settings = Settings.read({**SETTINGS, **changes})
  with tf.Graph().as_default(), toy.session() as sess:
    found = losses.define_losses(
      constants(BATCH),
      types.SimpleNamespace(**constants(main)),
      types.SimpleNamespace(**constants(target)),
      settings,
    )
    wanted = {k: v for k, v in vars(found).items() if v is not None}
    return sess.run(wanted)


def test_critic():
  """Targets are -1.5, -5 cut to -2, and 2.5 cut to 0 or as it is."""
  assert compute()['critic'] == np.float32((1.5**2 + 1 + 4**2) / 3)
  found = compute(clip_pos_returns=False)['critic']
  np.testing.assert_allclose(found, (1.5**2 + 1 + 6.5**2) / 3, 1e-6)
  found = compute(clip_return=np.inf)['critic']
  np.testing.assert_allclose(found, (1.5**2 + 4**2 + 4**2) / 3, 1e-6)


def test_actor():
  """Mean value of the actions, and their mean square in units of max_u."""
  found = compute()
  np.testing.assert_allclose(found['actor'], 2 + 0.1 * 1.5 / 6, 1e-6)
  assert set(found) == {'critic', 'actor'}


def test_cloning():
  """Sum over the last rows, or those that the critic prefers."""
  found = compute(bc_loss=1)
  assert found['cloning'] == 1 + 2
  actor = 0.25 * compute()['actor'] + 4 * found['cloning']
  np.testing.assert_allclose(found['actor'], actor, 1e-6)
  assert compute(bc_loss=1, q_filter=1)['cloning'] == 1
  # The filter is strict.
  equal = {**MAIN, 'Q_tf': MAIN['Q_pi_tf']}
  assert compute(equal, bc_loss=1, q_filter=1)['cloning'] == 0


def test_targets_have_no_gradient():
  """Nor does the filter, which is a comparison."""
  settings = Settings.read(SETTINGS)
  with tf.Graph().as_default():
    main, target = constants(MAIN), constants(TARGET)
    loss = losses.critic_loss(
      constants(BATCH),
      types.SimpleNamespace(**main),
      types.SimpleNamespace(**target),
      settings,
    )
    assert tf.gradients(loss, target['Q_pi_tf']) == [None]
    assert tf.gradients(loss, main['Q_tf']) != [None]

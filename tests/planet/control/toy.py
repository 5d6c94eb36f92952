"""World of the recorded toy plans: a point that is pushed to a target.

vel' = decay vel + action M,  pos' = pos + step vel'
"""

import numpy as np

from agents.tools.tf1 import tf
from planet import models
from tests import golden, graphs


def make_cell():
  """Model whose state also holds its last action and where it began."""
  data = golden.load('planet/cem_toy')
  push = tf.constant(data['in/M'])
  decay, step = float(data['in/decay']), float(data['cfg/pos_step'])

  class ToyCell(models.Base):
    state_size = dict(pos=2, vel=2, action=2, origin=1)

    def __init__(self):
      super().__init__(self._advance, self._advance)

    def _advance(self, state, action, unused_obs):
      vel = decay * state['vel'] + tf.matmul(action, push)
      return dict(
        pos=state['pos'] + step * vel,
        vel=vel,
        action=tf.identity(action),
        origin=tf.identity(state['origin']),
      )

  return ToyCell()


def make_state(envs):
  """Recorded states of some environments, whose numbers are their origin."""
  data = golden.load('planet/cem_toy')
  state = {k: v[envs] for k, v in data.below('in/state').items()}
  state['action'] = np.zeros_like(state['pos'])
  state['origin'] = np.float32(envs)[:, None]
  return graphs.constants(state)


def objective(state):
  """Negative sum of squared distances to the target [batch]."""
  target = tf.constant(golden.load('planet/cem_toy')['in/target'])
  return -tf.reduce_sum((state['pos'] - target) ** 2, [1, 2])

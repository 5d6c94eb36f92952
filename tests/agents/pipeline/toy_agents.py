"""Agents that count instead of learning."""

import numpy as np

from agents.pipeline import base


class CountingAgent(base.AgentBase):
  """Acts with the number of its calls, divided by 100.

  Args:
    session: Session.
    size: Size of the actions.
    **kwargs: Passed on.

  Attributes:
    calls: List of the arguments of all calls.
  """

  def __init__(self, session, size=1, **kwargs):
    space = {'typ': 'Box', 'dim': [size], 'lim': [[5] * size, [6] * size]}
    super().__init__(session, {}, action_space=space, **kwargs)
    self._size = size
    self.calls = []

  def action_generator(
    self, observations, hidden_state, masks, deterministic=False
  ):
    self.calls.append((observations, hidden_state, masks, deterministic))
    number = len(self.calls)
    actions = np.full((len(masks), self._size), number / 100, np.float32)
    return {
      'actions': actions,
      'hidden_state': hidden_state + 1,
      'artifacts': {'twice': 2 * actions},
    }

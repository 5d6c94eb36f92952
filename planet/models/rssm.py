"""Recurrent state space model with deterministic and stochastic paths."""

from collections.abc import Callable

from agents.tools import layers
from agents.tools.tf1 import tf
from planet.models import base


class RSSM(base.Base):
  """Recurrent state space model.

    h_t  = f(h_{t-1}, s_{t-1}, a_{t-1})    belief, deterministic
         = GRU(x_t, h_{t-1}), x_t = dense(s_{t-1}, a_{t-1})
    s_t ~ p(s_t | h_t)                     prior
    s_t ~ q(s_t | h_t, o_t)                posterior

  Source: Hafner et al. (2019), Learning Latent Dynamics for Planning from
  Pixels, arXiv:1811.04551, section 3, equation 4.

  Args:
    state_size: Size of the stochastic state s.
    belief_size: Size of the deterministic state h.
    embed_size: Units of the hidden layers.
    future_rnn: Whether the prior depends on the belief h_t or only on x_t.
    mean_only: Whether to use means instead of samples.
    min_stddev: Minimum standard deviation, added to the network output.
    activation: Activation of the hidden layers; `tf.nn.elu` by default.
    num_layers: Number of hidden layers of each network.
  """

  def __init__(
    self,
    state_size: int,
    belief_size: int,
    embed_size: int,
    future_rnn: bool = True,
    mean_only: bool = False,
    min_stddev: float = 0.1,
    activation: Callable | None = None,
    num_layers: int = 1,
  ) -> None:
    self._state_size = state_size
    self._belief_size = belief_size
    self._embed_size = embed_size
    self._future_rnn = future_rnn
    self._mean_only = mean_only
    self._min_stddev = min_stddev
    self._activation = activation or tf.nn.elu
    self._num_layers = num_layers
    super().__init__(
      tf.make_template('transition', self._transition),
      tf.make_template('posterior', self._posterior),
    )

  @property
  def state_size(self) -> dict[str, int]:
    return {
      'mean': self._state_size,
      'stddev': self._state_size,
      'sample': self._state_size,
      'belief': self._belief_size,
      'rnn_state': self._belief_size,
    }

  def features_from_state(self, state: dict[str, tf.Tensor]) -> tf.Tensor:
    """Concatenate sample and belief, [..., state + belief]."""
    return tf.concat([state['sample'], state['belief']], -1)

  def _transition(self, prev_state, prev_action, zero_obs):
    del zero_obs
    inputs = self._hidden([prev_state['sample'], prev_action])
    belief = layers.gru_cell(inputs, prev_state['rnn_state'])
    hidden = self._hidden([belief if self._future_rnn else inputs])
    return {**self._gaussian(hidden), 'belief': belief, 'rnn_state': belief}

  def _posterior(self, prev_state, prev_action, obs, prior=None):
    if prior is None:
      prior = self._transition_tpl(prev_state, prev_action, tf.zeros_like(obs))
    hidden = self._hidden([prior['belief'], obs])
    return {
      **self._gaussian(hidden),
      'belief': prior['belief'],
      'rnn_state': prior['rnn_state'],
    }

  def _hidden(self, inputs):
    hidden = tf.concat(inputs, -1)
    for _ in range(self._num_layers):
      hidden = layers.dense(hidden, self._embed_size, self._activation)
    return hidden

  def _gaussian(self, hidden):
    return base.gaussian_state(
      hidden, self._state_size, self._min_stddev, self._mean_only
    )

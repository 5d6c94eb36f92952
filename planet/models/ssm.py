"""State space model with a purely stochastic state."""

from collections.abc import Callable

from agents.tools import layers
from agents.tools.tf1 import tf
from planet.models import base


class SSM(base.Base):
  """Gaussian state space model.

  The posterior combines mean and standard deviation of the prior with the
  observation. Source: arXiv:1811.04551, section 3, figure 2b.

  Args:
    state_size: Size of the state.
    embed_size: Units of the hidden layers.
    mean_only: Whether to use means instead of samples.
    activation: Activation of the hidden layers; `tf.nn.elu` by default.
    min_stddev: Minimum standard deviation, added to the network output.
  """

  def __init__(
    self,
    state_size: int,
    embed_size: int,
    mean_only: bool = False,
    activation: Callable | None = None,
    min_stddev: float = 1e-5,
  ) -> None:
    self._state_size = state_size
    self._embed_size = embed_size
    self._mean_only = mean_only
    self._activation = activation or tf.nn.elu
    self._min_stddev = min_stddev
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
    }

  def _transition(self, prev_state, prev_action, zero_obs):
    del zero_obs
    return self._gaussian([prev_state['sample'], prev_action])

  def _posterior(self, prev_state, prev_action, obs, prior=None):
    if prior is None:
      prior = self._transition_tpl(prev_state, prev_action, tf.zeros_like(obs))
    return self._gaussian([prior['mean'], prior['stddev'], obs])

  def _gaussian(self, inputs):
    hidden = layers.dense(
      tf.concat(inputs, -1), self._embed_size, self._activation
    )
    return base.gaussian_state(
      hidden, self._state_size, self._min_stddev, self._mean_only
    )

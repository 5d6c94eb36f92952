"""Base class of latent dynamics models."""

import inspect
from collections.abc import Callable
from typing import Any

from tensorflow_probability import distributions as tfd

from agents.tools import layers, nested, scopes
from agents.tools.tf1 import tf
from planet.tools.mask import mask as mask_tensor


class Base:
  """Recurrent cell with a prior and a posterior over the next state.

  The prior predicts the next state from the previous one and the action. The
  posterior also uses the observation; the next step continues from its sample.

  Subclasses define the property `state_size`, a dict from the entries of the
  state to their sizes. Gaussian states have the entries `mean`, `stddev` and
  `sample`.

  Args:
    transition_tpl: Template called with the previous state, the previous
      action and an observation of zeros. Returns the prior.
    posterior_tpl: Template called with the previous state, the previous
      action and the observation. Returns the posterior.
    reuse: Unused; templates share their weights.
  """

  def __init__(
    self, transition_tpl: Callable, posterior_tpl: Callable, reuse: Any = None
  ) -> None:
    del reuse
    self._transition_tpl = transition_tpl
    self._posterior_tpl = posterior_tpl
    self._complete = False

  @property
  def state_size(self) -> dict[str, int]:
    raise NotImplementedError

  @property
  def output_size(self) -> tuple[dict[str, int], dict[str, int]]:
    return (self.state_size, self.state_size)

  @property
  def updates(self) -> list:
    return []

  @property
  def losses(self) -> list:
    return []

  def zero_state(
    self, batch_size: int | tf.Tensor, dtype: tf.DType
  ) -> dict[str, tf.Tensor]:
    """Return an initial state of zeros, a dict of tensors [batch, size]."""
    return nested.map(
      lambda size: tf.zeros(tf.stack([batch_size, size]), dtype),
      self.state_size,
    )

  def __call__(
    self,
    inputs: tuple[Any, Any, tf.Tensor],
    prev_state: dict[str, tf.Tensor],
    scope: str | None = None,
  ) -> tuple[Any, dict[str, tf.Tensor]]:
    """Advance by one step by `call`, as recurrent cells do.

    Args:
      inputs: See `call`.
      prev_state: Dict of tensors [batch, size].
      scope: Unused.

    Returns:
      See `call`.
    """
    with scopes.uncached_scope(type(self).__name__.lower()):
      return self.call(inputs, prev_state)

  def call(
    self,
    inputs: tuple[Any, Any, tf.Tensor],
    prev_state: dict[str, tf.Tensor],
  ) -> tuple[Any, dict[str, tf.Tensor]]:
    """Advance by one step; subclasses may override this.

    Args:
      inputs: Tuple of the encoded observation [batch, embedding], the
        previous action [batch, actions], and whether to use the observation,
        bool [batch, 1]; the first entry applies to the whole batch.
      prev_state: Dict of tensors [batch, size].

    Returns:
      Tuple of outputs and the next state. The outputs are the prior and the
      posterior; the next state is the posterior, which equals the prior if the
      observation is not used.
    """
    obs, prev_action, use_obs = inputs
    return self._define_next(obs, prev_action, use_obs[0, 0], prev_state)

  def step(
    self,
    obs: Any,
    prev_action: Any,
    use_obs: bool | tf.Tensor,
    prev_state: dict[str, tf.Tensor],
  ) -> tuple[Any, dict[str, tf.Tensor]]:
    """Advance by one step, by `call` if a subclass overrides it.

    Args:
      obs: Encoded observation [batch, embedding]; may be nested if the
        templates support it, like the action.
      prev_action: Previous action [batch, actions].
      use_obs: Scalar bool tensor, or a bool fixed when the graph is built.
      prev_state: Dict of tensors [batch, size].

    Returns:
      See `call`.
    """
    # Episodes that follow an update in the same execution must use the new
    # weights.
    with scopes.uncached_scope(type(self).__name__.lower()):
      if type(self).call is Base.call:
        return self._define_next(obs, prev_action, use_obs, prev_state)
      batch_size = tf.shape(nested.flatten(prev_state)[0])[0]
      inputs = obs, prev_action, tf.fill([batch_size, 1], use_obs)
      return self.call(inputs, prev_state)

  def _define_next(self, obs, prev_action, use_obs, prev_state):
    prior = self._transition_tpl(
      prev_state, prev_action, nested.map(tf.zeros_like, obs)
    )
    # The next step waits for both samples: only then are the random numbers
    # of seeded runs drawn in the same order.
    with tf.control_dependencies(nested.flatten(prior)):
      if use_obs is False:
        posterior = prior
        if not self._complete:
          # Create all weights in the first step, even unused ones.
          self._define_posterior(prev_state, prev_action, obs, prior)
      elif use_obs is True:
        posterior = self._define_posterior(prev_state, prev_action, obs, prior)
      else:
        posterior = tf.cond(
          use_obs,
          lambda: self._define_posterior(prev_state, prev_action, obs, prior),
          lambda: nested.map(tf.identity, prior),
        )
    self._complete = True
    return (prior, posterior), posterior

  def _define_posterior(self, prev_state, prev_action, obs, prior):
    """Define the posterior, from the existing prior if it can take that."""
    method = getattr(self, '_posterior', self._posterior_tpl)
    takes_prior = 'prior' in inspect.signature(method).parameters
    more = {'prior': prior} if takes_prior else {}
    return self._posterior_tpl(prev_state, prev_action, obs, **more)

  def features_from_state(self, state: dict[str, tf.Tensor]) -> tf.Tensor:
    """Return the input of the heads, tensor [..., features]."""
    return state['sample']

  def dist_from_state(
    self, state: dict[str, tf.Tensor], mask: tf.Tensor | None = None
  ) -> tfd.Distribution:
    """Return the distribution of the stochastic part of a state.

    Args:
      state: Dict of tensors [..., size].
      mask: Bool tensor of the leading dimensions; where it is False, the
        standard deviation is one.

    Returns:
      Normal distribution over the last dimension.
    """
    stddev = state['stddev']
    if mask is not None:
      stddev = mask_tensor(stddev, mask, value=1)
    return tfd.MultivariateNormalDiag(state['mean'], stddev)

  def divergence_from_states(
    self,
    lhs: dict[str, tf.Tensor],
    rhs: dict[str, tf.Tensor],
    mask: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Compute the Kullback-Leibler divergence from one state to another.

    Args:
      lhs: Dict of tensors [..., size].
      rhs: Dict of tensors [..., size].
      mask: Bool tensor of the leading dimensions; the divergence is zero
        where it is False.

    Returns:
      Tensor [...], KL(lhs || rhs) summed over the last dimension.
    """
    divergence = tfd.kl_divergence(
      self.dist_from_state(lhs, mask), self.dist_from_state(rhs, mask)
    )
    if mask is not None:
      divergence = mask_tensor(divergence, mask)
    return divergence


def gaussian_state(
  hidden: tf.Tensor, size: int, min_stddev: float, mean_only: bool
) -> dict[str, tf.Tensor]:
  """Define a normal distribution from a hidden layer and sample from it.

  Args:
    hidden: Tensor [batch, features].
    size: Number of dimensions of the state.
    min_stddev: Minimum standard deviation, added to the network output.
    mean_only: Whether to use the mean instead of a sample.

  Returns:
    Dict of `mean`, `stddev` and `sample`, tensors [batch, size].
  """
  mean = layers.dense(hidden, size)
  stddev = layers.dense(hidden, size, tf.nn.softplus) + min_stddev
  if mean_only:
    sample = mean
  else:
    # Loops may sample several steps in any order; waiting for the mean makes
    # seeded runs reproducible.
    with tf.control_dependencies([mean]):
      noise = tf.random_normal(tf.shape(mean))
    sample = mean + stddev * noise
  return {'mean': mean, 'stddev': stddev, 'sample': sample}

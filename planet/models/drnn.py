"""Deterministic RNNs around a stochastic state."""

from collections.abc import Callable

from agents.tools import layers
from agents.tools.tf1 import tf
from planet.models import base


class DRNN(base.Base):
  """Model with a recurrent encoder, a recurrent decoder and optional links.

  Prior and posterior share a network; the observation of the prior is zero. As
  in the original, the hidden layer always uses ReLU.

  Args:
    state_size: Size of the stochastic state.
    belief_size: Size of the states of both recurrent networks.
    embed_size: Units of the hidden layer.
    mean_only: Whether to use means instead of samples.
    min_stddev: Minimum standard deviation, added to the network output.
    activation: Unused.
    encoder_to_decoder: Feed the previous encoder state to the decoder.
    sample_to_sample: Feed the previous sample to the next one.
    sample_to_encoder: Feed the previous sample to the encoder.
    decoder_to_encoder: Feed the previous decoder state to the encoder.
    decoder_to_sample: Feed the previous decoder state to the sample.
    action_to_decoder: Feed the action to the decoder.
  """

  def __init__(
    self,
    state_size: int,
    belief_size: int,
    embed_size: int,
    mean_only: bool = False,
    min_stddev: float = 0.1,
    activation: Callable | None = None,
    encoder_to_decoder: bool = False,
    sample_to_sample: bool = True,
    sample_to_encoder: bool = True,
    decoder_to_encoder: bool = False,
    decoder_to_sample: bool = True,
    action_to_decoder: bool = False,
  ) -> None:
    del activation
    self._state_size = state_size
    self._belief_size = belief_size
    self._embed_size = embed_size
    self._mean_only = mean_only
    self._min_stddev = min_stddev
    self._encoder_to_decoder = encoder_to_decoder
    self._sample_to_sample = sample_to_sample
    self._sample_to_encoder = sample_to_encoder
    self._decoder_to_encoder = decoder_to_encoder
    self._decoder_to_sample = decoder_to_sample
    self._action_to_decoder = action_to_decoder
    posterior = tf.make_template('posterior', self._posterior)
    super().__init__(posterior, posterior)

  @property
  def state_size(self) -> dict[str, int]:
    return {
      'encoder_state': self._belief_size,
      'decoder_state': self._belief_size,
      'mean': self._state_size,
      'stddev': self._state_size,
      'sample': self._state_size,
    }

  def features_from_state(self, state: dict[str, tf.Tensor]) -> tf.Tensor:
    """Return the state of the decoder, [..., belief]."""
    return state['decoder_state']

  def _posterior(self, prev_state, prev_action, obs):
    encoded = self._define_encoder(prev_state, prev_action, obs)
    state = self._define_sample(prev_state, encoded)
    decoded = self._define_decoder(prev_state, prev_action, state['sample'])
    return {**state, 'encoder_state': encoded, 'decoder_state': decoded}

  def _define_encoder(self, prev_state, prev_action, obs):
    inputs = [obs, prev_action]
    if self._sample_to_encoder:
      inputs.append(prev_state['sample'])
    if self._decoder_to_encoder:
      inputs.append(prev_state['decoder_state'])
    return layers.gru_cell(tf.concat(inputs, -1), prev_state['encoder_state'])

  def _define_sample(self, prev_state, encoded):
    inputs = [encoded]
    if self._sample_to_sample:
      inputs.append(prev_state['sample'])
    if self._decoder_to_sample:
      inputs.append(prev_state['decoder_state'])
    hidden = layers.dense(tf.concat(inputs, -1), self._embed_size, tf.nn.relu)
    return base.gaussian_state(
      hidden, self._state_size, self._min_stddev, self._mean_only
    )

  def _define_decoder(self, prev_state, prev_action, sample):
    inputs = [sample]
    if self._encoder_to_decoder:
      inputs.append(prev_state['encoder_state'])
    if self._action_to_decoder:
      inputs.append(prev_action)
    return layers.gru_cell(tf.concat(inputs, -1), prev_state['decoder_state'])

"""Networks of the model: latent dynamics, encoder and heads."""

from agents.tools.tf1 import tf
from planet.tools import unroll
from planet.tools.attr_dict import AttrDict


def define_networks(data: dict[str, tf.Tensor], config: AttrDict) -> AttrDict:
  """Define model, encoder and heads, and apply them to a batch of data.

  Args:
    data: Dict of tensors [batch, time, ...].
    config: Configuration.

  Returns:
    Locked AttrDict of `cell`, `encoder`, `heads`, `data`, `embedded`, and the
    states `prior` and `posterior`, dicts of tensors [batch, time, ...].
  """
  if config.observation == 'vector':
    parts = [data[key] for key in config.observation_keys]
    data = dict(data, vector=tf.concat(parts, -1))
  cell = config.cell()
  encoder = tf.make_template('encoder', config.encoder, create_scope_now_=True)
  heads = _define_heads(data, cell, config)
  embedded = encoder(data)
  prior, posterior = unroll.closed_loop(
    cell, embedded, data['action'], config.debug
  )
  return AttrDict(
    cell=cell,
    encoder=encoder,
    heads=heads,
    data=data,
    embedded=embedded,
    prior=prior,
    posterior=posterior,
  )


def _define_heads(data, cell, config):
  """Return templates of all heads, and create their weights."""
  heads = AttrDict(_unlocked=True)
  features = cell.features_from_state(cell.zero_state(1, tf.float32))
  for key, head in config.heads.items():
    source = 'action' if key == 'action_target' else key
    heads[key] = tf.make_template(
      f'head_{key}',
      head,
      create_scope_now_=True,
      data_shape=data[source].shape[2:].as_list(),
    )
    heads[key](features)
  heads.lock()
  return heads

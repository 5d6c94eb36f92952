"""Encoders of observations, and heads that predict from features."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'conv_32': 'planet.networks.conv_sizes:conv_32',
    'conv_96': 'planet.networks.conv_sizes:conv_96',
    'conv_128': 'planet.networks.conv_sizes:conv_128',
    'conv_small': 'planet.networks.conv_sizes:conv_small',
    'conv_ha': 'planet.networks.conv_ha',
    'feed_forward': 'planet.networks.basic:feed_forward',
    'vector': 'planet.networks.vector',
  },
)

"""Encoders of observations, and heads that predict from features."""

from planet.networks import conv_ha, vector
from planet.networks.basic import feed_forward
from planet.networks.conv_sizes import (
  conv_32,
  conv_32_small,
  conv_96,
  conv_128,
  conv_128_deep,
  conv_small,
)

__all__ = [
  'conv_32',
  'conv_32_small',
  'conv_96',
  'conv_128',
  'conv_128_deep',
  'conv_ha',
  'conv_small',
  'feed_forward',
  'vector',
]

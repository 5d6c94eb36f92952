"""Encoders of observations and heads that predict from features."""

from planet.networks import conv_ha as conv_ha
from planet.networks import joint as joint
from planet.networks import vector as vector
from planet.networks.basic import feed_forward as feed_forward
from planet.networks.conv_sizes import conv_32 as conv_32
from planet.networks.conv_sizes import conv_32_small as conv_32_small
from planet.networks.conv_sizes import conv_96 as conv_96
from planet.networks.conv_sizes import conv_128 as conv_128
from planet.networks.conv_sizes import conv_128_deep as conv_128_deep
from planet.networks.conv_sizes import conv_small as conv_small

"""Tests of configurations as plain data."""

import collections

import numpy as np

from agents.run import plain_data
from agents.tools import nested
from agents.tools.attr_dict import AttrDict


def test_values():
  """Functions and classes become their names; tuples become lists."""
  value = {
    'number': np.float32(0.5),
    'whole': np.int64(3),
    'layers': (200, 100),
    'function': nested.flatten,
    'class': AttrDict,
    'nothing': None,
    'flag': True,
    'array': np.arange(3),
  }
  result = plain_data.to_plain(value)
  assert result == {
    'number': 0.5,
    'whole': 3,
    'layers': [200, 100],
    'function': {'reference': 'agents.tools.nested:flatten_'},
    'class': {'reference': 'agents.tools.attr_dict:AttrDict'},
    'nothing': None,
    'flag': True,
    'array': [0, 1, 2],
  }
  assert result['flag'] is True and type(result['whole']) is int


def test_named_tuples_are_lists():
  point = collections.namedtuple('Point', 'x, y')
  assert plain_data.to_plain(point(1, 'a')) == [1, 'a']

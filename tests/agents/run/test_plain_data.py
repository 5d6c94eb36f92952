"""Tests of configurations as plain data."""

import collections
import functools

import numpy as np
import pytest

from agents.run import plain_data
from agents.tools import nested
from agents.tools.attr_dict import AttrDict


def test_round_trip():
  """Functions, classes and partial calls come back; tuples become lists."""
  value = {
    'number': np.float32(0.5),
    'whole': np.int64(3),
    'layers': (200, 100),
    'function': nested.flatten,
    'class': AttrDict,
    'partial': functools.partial(dict, [('a', 1)], b=functools.partial(int)),
    'nothing': None,
    'flag': True,
    'array': np.arange(3),
  }
  result = plain_data.from_plain(plain_data.to_plain(value))
  assert result['number'] == 0.5 and result['whole'] == 3
  assert result['layers'] == [200, 100] and result['array'] == [0, 1, 2]
  assert result['function'] is nested.flatten
  assert result['class'] is AttrDict
  assert result['partial']()['a'] == 1
  assert result['partial'].keywords['b']('7') == 7
  assert result['nothing'] is None and result['flag'] is True


def test_named_tuples_are_lists():
  point = collections.namedtuple('Point', 'x, y')
  assert plain_data.to_plain(point(1, 'a')) == [1, 'a']


@pytest.mark.parametrize('name', ['no.such.module:f', 'agents.tools:missing'])
def test_unknown_references(name):
  with pytest.raises(ValueError, match=name):
    plain_data.from_plain({'reference': name})

"""Tests of configurations as plain data."""

import collections
import functools

import numpy as np
import pytest

from agents import utility
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


def test_saved_configurations(tmp_path):
  """`agents.utility` stores them, and gives them back locked."""
  config = AttrDict(layers=(2, 3), function=nested.flatten, rate=1e-4)
  assert utility.save_config(config, str(tmp_path)).logdir == str(tmp_path)
  loaded = utility.load_config(str(tmp_path))
  assert loaded.function is nested.flatten and loaded.rate == 1e-4
  assert list(loaded.layers) == [2, 3]
  with pytest.raises(RuntimeError):
    loaded.rate = 1
  with pytest.raises(IOError):
    utility.load_config(str(tmp_path / 'missing'))
  (tmp_path / 'config.yaml').write_text('a: [')
  with pytest.raises(ValueError, match='Repair the file'):
    utility.load_config(str(tmp_path))

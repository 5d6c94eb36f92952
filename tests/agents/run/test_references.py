"""Names of objects and plain values, to store them."""

import collections
import functools

import numpy as np
import pytest

from agents.run import errors, references
from agents.tools import nested
from agents.tools.attr_dict import AttrDict


class Named:
  def method(self):
    pass


def test_names_find_objects_again():
  for value in (Named, Named.method, test_names_find_objects_again):
    name = references.name_of(value)
    assert references.resolve(name, references.EVERYTHING) is value


@pytest.mark.parametrize(
  'value, name',
  [
    (lambda: None, f'<{__name__}:<lambda>-'),
    (functools.partial(print), '<functools:partial-'),
    (Named(), f'<{__name__}:Named>'),
  ],
)
def test_what_no_name_finds(value, name):
  assert references.name_of(value).startswith(name)
  with pytest.raises(errors.UsageError, match='cannot be restored'):
    references.resolve(name, references.EVERYTHING)


@pytest.mark.parametrize(
  'given, names',
  [
    ('mymod', ('mymod',)),
    (['mymod'], ('mymod',)),
    (('one', 'two.three'), ('one', 'two.three')),
    # As the values of --trust.
    (['one,two', 'three'], ('one', 'two', 'three')),
    # A path may have a comma.
    ('/data/a,b.npz', ('/data/a,b.npz',)),
    (references.Trust(('mymod',)), ('mymod',)),
    (None, ()),
    ('', ()),
    ([], ()),
  ],
)
def test_one_meaning_of_trust(given, names):
  """A string is one name, a list has several."""
  assert references.parse(given) == references.Trust(names)


@pytest.mark.parametrize('given', [5, [5], pytest, b'mymod', ['mymod', None]])
def test_what_is_no_trust(given):
  with pytest.raises(errors.UsageError, match='Cannot trust .* list of names'):
    references.parse(given)


def returns(value):
  return lambda: lambda: value


@pytest.mark.parametrize(
  'value, same, other',
  [
    (
      functools.partial(Named, a=1, b=2),
      functools.partial(Named, b=2, a=1),
      functools.partial(Named, a=1, b=3),
    ),
    (functools.partial(Named, 1), functools.partial(Named, 1), None),
    (lambda: Named(), lambda: Named(), lambda: returns()),
    (lambda: [1, lambda: 2], lambda: [1, lambda: 2], lambda: [1, lambda: 3]),
    (lambda x=1: x, lambda x=1: x, lambda x=2: x),
    (returns(1), returns(1), returns(2)),
    (returns(print), returns(print), returns(len)),
  ],
)
def test_what_a_function_does_is_part_of_its_name(value, same, other):
  assert references.name_of(value) == references.name_of(same)
  assert references.name_of(value) != references.name_of(other)


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
  result = references.to_plain(value)
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
  assert references.to_plain(point(1, 'a')) == [1, 'a']

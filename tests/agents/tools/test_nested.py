"""Functions over nested structures, against `planet/nested.json`."""

import collections

import pytest

from agents.tools import nested
from agents.tools.attr_dict import AttrDict
from tests import golden

ROWS = golden.load_json('planet/nested')['rows']
FUNCTIONS = {
  'double': lambda x: x * 2,
  'add': lambda *x: sum(x),
  'pair': lambda *x: tuple(x),
  'even': lambda x: x % 2 == 0,
  'never': lambda *x: False,
  'any_div4': lambda *x: any(value % 4 == 0 for value in x),
  'always': lambda *x: True,
  'gt1': lambda x: x > 1,
}
Pair = collections.namedtuple('Pair', 'a, b')


def decode(value):
  """Structure that a recorded value describes."""
  if not isinstance(value, dict):
    return value
  if 'namedtuple' in value:
    return Pair(**{k: decode(v) for k, v in value['namedtuple'].items()})
  if 'tuple' in value:
    return tuple(decode(x) for x in value['tuple'])
  if 'list' in value:
    return [decode(x) for x in value['list']]
  classes = dict(
    dict=dict, AttrDict=AttrDict, OrderedDict=collections.OrderedDict
  )
  return classes[value['class']](
    {key: decode(value['dict'][key]) for key in value['order']}
  )


def describe(value):
  """Types and leaves of a structure; the order of keys does not matter."""
  if isinstance(value, dict):
    children = {key: describe(x) for key, x in value.items()}
  elif isinstance(value, (tuple, list)):
    children = [describe(x) for x in value]
  else:
    return value
  return type(value), children


@pytest.mark.parametrize(
  'row', ROWS, ids=[f'{i}-{x["op"]}-{x["fn"]}' for i, x in enumerate(ROWS)]
)
def test_recorded_row(row):
  """Result or error of one call of the original, exactly."""
  args = [decode(x) for x in row['args']]
  if row['fn']:
    args = [FUNCTIONS[row['fn']]] + args
  function = getattr(nested, row['op'])
  if 'error' in row:
    assert row['error'] == 'ValueError'
    with pytest.raises(ValueError):
      function(*args, **row['kwargs'])
  else:
    result = function(*args, **row['kwargs'])
    assert describe(result) == describe(decode(row['result']))


def test_every_function_has_rows():
  assert {row['op'] for row in ROWS} == {'map', 'zip', 'flatten', 'filter'}


@pytest.mark.parametrize(
  'structure, leaves',
  [
    ({'a': [1, 2], 'b': [3, 4]}, (1, 2, 3, 4)),
    ({'b': [3], 'a': [1, 2]}, (1, 2, 3)),
    (({'z': 1, 'a': (2, [])}, 3), (2, 1, 3)),
  ],
)
def test_flatten_keeps_every_leaf(structure, leaves):
  """The original of PPO lost leaves of lists of equal length."""
  assert nested.flatten(structure) == leaves


def test_results_are_locked():
  result = nested.map(FUNCTIONS['double'], AttrDict(a=1))
  assert isinstance(result, AttrDict) and result.a == 2
  with pytest.raises(RuntimeError):
    result.a = 3

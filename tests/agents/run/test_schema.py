"""Declared settings: checked values, and what errors say."""

from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Gt, Interval, Len, MinLen

from agents.run import errors, schema
from agents.run.schema import setting


class Example(schema.Settings):
  called = 'Value {!r}'

  size: schema.Positive = setting(3, 'how large', fixed='it is built so')
  shape: Annotated[list[schema.Positive], Len(2, 2)] = setting([5, 5])
  scale: schema.Amount | None = setting(None)
  rate: Annotated[schema.Finite, Gt(0)] = setting(0.1)
  share: Annotated[schema.Number, Interval(ge=0, le=0.5)] = setting(0.1)
  kind: Annotated[Literal[32, 64], schema.WHOLE] = setting(64)
  fast: schema.Flag = setting(True)
  place: schema.Name | schema.Whole | None = setting(None)
  entries: list[dict[str, Any]] = setting([{}])
  bias: Annotated[list[schema.Number], MinLen(1)] | None = setting(None)


@pytest.mark.parametrize(
  'name, value, wanted',
  [
    ('size', 5e7, 50000000),
    ('size', np.int64(3), 3),
    ('shape', (5, 6.0), [5, 6]),
    ('scale', None, None),
    ('scale', 3, 3.0),
    ('scale', np.float32(0.5), 0.5),
    ('fast', np.True_, True),
    ('kind', 64.0, 64),
    ('place', 'x', 'x'),
    ('place', 3, 3),
    ('entries', [], []),
    ('bias', [1, 2], [1.0, 2.0]),
  ],
)
def test_values(name, value, wanted):
  found = Example.check({name: value})[name]
  assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize(
  'name, value',
  [
    ('size', 0),
    ('size', True),
    ('size', '5'),
    ('size', float('inf')),
    ('shape', [5]),
    ('shape', 'ab'),
    ('shape', [5, 0]),
    ('scale', -1),
    ('scale', float('nan')),
    ('rate', float('inf')),
    ('share', 1),
    ('kind', 65),
    ('kind', True),
    ('fast', 1),
    ('place', 1.5),
    ('place', ''),
    ('entries', 'x'),
    ('entries', [1]),
    ('bias', []),
    ('bias', ['x']),
  ],
)
def test_errors(name, value):
  """One sentence that names the setting and the value."""
  with pytest.raises(errors.UsageError) as error:
    Example.check({name: value})
  text = str(error.value)
  assert text.startswith(f'Value {name!r} is {value!r}: ')
  assert text.endswith('.') and '\n' not in text


@pytest.mark.parametrize('text', ['1e-4', ' 2 ', '1_000'])
def test_numbers_that_are_texts(text):
  """As PyYAML reads 1e-4."""
  with pytest.raises(errors.UsageError, match='not a text; PyYAML reads 1e-4'):
    Example.read({'scale': text, 'size': text})


def test_unknown_names():
  with pytest.raises(
    errors.UsageError, match="'sise' is unknown. Did you mean"
  ):
    Example.check({'sise': 3})


def test_defaults_are_not_shared():
  Example.default('shape').append(3)
  assert Example.defaults()['shape'] == [5, 5]
  assert Example.fixed('size') == 'it is built so'
  assert Example.fixed('shape') is None


def test_table():
  line = Example.table()[0]
  assert line.split() == ['size', '3', 'how', 'large']


@pytest.mark.parametrize(
  'text, value',
  [
    ('true', True),
    ('None', None),
    ('1e-3', 1e-3),
    ('(1,2)', (1, 2)),
    ('{a: [b]}', {'a': ['b']}),
    ('a: b', 'a: b'),
    ('2020-01-01', '2020-01-01'),
    ('~/x #1', '~/x #1'),
    ('', ''),
  ],
)
def test_values_of_texts(text, value):
  assert schema.parse_value(text) == value


def test_mappings():
  assert schema.parse_mapping('{a: 5e7}', 'params', '{a: 1}') == {'a': 5e7}
  assert schema.parse_mapping('', 'params', '{a: 1}') == {}
  for text, message in (('{a: [', 'is not valid YAML'), ('[1]', 'a mapping')):
    with pytest.raises(errors.UsageError, match=f'--params .*{message}'):
      schema.parse_mapping(text, 'params', '{a: 1}')


@pytest.mark.parametrize(
  'example, value, wanted',
  [
    (2, 3.0, 3),
    (0.5, 1, 1.0),
    (None, 'x', 'x'),
    ([1], (2,), [2]),
  ],
)
def test_examples(example, value, wanted):
  assert schema.check_like(example, value, 'Key') == wanted

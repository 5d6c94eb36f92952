"""Names of objects and plain values, to store them."""

import collections
import enum
import functools
import os
import re
import subprocess
import sys
import types

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


def test_objects_of_the_main_program(monkeypatch):
  """Found where they are the same, and trusted."""
  main = types.ModuleType('__main__')
  text = 'class Net:\n  part = 1\ndef f():\n  return {}\ng = lambda: 1\n'
  exec(text.format(1), main.__dict__)
  monkeypatch.setitem(sys.modules, '__main__', main)
  trust = references.Trust(('__main__',))
  names = [references.name_of(x) for x in (main.Net, main.f)]
  assert [references.resolve(x, trust) for x in names] == [main.Net, main.f]
  for name in names:
    with pytest.raises(references.NotTrusted, match="trust='__main__'"):
      references.resolve(name)
  unknown = *map(references.name_of, (main.g, main.Net())), '<__main__:>'
  exec(text.format(2), main.__dict__)
  for name in (names[1], *unknown, '<__main__:Net.part>', '<Net>'):
    with pytest.raises(errors.UsageError, match='are found in that program'):
      references.resolve(name, trust)


def define(text, **around):
  """Function of a script, with what is around it."""
  place = {'__name__': '__main__', **around}
  exec(f'def f(x=None, *, key=LIMIT):\n  {text}\n', place)
  return place['f']


@pytest.mark.parametrize(
  'text, around, other',
  [
    ('return SIZE', {'SIZE': 1}, {'SIZE': 2}),
    ('return lambda: SIZE', {'SIZE': 1}, {'SIZE': 2}),
    ('return SIZE["a"]', {'SIZE': {'a': 1}}, {'SIZE': {'a': 2}}),
    ('return MAKE()', {'MAKE': lambda: 1}, {'MAKE': lambda: 2}),
    ('return MAKE()', {'MAKE': list}, {'MAKE': dict}),
    (
      'return MAKE()',
      {'MAKE': functools.partial(lambda x: x, 1)},
      {'MAKE': functools.partial(lambda x: x + 1, 1)},
    ),
    ('return SIZE', {'SIZE': np.ones(3)}, {'SIZE': np.zeros(3)}),
    ('return key', {}, {'LIMIT': 4}),
    ('return f', {}, None),
    ('return time.time()', {'time': re}, None),
    ('global N; N = N + 1; return N', {'N': 1}, None),
  ],
)
def test_what_is_around_a_function(text, around, other):
  """Globals that it reads; modules and its own counters do not matter."""
  names = [
    references.name_of(define(text, **{'LIMIT': 3, **x}))
    for x in (around, {**around, 'UNUSED': 5}, other or around)
  ]
  assert names[0] == names[1]
  assert (names[0] == names[2]) == (other is None)


def test_functions_in_a_table_that_they_use():
  """As in a script that registers its environments in a dictionary."""

  def name(text):
    table = {'size': np.arange(3)}
    make = define('return TABLE["other"]', TABLE=table, LIMIT=3)
    table.update(make=make, other=define(text, TABLE=table, LIMIT=3))
    return references.name_of(make)

  assert name('return TABLE["make"]') == name('return TABLE["make"]')
  assert name('return TABLE["make"]') != name('return 1')


def test_runs_of_earlier_versions_are_the_same():
  """Their names lack what is around a function."""
  name = references.name_of(define('return LIMIT', LIMIT=3))
  unmarked = re.sub(r'-py3\.\d+>', '>', name)
  assert unmarked != name and references.is_same(unmarked, name)
  earlier = re.sub(r'-[0-9a-f]{8}>', '>', unmarked)
  assert re.fullmatch('<__main__:f-[0-9a-f]{8}>', earlier)
  assert references.is_same(earlier, name) and references.is_same(name, name)
  assert references.is_same([f'gym_{earlier}', 1], [f'gym_{name}', 1])
  assert references.is_same(f'<{__name__}:Named>', references.name_of(Named()))
  other = references.name_of(define('return LIMIT', LIMIT=4))
  assert not references.is_same(name, other)
  assert not references.is_same([name], [name, name])
  inside = functools.partial(define('return LIMIT', LIMIT=3), 1)
  outside = functools.partial(define('return LIMIT', LIMIT=4), 1)
  assert references.name_of(inside) != references.name_of(outside)


def test_functions_that_another_python_compiled(monkeypatch):
  """Their checksums differ; names of objects without code do not."""

  def name_all(text):
    make = define(text, LIMIT=3)
    return [
      references.name_of(x)
      for x in (make, functools.partial(make, 1), functools.partial(Named, 1))
    ]

  ours, others = name_all('return 1'), name_all('return 2')
  assert [references.is_same(*x) for x in zip(ours, others)] == [0, 0, 1]
  monkeypatch.setattr(sys, 'version_info', types.SimpleNamespace(minor=9))
  others = name_all('return 2')
  assert [x.endswith('-py3.9>') for x in others] == [True, True, False]
  assert references.is_same(
    [f'gym_{x}' for x in ours], [f'gym_{x}' for x in others]
  )
  assert not references.is_same(ours[0], others[1])
  assert not references.is_same(ours[0], others[0].replace('f-', 'g-'))
  # Names within names are those of earlier versions.
  for one, other in zip(ours, name_all('return 1')):
    assert one.partition('-py')[0] == other.partition('-py')[0]


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
    (returns(lambda: 1), returns(lambda: 1), returns(lambda: 2)),
    (
      # NumPy writes their addresses in capitals.
      returns(np.random.RandomState(0)),
      returns(np.random.RandomState(0)),
      returns(np.random.default_rng(0)),
    ),
  ],
)
def test_what_a_function_does_is_part_of_its_name(value, same, other):
  assert references.name_of(value) == references.name_of(same)
  assert references.name_of(value) != references.name_of(other)


def test_sets():
  """A repeated command finds the run, whatever the order of texts in sets."""
  text = """if 1:
    from agents.run import references
    KNOWN = {'push', 'pull', 'lift', 'turn'}
    inside = {('push', 1), ('pull', 2), ('lift', 3)}
    functions = (
      lambda x: x in {'push', 'pull', 'lift', 'turn'},
      lambda x: x in KNOWN,
      (lambda given: lambda x: x in given)([inside, {'a': inside}]),
      lambda x=frozenset(KNOWN): x,
    )
    print([references.name_of(x) for x in functions])
    print(references.to_plain({'kinds': KNOWN, 'pairs': frozenset(inside)}))
  """
  command = [sys.executable, '-c', text]
  one, other = (
    subprocess.run(
      command,
      env={**os.environ, 'PYTHONHASHSEED': seed},
      check=True,
      capture_output=True,
      text=True,
    ).stdout
    for seed in '01'
  )
  assert one == other
  assert "['lift', 'pull', 'push', 'turn']" in one
  # Those of numbers keep the names that they have in earlier runs.
  assert references._in_order({8, 1}) == {8, 1}
  assert references.to_plain({8, 1}) == list({8, 1})


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


def test_values_of_numpy_become_those_of_python():
  """YAML has no other; a text 'False' would be true where it is read."""
  name = enum.Enum('Name', {'X': 'x'}, type=str)
  given = [np.bool_(False), np.str_('Pendulum-v1'), name.X]
  for values in (given[:1], given, np.array(given, object)):
    result = references.to_plain(values)
    assert result == [False, 'Pendulum-v1', 'x'][: len(values)]
    assert {*map(type, result)} <= {bool, str}


def test_named_tuples_are_lists():
  point = collections.namedtuple('Point', 'x, y')
  assert references.to_plain(point(1, 'a')) == [1, 'a']


def test_modules():
  """A module can be named; trusting one that imports it is not enough."""
  import xml.etree.ElementTree as module

  name = references.name_of(module)
  assert name == 'xml.etree.ElementTree:'
  assert references.resolve(name, references.Trust(('xml',))) is module
  assert references.resolve('json:', references.Trust(('json',)))
  # One that its package does not import.
  trust = references.Trust(('tests',))
  assert references.resolve('tests.docs:small', trust).__name__
  for stranger in ('xml.etree.ElementTree:sys', 'agents.run:files'):
    with pytest.raises(references.NotTrusted):
      references.resolve(stranger, references.Trust(('xml',)))

"""Dictionaries with attribute access, in both strictnesses."""

import copy
import pickle

import pytest

from agents.tools import nested
from agents.tools.attr_dict import AttrDict
from planet.tools.attr_dict import AttrDict as Strict

both = pytest.mark.parametrize('kind', [AttrDict, Strict])


def test_strict_refuses_missing_keys():
  """A missing key is an AttributeError of `x.k` and `x['k']`."""
  settings = Strict(dict(known=1))
  with pytest.raises(AttributeError, match='known'):
    _ = settings.missing
  with pytest.raises(AttributeError, match='known'):
    _ = settings['missing']
  assert settings.get('missing') is None
  assert settings.get(key='missing', default=1) == settings.get('known')
  assert 'missing' not in settings
  assert not hasattr(settings, 'missing')


def test_lenient_returns_none():
  """A missing attribute is None, a missing item a KeyError."""
  settings = AttrDict(known=1)
  assert settings.missing is None
  with pytest.raises(KeyError):
    _ = settings['missing']


def test_strict_names_the_nearest_key():
  settings = Strict(dict(free_nats=3, seed=1))
  for name, nearest in (('free_nat', 'free_nats'), ('seeds', 'seed')):
    with pytest.raises(AttributeError, match=f'Did you mean {nearest}'):
      getattr(settings, name)


def test_planet_is_strict_by_default():
  """Duplicates of every kind are, too."""
  settings = Strict(known=1, inner=Strict(known=1))
  for twin in (
    settings,
    settings.inner,
    settings.copy(),
    copy.deepcopy(settings),
    pickle.loads(pickle.dumps(settings)).inner,
    nested.map(str, settings),
  ):
    with pytest.raises(AttributeError, match='Did you mean known'):
      _ = twin.know


@both
def test_attributes_are_locked(kind):
  settings = kind(dict(known=1))
  with pytest.raises(RuntimeError, match="Cannot set attribute 'known'."):
    settings.known = 2
  with pytest.raises(RuntimeError):
    settings.update(other=2)
  with pytest.raises(RuntimeError):
    del settings.known
  assert dict(settings) == {'known': 1}


def test_items_are_locked_if_strict():
  settings = Strict(dict(known=1))
  with pytest.raises(RuntimeError):
    settings['known'] = 2
  with pytest.raises(RuntimeError):
    del settings['known']
  with settings.unlocked:
    settings['known'] = 3
  assert settings.known == 3


def test_items_are_open_if_lenient():
  settings = AttrDict(known=1)
  settings['known'] = 2
  assert settings.known == 2


def test_created_empty():
  """PlaNet's is unlocked then, PPO's never is without being asked."""
  with pytest.raises(RuntimeError):
    AttrDict().key = 1
  settings = Strict()
  settings.key = 1
  assert settings.update(other=2) is settings
  settings.lock()
  with pytest.raises(RuntimeError):
    settings.key = 2


@both
def test_created_unlocked(kind):
  assert kind(dict(key=1), _unlocked=True).update(a=1)


@both
def test_lock_recurses(kind):
  inner = kind(dict(key=1))
  outer = kind(dict(inner=inner))
  with outer.unlocked:
    outer.inner.key = 2
  with pytest.raises(RuntimeError):
    inner.key = 3
  assert inner.key == 2


@both
def test_unlocked_is_exception_safe(kind):
  settings = kind(dict(key=1))
  with pytest.raises(KeyError):
    with settings.unlocked:
      settings.key = 2
      raise KeyError('on purpose')
  assert settings.key == 2
  with pytest.raises(RuntimeError):
    settings.key = 3


@both
def test_magic_names_are_no_keys(kind):
  settings = kind()
  for access in (
    lambda: settings.__absent__,
    lambda: setattr(settings, '__key__', 1),
    lambda: settings.update({'__key__': 1}),
  ):
    with pytest.raises(AttributeError):
      access()


@both
@pytest.mark.parametrize(
  'duplicate', [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_duplicates_keep_their_state(duplicate, kind):
  """Pickling and deepcopy keep lock and strictness."""
  inner = kind(dict(list=[1]))
  settings = kind(dict(inner=inner))
  twin = duplicate(settings)
  assert type(twin) is type(twin.inner) is kind
  assert twin == settings
  twin.inner.list.append(2)
  assert inner.list == [1]
  for locked in (twin, twin.inner):
    with pytest.raises(RuntimeError):
      locked.key = 1
  if kind is Strict:
    with pytest.raises(AttributeError):
      _ = twin.missing


@both
def test_copy_is_locked(kind):
  settings = kind(_unlocked=True)
  settings.key = 1
  with pytest.raises(RuntimeError):
    settings.copy().key = 2
  twin = settings.copy(_unlocked=True)
  twin.key = 2
  assert (settings.key, twin.key) == (1, 2)


def test_save_and_load(tmp_path):
  """YAML keeps numbers, text and nesting; other endings are refused."""
  values = dict(steps=5e7, rate=1e-3, count=3, name='1e3', list=[1, {'a': 2}])
  filename = str(tmp_path / 'settings.yaml')
  AttrDict(values).save(filename)
  loaded = AttrDict.load(filename)
  assert loaded == values
  assert [type(loaded[k]) for k in values] == [type(v) for v in values.values()]
  with pytest.raises(AssertionError):
    AttrDict(values).save(str(tmp_path / 'settings.json'))


def test_text():
  """Numbers are short, functions have names."""
  settings = AttrDict(half=0.5, rate=1e-4, big=5e7, n=3, flag=True, fn=max)
  expected = 'half=0.500, rate=1.0e-04, big=5.0e+07, n=3, flag=True, fn=max'
  assert repr(settings) == f'AttrDict({expected})'
  assert settings.summarize() == expected.replace(', ', '\n').replace('=', ': ')

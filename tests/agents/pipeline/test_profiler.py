"""Where the time goes."""

import time

import pytest

from agents.pipeline import logs


def test_nested_scopes():
  """Names form paths; the same scope adds up wherever it is entered."""
  profiler = logs.Profiler()
  for _ in range(3):
    with profiler(''):
      with profiler('train'):
        with profiler('envstep'):
          time.sleep(0.01)
        with profiler('envstep'):
          time.sleep(0.01)
      with profiler('update/agent'):
        with profiler('graph'):
          pass
  totals = profiler.pack()
  assert {path: x['occurs'] for path, x in totals.items()} == {
    '/': 3,
    '/train': 3,
    '/train/envstep': 6,
    '/update/agent': 3,
    '/update/agent/graph': 3,
  }
  seconds = {path: x['seconds'] for path, x in totals.items()}
  assert 0.06 <= seconds['/train/envstep'] <= seconds['/train'] <= seconds['/']
  assert seconds['/update/agent/graph'] <= seconds['/update/agent']
  assert seconds['/train'] + seconds['/update/agent'] <= seconds['/']


def test_outside_of_root(tmp_path):
  """The root's own time can be told, though other scopes share its paths."""
  path = str(tmp_path / 'prolog.json')
  profiler = logs.Profiler(path)
  with profiler(''), profiler('test'):
    time.sleep(0.01)
  with profiler('test'):
    time.sleep(0.02)
  data = profiler.pack()
  assert data['/test']['occurs'] == 2
  assert 0.02 <= data['/']['outside'] <= data['/test']['seconds'] - 0.01
  assert 0.01 <= data['/']['seconds'] < data['/test']['seconds']
  assert logs.read(path)['/']['outside'] == [data['/']['outside']]
  with profiler(''):
    pass
  assert profiler.pack()['/']['outside'] == 0


def test_root_is_outermost():
  profiler = logs.Profiler()
  with profiler('a'), pytest.raises(AssertionError), profiler(''):
    pass


def test_errors_leave_the_scope():
  profiler = logs.Profiler()
  with pytest.raises(KeyError):
    with profiler('a'), profiler('b'):
      raise KeyError('x')
  with profiler('c'):
    pass
  assert set(profiler.pack()) == {'/a', '/a/b', '/c'}


@pytest.mark.parametrize(
  'level, paths',
  [(0, ['/']), (1, ['/', '/a', '/d']), (2, ['/', '/a', '/a/b', '/d'])],
)
def test_level(level, paths):
  """What is deeper is not recorded, whatever is within it."""
  profiler = logs.Profiler(level=level)
  for _ in range(2):
    with profiler(''):
      with profiler('a'), profiler('b'), profiler('c'):
        pass
      with profiler('d'):
        pass
  totals = profiler.pack()
  assert sorted(totals) == paths
  assert all(x['occurs'] == 2 for x in totals.values())


def test_pack(tmp_path):
  """One line per epoch, then from zero again; open scopes go on."""
  path = str(tmp_path / 'prolog.json')
  profiler = logs.Profiler(path)
  with profiler(''):
    with profiler('a'):
      pass
    data = profiler.pack({'epoch': 1})
    assert set(data) == {'/a'} and data['/a']['occurs'] == 1
    assert profiler.pack() == {}
  with profiler('a'):
    pass
  profiler.pack({'epoch': 2})
  profiler.pack({'epoch': 3})
  table = logs.read(path)
  assert table['/a']['epoch'].tolist() == [1, 2]
  assert table['/']['epoch'].tolist() == [2]
  assert table['/a']['occurs'].tolist() == [1, 1]

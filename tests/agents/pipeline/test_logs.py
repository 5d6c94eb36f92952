"""Messages, statistics, and the files they are read from."""

import json
import math
import sys

import numpy as np
import pytest

from agents.pipeline import logs
from tests import golden

VALUES = (1.0, 2.0, 4.0, 8.0)


def feed(monitor, name='/loss', values=VALUES, window=-1):
  for value in values:
    monitor(name, value, window)


def finish_epoch(monitor, epoch):
  """Pack the epoch's number under `/value`."""
  monitor.set_meta('epoch', epoch)
  monitor('/value', epoch)
  return monitor.pack()


def test_statistics():
  """Those of the original: the deviation of a sample, divided by n - 1."""
  recorded = golden.load_json('pipeline/pipeline_golden')['monitor']
  monitor = logs.Monitor()
  feed(monitor, '/loss', recorded['values'])
  statistics = monitor.pack()['/loss']
  for key in ('num', 'sum', 'min', 'max', 'std'):
    golden.assert_close(statistics[key], recorded[key], rtol=1e-12, atol=0)
  assert monitor.last == {'/loss': statistics}
  assert monitor.pack() == {} and monitor.last


def test_deviation_of_large_numbers():
  """The offset does not eat the digits."""
  monitor = logs.Monitor()
  feed(monitor, '/a', [1e9 + x for x in VALUES])
  feed(monitor, '/b', [5.0])
  packed = monitor.pack()
  assert packed['/a']['std'] == pytest.approx(np.std(VALUES, ddof=1))
  assert packed['/b']['std'] == 0


def test_window(tmp_path):
  """Full windows are written at once, each as a line, and start again."""
  path = str(tmp_path / 'varlog.json')
  monitor = logs.Monitor(path)
  feed(monitor, '/reward', range(8), window=3)
  columns = logs.read(path)['/reward']
  assert columns['sum'].tolist() == [3, 12] and columns['num'].tolist() == [
    3,
    3,
  ]
  # Two values wait; packing the epoch does not touch them.
  assert monitor.pack()['/reward']['sum'] == 12
  assert monitor.pack() == {}
  monitor.discard_key('/reward')
  monitor.discard_key('/unknown')
  feed(monitor, '/reward', [7], window=1)
  assert logs.read(path)['/reward']['sum'].tolist() == [3, 12, 7]


def test_meta_data(tmp_path):
  """Every line says where the run was; what is unknown is left out."""
  path = str(tmp_path / 'varlog.json')
  monitor = logs.Monitor(path)
  monitor('/a', 1)
  monitor.pack()
  monitor.set_meta('epoch', np.int64(2))
  monitor.set_meta('frame', 500)
  monitor('/a', 2)
  monitor.pack()
  columns = logs.read(path)['/a']
  np.testing.assert_array_equal(columns['epoch'], [math.nan, 2])
  np.testing.assert_array_equal(columns['frame'], [math.nan, 500])
  assert 0 <= columns['clock'][0] <= columns['clock'][1] < 60
  assert {len(x) for x in columns.values()} == {2}


def test_listeners():
  """They hear of every pack, also those of windows."""
  heard = []
  monitor = logs.Monitor()
  monitor.listeners.append(lambda *args: heard.append(args))
  monitor.set_meta('clock', 7)
  feed(monitor, '/a', [1, 2], window=2)
  feed(monitor, '/b', [3])
  monitor.pack()
  assert [(name, x['sum'], meta) for name, x, meta in heard] == [
    ('/a', 3, {'clock': 7}),
    ('/b', 3, {'clock': 7}),
  ]


def test_resume(tmp_path):
  """Unfinished values and the clock go on; work done again counts once."""
  path = str(tmp_path / 'varlog.json')
  first = logs.Monitor(path)
  finish_epoch(first, 1)
  feed(first, '/window', [1, 2], window=4)
  first('/rest', 5)
  state = json.loads(json.dumps(first.state_dict()))
  state['meta']['clock'] = 1000.0
  finish_epoch(first, 2)
  finish_epoch(first, 3)
  second = logs.Monitor(path)
  second.load_state_dict(state)
  assert second.last['/value']['sum'] == 1 and second.meta['epoch'] == 1
  assert 1000 <= second.meta['clock'] < 1060
  finish_epoch(second, 2)
  feed(second, '/window', [4, 8], window=4)
  table = logs.read(path)
  assert table['/value']['epoch'].tolist() == [1, 2]
  assert table['/rest']['epoch'].tolist() == [2]
  assert table['/window']['std'] == pytest.approx(np.std(VALUES, ddof=1))
  # Once more, from a state of the resumed run.
  state = second.state_dict()
  finish_epoch(second, 3)
  third = logs.Monitor(path)
  third.load_state_dict(state)
  finish_epoch(third, 3)
  assert logs.read(path)['/value']['epoch'].tolist() == [1, 2, 3]


def test_torn_lines(tmp_path):
  """A killed process spoils the line it was writing, and no other."""
  path = tmp_path / 'varlog.json'
  finish_epoch(logs.Monitor(str(path)), 1)
  path.write_text(path.read_text() + '{"meta": {"ep')
  second = logs.Monitor(str(path))
  finish_epoch(second, 2)
  assert logs.read(str(path))['/value']['epoch'].tolist() == [1, 2]
  assert second.state_dict()['lines'] == 2


def test_files_of_digideep(tmp_path):
  """Statistics of one GPU are numbers, those of several cores are left out."""
  one = '"std": [0.0], "num": 1, "min": [3.0], "max": [3.0], "sum": [3.0]'
  path = tmp_path / 'monlog.json'
  path.write_text(
    '{"meta": {"clock": 1.5}, "data": {"/gpu/load": {'
    + one
    + '}, "/cpu/per": {"num": 1, "sum": [3.0, 4.0]}}}\n'
  )
  table = logs.read(str(path))
  assert [*table] == ['/gpu/load']
  assert table['/gpu/load']['sum'].tolist() == [3]
  path.write_text(
    '{"meta": {}, "data": {"/": {"starts": null, "occurs": 2, "totals": 5}}}\n'
  )
  columns = logs.read(str(path))['/']
  assert columns['seconds'].tolist() == [5] and columns['occurs'] == [2]


def test_no_invalid_json(tmp_path):
  """NaN and infinity are null in the file and NaN in the arrays."""
  path = tmp_path / 'varlog.json'
  monitor = logs.Monitor(str(path))
  feed(monitor, '/loss', [1, math.nan])
  monitor('/big', math.inf)
  monitor.pack()
  json.loads(path.read_text(), parse_constant=lambda x: pytest.fail(x))
  assert np.isnan(logs.read(str(path))['/loss']['sum'])
  assert math.isnan(monitor.last['/loss']['sum'])


def test_logger(tmp_path, capsys):
  """Plain lines in the file, appended; unimportant ones are left out."""
  path = tmp_path / 'report.log'
  logger = logs.Logger(str(path), level=1)
  logger.debug('hidden')
  logger.info('one')
  logs.Logger(str(path), level=3).warn('hidden')
  logs.Logger(str(path), level=3).fatal('two')
  lines = path.read_text().splitlines()
  assert len(lines) == 2
  assert lines[0].startswith('[0.') and lines[0].endswith('s, INFO] one')
  assert lines[1].endswith('s, FATAL] two')
  assert capsys.readouterr().out.splitlines() == lines
  logs.Logger(level=0).debug('seen')
  assert 'DEBUG] seen' in capsys.readouterr().out


def test_colors_on_terminals(tmp_path, capsys, monkeypatch):
  path = tmp_path / 'report.log'
  with capsys.disabled():
    monkeypatch.setattr('sys.stdout', Terminal())
    logs.Logger(str(path)).error('bad')
    shown = sys.stdout.text
    monkeypatch.undo()
  assert shown.startswith('\033[31m[0.') and 'bad\033[0m' in shown
  assert '\033' not in path.read_text()


class Terminal:
  """Stream that says it is a terminal."""

  text = ''

  def write(self, text):
    self.text += text

  def flush(self):
    pass

  def isatty(self):
    return True


def test_merging_monitors():
  """Statistics of two ranks are those of all their values together."""
  values = np.random.RandomState(0).normal(5, 2, 7)
  monitors = [logs.Monitor() for _ in range(3)]
  for monitor, part in zip(monitors, (values[:5], values[5:], [])):
    for value in part:
      monitor('/a', value)
    monitor('/windowed', 1.0, 10)
  monitors[1]('/b', 3.0)
  monitors[0].merge([x.state_dict() for x in monitors])
  statistics = monitors[0].pack()
  assert set(statistics) == {'/a', '/b'}
  expected = {
    'num': 7,
    'sum': values.sum(),
    'min': values.min(),
    'max': values.max(),
    'std': values.std(ddof=1),
  }
  assert statistics['/a'] == pytest.approx(expected)
  assert statistics['/b']['num'] == 1

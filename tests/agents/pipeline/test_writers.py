"""Scalars in event files, tables and mirrors."""

import csv
import time

from agents.pipeline import writers
from agents.tools.tf1 import tf
from tests import processes


class Mirror:
  """Keeps what it is told."""

  def __init__(self):
    self.scalars = []
    self.closed = False

  def add_scalar(self, tag, value, step):
    self.scalars.append((tag, value, step))

  def close(self):
    self.closed = True


def test_all_outputs(tmp_path):
  """They get the same scalars, and end with the writer."""
  mirror = Mirror()
  folder, table = tmp_path / 'tensorboard', tmp_path / 'scalars.csv'
  writer = writers.Writer(str(folder), str(table), [mirror])
  for step in range(3):
    writer.add_scalar('loss/a, b', step / 3, step)
  writer.flush()
  assert writers.read(str(table))['loss/a, b'] == {0: 0, 1: 1 / 3, 2: 2 / 3}
  writer.close()
  assert mirror.scalars[1] == ('loss/a, b', 1 / 3, 1) and mirror.closed
  (path,) = folder.iterdir()
  events = [
    (event.step, value.tag, round(value.simple_value, 4))
    for event in tf.train.summary_iterator(str(path))
    for value in event.summary.value
  ]
  assert events == [(i, 'loss/a, b', round(i / 3, 4)) for i in range(3)]


def test_no_outputs():
  writer = writers.Writer()
  writer.add_scalar('a', 1, 2)
  writer.flush()
  writer.close()


def test_table_goes_on(tmp_path):
  """Lines are appended after resuming; a torn one is left out."""
  path = tmp_path / 'scalars.csv'
  for values in ([1, 2, 3], [4, 5]):
    writer = writers.Writer(csv_path=str(path))
    for step, value in enumerate(values):
      writer.add_scalar('a', value, step + (values[0] == 4))
    writer.close()
    path.write_text(path.read_text() + 'a,9,0.')
  rows = list(csv.DictReader(path.read_text().splitlines()))
  assert tuple(rows[0]) == writers.COLUMNS and rows[0]['value'] == '1.0'
  assert abs(float(rows[0]['wall_time']) - time.time()) < 600
  # The later value of a step counts.
  assert writers.read(str(path)) == {'a': {0: 1, 1: 4, 2: 5}}


def test_tensorflow_waits_for_the_first_scalar(tmp_path):
  code = f"""
import sys
from agents.pipeline import logs, profiler, writers
writer = writers.Writer({str(tmp_path / 'a')!r}, {str(tmp_path / 'b')!r})
print('tensorflow' in sys.modules)
"""
  assert processes.run_python('-c', code).split() == ['False']

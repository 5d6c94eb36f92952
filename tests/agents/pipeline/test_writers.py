"""Scalars in event files and mirrors."""

from agents.pipeline import logs
from agents.run import log
from agents.tools.tf1 import tf
from tests import processes


class Mirror:
  """Stores what it gets."""

  def __init__(self):
    self.scalars = []

  def write(self, step, scalars):
    self.scalars += [(tag, value, step) for tag, value in scalars.items()]


def test_all_outputs(tmp_path):
  """They get the same scalars."""
  events, mirror = log.Events(str(tmp_path)), Mirror()
  writer = logs.Writer(events, mirror)
  for step in range(3):
    writer.add_scalar('loss/a', step / 3, step)
  writer.add_statistics('/b', {'sum': 6, 'num': 2}, {'frame': 7})
  events.close()
  assert mirror.scalars[1:] == [
    ('loss/a', 1 / 3, 1),
    ('loss/a', 2 / 3, 2),
    ('b', 3, 7),
  ]
  (path,) = tmp_path.iterdir()
  events = [
    (value.tag, round(value.simple_value, 4), event.step)
    for event in tf.train.summary_iterator(str(path))
    for value in event.summary.value
  ]
  assert events == [(x, round(y, 4), z) for x, y, z in mirror.scalars]


def test_tensorflow_waits_for_the_first_scalar(tmp_path):
  code = f"""
import sys
from agents.pipeline import logs
from agents.run import log
writer = logs.Writer(log.Events({str(tmp_path / 'a')!r}))
print('tensorflow' in sys.modules)
"""
  assert processes.run_python('-c', code).split() == ['False']

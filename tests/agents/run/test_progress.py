"""Tests of progress lines."""

import io
import time

from agents.run import progress
from tests import processes


def test_plain_lines():
  """A line at the beginning, then one per interval, also within a step."""
  stream = io.StringIO()
  shown = progress.Progress(
    lambda: {'episodes': 7, 'return': None}, 100, stream, interval=2.5
  )
  shown.start_phase('Epoch 1 train', 50, 10, 10)
  time.sleep(0.1)
  shown.update(5, 15)
  assert stream.getvalue().count('\n') == 1
  progress.set_activity('episode 3/9')
  with processes.time_limit(30):
    while stream.getvalue().count('\n') < 2:
      time.sleep(0.05)
  progress.set_activity('')
  shown.write('One line that stays.')
  shown.close()
  first, second, third = stream.getvalue().splitlines()
  assert first.startswith('Epoch 1 train: 10/50, step 10, episodes 7, mem ')
  assert second.startswith('Epoch 1 train: 15/50, step 15, episodes 7, ex/s ')
  assert second.endswith('episode 3/9') and 'left ' in second
  assert 'return' not in second
  assert third == 'One line that stays.'


class Terminal(io.StringIO):
  """Text stream that claims to be a terminal."""

  def isatty(self):
    return True


def test_terminal():
  """A tqdm bar with the values behind it."""
  stream = Terminal()
  shown = progress.Progress(lambda: {'episodes': 7}, 100, stream)
  shown.start_phase('Epoch 1 train', 50, 10, 10)
  shown.update(15, 25)
  shown.write('One line that stays.')
  shown.close()
  text = stream.getvalue()
  assert '25/50' in text and 'episodes 7' in text
  assert 'One line that stays.' in text


def test_resident_memory():
  assert 10 * 2**20 < progress.resident_memory() < 2**40


def test_bars_cost_nothing():
  """Values are asked for once a second, however often the bar advances."""
  asked, began = [], time.time()
  shown = progress.Progress(lambda: asked.append(1) or {}, 9000, Terminal())
  shown.start_phase('Epoch 1 train', 9000, 0, 0)
  for step in range(3000):
    shown.update(1, step)
  shown.close()
  seconds = time.time() - began
  assert len(asked) <= 2 + seconds

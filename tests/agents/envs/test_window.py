"""Windows, on a display that nobody sees."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from agents.envs import window
from agents.pipeline import gym_explorer
from agents.run import errors
from tests import golden
from tests.agents.pipeline import sessions, toy_agents

# Shows an episode to its end and keeps what is on the screen before that.
_PLAY = """
import sys
from PIL import ImageGrab
from agents.envs import window
from agents.pipeline import worker

assert window.has_display()
played = worker.Worker({'name': 'Pendulum-v1'}, seed=0, window=True)
played.reset()
for _ in range(5):
  played.step({'agent': [0.0]})
ImageGrab.grab(xdisplay=sys.argv[1]).save(sys.argv[2])
played.close()
ImageGrab.grab(xdisplay=sys.argv[1]).save(sys.argv[3])
"""


@pytest.fixture
def display():
  """Name of a display of 640 x 600 pixels."""
  if not shutil.which('Xvfb'):
    pytest.skip('Xvfb is not installed: apt-get install -y xvfb')
  pytest.importorskip('pygame', reason='windows need pygame')
  command = ['Xvfb', '-displayfd', '1', '-screen', '0', '640x600x24']
  server = subprocess.Popen(
    command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
  )
  try:
    yield ':' + server.stdout.readline().strip()
  finally:
    server.terminate()
    server.wait()


def test_window_shows_what_is_played(display, monkeypatch, tmp_path):
  monkeypatch.setenv('DISPLAY', display)
  monkeypatch.delenv('SDL_VIDEODRIVER', raising=False)
  names = [str(tmp_path / 'played.png'), str(tmp_path / 'closed.png')]
  command = [sys.executable, '-c', _PLAY, display, *names]
  result = subprocess.run(
    command, cwd=golden.ROOT, capture_output=True, text=True, timeout=120
  )
  assert result.returncode == 0, result.stderr
  assert not result.stdout
  played, closed = (np.asarray(Image.open(x).convert('RGB')) for x in names)
  # The pendulum is red on white.
  white = (played == 255).all(-1)
  red = (played[..., 0] > 180) & (played[..., 1] < 100)
  assert white.sum() > 0.8 * 500 * 500 and red.sum() > 1000
  assert not closed.any()


def test_display_that_is_gone(monkeypatch):
  pytest.importorskip('pygame', reason='windows need pygame')
  code = (
    'from agents.envs import window\n'
    'from agents.run import entry\n'
    'raise SystemExit(entry.run(lambda: window.Window("title", 30)))'
  )
  monkeypatch.setenv('DISPLAY', ':12345')
  monkeypatch.setenv('SDL_VIDEODRIVER', 'x11')
  result = subprocess.run(
    [sys.executable, '-c', code],
    cwd=golden.ROOT,
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert result.returncode == 2
  assert result.stderr.startswith('Error: Cannot open a window')


def test_window_for_play(tmp_path, monkeypatch):
  """The first environment is shown where there is a display."""
  shown = []

  class Window:
    def __init__(self, title, fps):
      shown.append((title, fps))

    def show(self, frame):
      shown.append(frame.shape)

    def close(self):
      shown.append('closed')

  monkeypatch.setattr(window, 'has_display', lambda: True)
  monkeypatch.setattr(window, 'Window', Window)
  session = sessions.SmallSession(tmp_path)
  session.is_playing = True
  explorer = gym_explorer.GymExplorer(
    session,
    {'agent': toy_agents.CountingAgent(session)},
    'eval',
    env={'constructor': 'tests.agents.pipeline.toy_envs.CountEnv'},
    num_workers=2,
    n_episodes=2,
    processes=0,
  )
  explorer.update()
  explorer.close()
  (title, fps), *frames, end = shown
  assert title.endswith('CountEnv') and fps == 20 and end == 'closed'
  assert len(frames) >= 4 and set(frames) == {(600, 400, 3)}


def test_no_display(monkeypatch):
  for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setattr(sys, 'platform', 'linux')
  assert not window.has_display()
  with pytest.raises(errors.UsageError, match='no display for a window'):
    window.check()
  monkeypatch.setenv('DISPLAY', ':0')
  monkeypatch.setattr(errors.util, 'find_spec', lambda _: None)
  with pytest.raises(errors.UsageError, match='needs the package pygame'):
    window.check()

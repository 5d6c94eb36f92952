"""Windows, on a display of a virtual server that is looked at."""

import contextlib
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from agents.envs import window
from agents.run import errors
from tests import golden
from tests import processes

XVFB = shutil.which('Xvfb')
needs_display = pytest.mark.skipif(not XVFB, reason='Xvfb is not installed')
SHOW = """
import numpy as np
from agents.envs import window
image = np.zeros((40, 60, 3), np.uint8)
image[:, :30] = 255, 0, 0
image[:, 30:] = 0, 0, 255
shown = window.Window('test', 60)
for _ in range({images}):
  shown.show(image)
shown.close()
"""


@contextlib.contextmanager
def virtual_display(folder):
  """Start a server; yield the name of its display."""
  reader, writer = os.pipe()
  args = [XVFB, '-displayfd', str(writer), '-screen', '0', '320x240x24']
  args += ['-fbdir', str(folder), '-nolisten', 'tcp']
  server = subprocess.Popen(args, pass_fds=[writer], stderr=subprocess.DEVNULL)
  try:
    os.close(writer)
    with os.fdopen(reader) as file_:
      yield f':{int(file_.readline())}'
  finally:
    server.terminate()
    server.wait()


def take_screenshot(folder):
  """Pixels [240, 320, 3], from the memory of the server."""
  data = (folder / 'Xvfb_screen0').read_bytes()
  pixels = np.frombuffer(data[-320 * 240 * 4 :], np.uint8)
  return pixels.reshape(240, 320, 4)[..., 2::-1]


@pytest.mark.needs('pygame')
@needs_display
def test_image_is_on_the_screen(tmp_path):
  with processes.time_limit(60), virtual_display(tmp_path) as display:
    assert not take_screenshot(tmp_path).any()
    process = subprocess.Popen(
      [sys.executable, '-c', SHOW.format(images=100000)],
      env={**os.environ, 'DISPLAY': display, 'PYTHONPATH': golden.ROOT},
    )
    try:
      screen = take_screenshot(tmp_path)
      while not (screen == [0, 0, 255]).all(-1).any():
        assert process.poll() is None
        screen = take_screenshot(tmp_path)
    finally:
      process.kill()
      process.wait()
  red, blue = ((screen == x).all(-1) for x in ([255, 0, 0], [0, 0, 255]))
  assert red.sum() == blue.sum() == 40 * 30
  assert np.where(red)[1].max() + 1 == np.where(blue)[1].min()


def test_no_display(monkeypatch):
  for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setattr(sys, 'platform', 'linux')
  assert not window.has_display()
  with pytest.raises(errors.UsageError, match='no display to open a window'):
    window.check()
  monkeypatch.setenv('DISPLAY', ':0')
  monkeypatch.setattr(window.importlib.util, 'find_spec', lambda _: None)
  with pytest.raises(errors.UsageError, match='need the package pygame'):
    window.check()


@pytest.mark.needs('pygame')
def test_display_that_does_not_answer():
  code = SHOW.format(images=1)
  result = subprocess.run(
    [sys.executable, '-c', code],
    env={
      **os.environ,
      'DISPLAY': ':9876',
      'WAYLAND_DISPLAY': '',
      'SDL_VIDEODRIVER': 'x11',
      'PYTHONPATH': golden.ROOT,
    },
    capture_output=True,
    text=True,
    timeout=60,
  )
  assert 'UsageError: Cannot open a window' in result.stderr

"""Live curves in the browser, with real servers."""

import http.server
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import pytest

from agents.pipeline import logs, visdom_mirror
from agents.run import errors
from tests import processes, visdom_assets

LOGGER = logs.Logger()


@pytest.fixture
def installed():
  """Only where visdom can be tried at all."""
  pytest.importorskip('visdom')
  if visdom_assets.find_missing():
    pytest.skip('pages of visdom: python -m tests.visdom_assets')


@pytest.fixture
def port(installed):
  with socket.socket() as probe:
    probe.bind(('127.0.0.1', 0))
    return probe.getsockname()[1]


@pytest.fixture
def mirrors(installed):
  """List of mirrors that are closed after the test."""
  found = []
  yield found
  for mirror in found:
    mirror.close()


def is_listening(port):
  with socket.socket() as probe:
    return probe.connect_ex(('127.0.0.1', port)) == 0


def wait_until(condition, seconds=20):
  limit = time.time() + seconds
  while not condition():
    assert time.time() < limit
    time.sleep(0.05)


def read_window(port, env, window):
  """Steps and values that a server draws."""
  import visdom

  client = visdom.Visdom(
    'http://127.0.0.1', port=port, env=env, use_incoming_socket=False
  )
  content = json.loads(client.get_window_data(window))
  (curve,) = content['content']['data']
  return content['title'], curve['x'], curve['y']


def test_own_server(tmp_path, port, mirrors):
  """It shows the points of all tags, and ends with the mirror."""
  log = str(tmp_path / 'visdom.log')
  mirror = visdom_mirror.VisdomMirror(port, 'session_a', log, LOGGER)
  mirrors.append(mirror)
  for step in range(5):
    mirror.write(10 * step, {'loss/critic': step / 2})
  mirror.write(50, {'loss/critic': math.nan})
  mirror.write(60, {'loss/critic': math.inf})
  mirror.write(1, {'reward/test': 3})
  mirror.flush()
  title, x, y = read_window(port, 'session_a', 'loss_critic')
  assert title == 'loss/critic'
  assert (x, y) == ([0, 10, 20, 30, 40], [0, 0.5, 1, 1.5, 2])
  assert read_window(port, 'session_a', 'reward_test')[1:] == ([1], [3])
  # More come from the thread.
  mirror.write(2, {'reward/test': 4})
  wait_until(lambda: read_window(port, 'session_a', 'reward_test')[2] == [3, 4])
  mirror.close()
  mirror.close()
  assert not is_listening(port)
  assert 'Application Started' in open(log).read()
  lines = open(tmp_path / 'visdom.replay').read().splitlines()
  assert len([x for x in lines if json.loads(x)]) == 3


def test_last_points_are_sent(tmp_path, port, mirrors):
  """A server that runs already is used, and stays."""
  first = visdom_mirror.VisdomMirror(port, 'a', None, LOGGER)
  mirrors.append(first)
  second = visdom_mirror.VisdomMirror(port, 'b', str(tmp_path / 'log'), LOGGER)
  second.write(1, {'x': 7})
  second.close()
  assert read_window(port, 'b', 'x') == ('x', [1], [7])
  # No server of its own has written there.
  assert not (tmp_path / 'log').exists()
  first.close()
  assert not is_listening(port)


def test_server_dies(port, mirrors, monkeypatch, capsys):
  """One warning, and the training goes on."""
  # Points that the thread sends meanwhile would fail as well.
  monkeypatch.setattr(visdom_mirror, '_SEND_SECONDS', 1e6)
  mirror = visdom_mirror.VisdomMirror(port, 'a', None, LOGGER)
  mirrors.append(mirror)
  mirror.write(1, {'x': 1})
  mirror.flush()
  mirror._server.kill()
  mirror._server.wait()
  for step in range(3):
    mirror.write(step, {'x': 1})
    mirror.flush()
  mirror.close()
  assert capsys.readouterr().out.count('No more points') == 1


class Client:
  """Sends as that of visdom, which waits for ever."""

  def __init__(self, server, port, **unused_options):
    import requests

    self.session, self._address = requests.Session(), f'{server}:{port}'
    if self.asks_at_start:
      self.line()

  def _handle_post(self, url, data=None):
    raise AssertionError('It would wait for ever.')

  def line(self, *unused_args, **unused_options):
    try:
      return self._handle_post(self._address)
    except OSError:
      raise ConnectionError('It does not answer.') from None


@pytest.mark.parametrize('at_start', [True, False])
def test_server_does_not_answer(at_start, monkeypatch, capsys):
  """Refused at the start; later, the training goes on and ends."""
  pytest.importorskip('requests')
  monkeypatch.setattr(Client, 'asks_at_start', at_start, raising=False)
  module = types.SimpleNamespace(Visdom=Client)
  monkeypatch.setitem(sys.modules, 'visdom', module)
  monkeypatch.setattr(visdom_mirror, '_ANSWER_SECONDS', 0.1)
  find = lambda unused_mirror: True
  monkeypatch.setattr(visdom_mirror.VisdomMirror, '_find_server', find)
  with socket.socket() as server:
    server.bind(('127.0.0.1', 0))
    server.listen()
    make = lambda: visdom_mirror.VisdomMirror(
      server.getsockname()[1], 'a', None, LOGGER
    )
    if at_start:
      with pytest.raises(errors.UsageError, match='does not answer on port'):
        make()
      return
    mirror = make()
    mirror.write(1, {'x': 1})
    mirror.close()
  assert capsys.readouterr().out.count('No more points') == 1


def test_killed_training(port):
  """The server does not outlive it."""
  code = f"""
import time
from agents.pipeline import logs, visdom_mirror
mirror = visdom_mirror.VisdomMirror({port}, 'a', None, logs.Logger())
print('ready', mirror._server.pid, flush=True)
time.sleep(100)
"""
  training = processes.start_python('-c', code)
  try:
    for line in training.stdout:
      if line.startswith('ready'):
        break
    server = int(line.split()[1])
    assert is_listening(port) and processes.is_running(server)
    training.send_signal(signal.SIGKILL)
    assert not processes.wait_for_end([server], 20)
    assert not is_listening(port)
  finally:
    training.kill()
    training.wait()


def test_other_program_on_port(mirrors):
  """It is not mistaken for visdom."""
  handler = http.server.SimpleHTTPRequestHandler
  handler.log_message = lambda *args: None
  with http.server.HTTPServer(('127.0.0.1', 0), handler) as server:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with pytest.raises(errors.UsageError, match='than visdom.*--visdom-port'):
      visdom_mirror.VisdomMirror(server.server_port, 'a', None, LOGGER)
    server.shutdown()


def test_browser(tmp_path, port, mirrors):
  """A browser that reaches nothing but the server draws the curves.

  The picture goes to the folder VISDOM_PICTURE, if that is set.
  """
  browser = shutil.which('chromium') or shutil.which('google-chrome')
  if not browser:
    pytest.skip('needs a browser: apt-get install chromium')
  mirror = visdom_mirror.VisdomMirror(port, 'session_curves', None, LOGGER)
  mirrors.append(mirror)
  for step in range(200):
    wave = math.sin(1.7 * step)
    value = 1300 * math.exp(-step / 50)
    mirror.write(500 * step, {'reward/test/episodic': -150 - value})
    mirror.write(500 * step, {'update/loss': value / 1e4 + wave / 200})
  mirror.flush()
  picture = os.path.join(os.getenv('VISDOM_PICTURE', tmp_path), 'visdom.png')
  command = [browser, '--headless', '--no-sandbox', '--disable-gpu']
  command += [f'--user-data-dir={tmp_path / "profile"}']
  # No name but this one is found, so nothing can come from elsewhere.
  command += ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost']
  command += ['--window-size=860,480', '--dump-dom', f'--screenshot={picture}']
  # The browser's clock runs ahead of that of the server.
  for milliseconds in (8000, 30000, 90000):
    page = subprocess.run(
      [
        *command,
        f'--virtual-time-budget={milliseconds}',
        f'{mirror.address}/env/session_curves',
      ],
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      text=True,
      timeout=120,
    ).stdout
    if page.count('class="js-line"') == 2:
      break
  assert page.count('js-plotly-plot') == 2, page[-2000:]
  assert 'reward/test/episodic' in page and 'update/loss' in page
  assert page.count('class="js-line"') == 2
  assert os.path.getsize(picture) > 10000


@pytest.mark.parametrize('package', [None, 'pages'])
def test_not_installed(package, tmp_path, monkeypatch):
  """One sentence that says what to do."""
  if package is None:
    monkeypatch.setitem(sys.modules, 'visdom', None)
    words = '--visdom needs the package visdom.*visdom==0.2.4, or omit'
  else:
    monkeypatch.setattr(visdom_mirror, 'check_installed', lambda: str(tmp_path))
    words = 'Run the program visdom once'
  with pytest.raises(errors.UsageError, match=words):
    visdom_mirror.VisdomMirror(8097, 'a', None, LOGGER)

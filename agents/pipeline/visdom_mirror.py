"""Live curves in the browser, drawn by visdom."""

import logging
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.run import errors

# Addresses are numeric: a server that is started here listens for this machine
# only, and proxies of the environment do not concern it.
_HOST = 'http://127.0.0.1'
# The program `visdom` without its downloads; ends when its input is closed, so
# that it does not outlive a training that was killed.
_SERVER = """
import os, threading
def wait():
  while os.read(0, 1024):
    pass
  os._exit(0)
threading.Thread(target=wait, daemon=True).start()
from visdom.server.run_server import main
main()
"""
# The largest of the files that the program of visdom downloads.
_PAGE = 'js/plotly-plotly.min.js'
_START_SECONDS = 60.0
_SEND_SECONDS = 1.0
# For an answer to points; the end of a training may wait for one.
_ANSWER_SECONDS = 10.0


def check_installed() -> str:
  """Return the folder of visdom's web pages.

  Raises:
    UsageError: If visdom is not installed.
  """
  how = (
    "pip install 'setuptools>=70.1,<81' 'tornado<6.6', then pip install "
    '--no-build-isolation visdom==0.2.4'
  )
  package = errors.check_installed(
    'visdom', 'Flag --visdom', how, 'omit the flag'
  )
  return os.path.join(package, 'static')


class VisdomMirror:
  """Draw scalars as they arrive, one window per tag.

  Uses a server that answers on the port; otherwise starts one, which `close`
  ends. Sends points from a thread, so that training does not wait for the
  server; after an error, no more points are sent.

  Args:
    port: Port of the server.
    session_name: Name of the environment on visdom's page.
    log_path: File for the output of a server started here, or None. Next to it,
      a file with the suffix `.replay` records everything for
      `visdom.Visdom().replay_log`.
    logger: `Logger` for the address and warnings.

  Raises:
    UsageError: If something else answers on the port, or no server starts.
  """

  def __init__(
    self, port: int, session_name: str, log_path: str | None, logger: Any
  ) -> None:
    self.address = f'http://localhost:{port}'
    self._port, self._logger = port, logger
    self._server: subprocess.Popen | None = None
    self._points: dict[str, list] = {}
    self._lock = threading.Lock()
    self._closed = threading.Event()
    try:
      if not self._find_server():
        self._start_server(log_path)
      # The client announces its connection as a warning.
      logging.getLogger('visdom').setLevel(logging.ERROR)
      self._client: Any = _define_client()(
        server=_HOST,
        port=port,
        env=session_name,
        use_incoming_socket=False,
        raise_exceptions=True,
        log_to_filename=log_path and os.path.splitext(log_path)[0] + '.replay',
      )
    except BaseException as error:
      self._end_server()
      if isinstance(error, ConnectionError):
        raise errors.UsageError(
          f'Visdom does not answer on port {port}; choose another one with '
          '--visdom-port, or omit --visdom.'
        ) from None
      raise
    self._thread = threading.Thread(target=self._loop, daemon=True)
    self._thread.start()
    logger.info(f'Live curves at {self.address}/env/{session_name}.')

  def write(self, step: float, scalars: Mapping[str, float]) -> None:
    """Queue points to draw by their tags; skips infinity and NaN."""
    with self._lock:
      for tag, value in scalars.items():
        if math.isfinite(value):
          self._points.setdefault(tag, []).append((step, value))

  def flush(self) -> None:
    """Send the points queued so far."""
    with self._lock:
      points, self._points = self._points, {}
    for tag, pairs in points.items():
      self._send(tag, *np.array(pairs, float).T)

  def close(self) -> None:
    """Send the remaining points, and end a server that was started here."""
    self._closed.set()
    self._thread.join()
    self._end_server()

  def _send(self, tag, steps, values):
    if self._client is None:
      return
    window = tag.strip('/').replace('/', '_')
    options = {'title': tag, 'xlabel': 'step', 'showlegend': False}
    # A line of one point cannot be seen without markers.
    options.update(markers=True, markersize=3, markerborderwidth=0)
    # Buttons of plotly cover a title of the usual size.
    layout = {'title': {'text': tag, 'font': {'size': 13}, 'y': 0.86}}
    layout['margin'] = {'l': 55, 'r': 15, 't': 70, 'b': 50}
    options['layoutopts'] = {'plotly': layout}
    try:
      answer = self._client.line(
        values, steps, win=window, opts=options, update='append'
      )
      # The client does not look at the status of answers.
      if answer != window:
        raise ValueError(f'the server said {answer[:200]!r}')
    except (OSError, ValueError) as error:
      self._client = None
      self._logger.warn(f'No more points are sent to visdom: {error}')

  def _loop(self):
    while not self._closed.wait(_SEND_SECONDS):
      self.flush()
    self.flush()

  def _find_server(self):
    """Return whether visdom answers on the port."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    page = b''
    try:
      with opener.open(f'{_HOST}:{self._port}/', timeout=5) as answer:
        page = answer.read(65536)
    except OSError as error:
      if isinstance(getattr(error, 'reason', None), ConnectionRefusedError):
        return False
    if b'<title>visdom</title>' in page:
      return True
    raise errors.UsageError(
      f'Port {self._port} is used by something other than visdom; choose '
      'another one with --visdom-port.'
    )

  def _start_server(self, log_path):
    if not os.path.exists(os.path.join(check_installed(), _PAGE)):
      raise errors.UsageError(
        "Visdom's web pages are incomplete. Run the program visdom once, which "
        'downloads the missing files, or omit --visdom.'
      )
    self._folder = tempfile.TemporaryDirectory()
    options = ('-port', str(self._port), '-env_path', self._folder.name)
    log_path = log_path or os.path.join(self._folder.name, 'log')
    with open(log_path, 'ab') as output:
      self._server = subprocess.Popen(
        [sys.executable, '-c', _SERVER, *options, '-bind_local'],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        # Ctrl-C is for the training, which ends the server at last.
        start_new_session=True,
      )
    limit = time.monotonic() + _START_SECONDS
    while not self._find_server():
      if self._server.poll() is not None or time.monotonic() > limit:
        with open(log_path) as log:
          words = ' '.join(log.read().split())[-300:]
        raise errors.UsageError(
          f'Visdom does not start on port {self._port}: {words}. Choose '
          'another --visdom-port, or omit --visdom.'
        )
      time.sleep(0.1)

  def _end_server(self):
    if self._server:
      assert self._server.stdin, 'it is a pipe'
      self._server.stdin.close()
      self._server.wait()
      self._server = None
      self._folder.cleanup()


def _define_client():
  """Return the class of clients that do not wait forever, as visdom's do."""
  import visdom

  class Client(visdom.Visdom):
    session: Any

    def _handle_post(self, url, data=None):
      sent = self.session.post(url, data=data or {}, timeout=_ANSWER_SECONDS)
      return sent.text

  return Client

"""Live curves in the browser, by visdom."""

import logging
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from importlib import util
from typing import Any

import numpy as np

from agents.pipeline import logs
from agents.run import errors

# Addresses are numeric: the server that is started listens for this machine
# only, and proxies of the environment do not concern it.
_HOST = 'http://127.0.0.1'
_SERVER = 'agents.pipeline.visdom_server'
# The largest of the files that the program of visdom downloads.
_PAGE = 'js/plotly-plotly.min.js'
_START_SECONDS = 60.0
_SEND_SECONDS = 1.0


def find_pages() -> str:
  """Return the folder of the pages of visdom.

  Raises:
    UsageError: If visdom is not installed.
  """
  spec = util.find_spec('visdom')
  if spec is None or spec.origin is None:
    raise errors.UsageError(
      "Package visdom is not installed: pip install 'setuptools>=70.1,<81', "
      'then pip install --no-build-isolation visdom==0.2.4, or leave --visdom '
      'away.'
    )
  return os.path.join(os.path.dirname(spec.origin), 'static')


class VisdomMirror:
  """Draw scalars as they come, one window per tag.

  A server that answers on the port is used. Otherwise one is started, for
  this machine only, and ended by `close`. Points are sent from a thread, so
  that the training does not wait for the server; one that fails is given up
  with a warning.

  Args:
    port: Port of the server.
    session_name: What visdom calls an environment, chosen on its page.
    log_path: File for the output of a server that is started, or None. Beside
      it, all that is drawn goes to a file that ends in `.replay`, which
      `visdom.Visdom().replay_log` can draw again.
    logger: Where the address and warnings go; the terminal by default.

  Raises:
    UsageError: If visdom or its pages are not installed, something else
      answers on the port, or the server does not start.
  """

  def __init__(
    self,
    port: int,
    session_name: str,
    log_path: str | None = None,
    logger: Any = None,
  ) -> None:
    find_pages()
    if not 0 < port < 65536:
      raise errors.UsageError(
        f'Port {port} does not exist; choose one from 1 to 65535 with '
        '--visdom-port.'
      )
    self._port = port
    self._logger = logger or logs.Logger()
    self._server: subprocess.Popen | None = None
    self._points: dict[str, list] = {}
    self._lock = threading.Lock()
    self._closed = threading.Event()
    if not self._find_server():
      self._start_server(log_path)
    try:
      self._client = self._connect(session_name, log_path)
    except BaseException:
      self._end_server()
      raise
    self._thread = threading.Thread(target=self._loop, daemon=True)
    self._thread.start()
    self._logger.info(f'Live curves at {self.address}/env/{session_name}.')

  @property
  def address(self) -> str:
    """Address of the page for a browser on this machine."""
    return f'http://localhost:{self._port}'

  def add_scalar(self, tag: str, value: float, step: float) -> None:
    """Draw a point soon; what is not finite is left out."""
    if math.isfinite(value):
      with self._lock:
        self._points.setdefault(tag, []).append((step, value))

  def flush(self) -> None:
    """Send what was added so far."""
    with self._lock:
      points, self._points = self._points, {}
    for tag, pairs in points.items():
      self._send(tag, *np.array(pairs, float).T)

  def close(self) -> None:
    """Send the rest, and end the server if it was started here."""
    if not self._closed.is_set():
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
      self._logger.warn(f'Visdom gets no more points: {error}')

  def _loop(self):
    while not self._closed.wait(_SEND_SECONDS):
      self.flush()
    self.flush()

  def _connect(self, session_name, log_path):
    # It announces its connection as a warning.
    logging.getLogger('visdom').setLevel(logging.ERROR)
    import visdom

    return visdom.Visdom(
      server=_HOST,
      port=self._port,
      env=session_name,
      use_incoming_socket=False,
      raise_exceptions=True,
      log_to_filename=log_path and f'{os.path.splitext(log_path)[0]}.replay',
    )

  def _find_server(self):
    """Whether visdom answers on the port.

    Raises:
      UsageError: If something else does.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    page = b''
    try:
      with opener.open(f'{_HOST}:{self._port}/', timeout=5) as answer:
        page = answer.read(65536)
    except urllib.error.HTTPError:
      pass  # Something answers.
    except urllib.error.URLError as error:
      if isinstance(error.reason, ConnectionRefusedError):
        return False
    except OSError:
      pass
    if b'<title>visdom</title>' in page:
      return True
    raise errors.UsageError(
      f'Port {self._port} is taken by something that is not visdom; choose '
      'another one with --visdom-port.'
    )

  def _start_server(self, log_path):
    if not os.path.exists(os.path.join(find_pages(), _PAGE)):
      raise errors.UsageError(
        'The pages of visdom are not complete. Run the program visdom once, '
        'which downloads what they need, or omit --visdom.'
      )
    with open(log_path, 'ab+') if log_path else _nameless() as output:
      self._server = subprocess.Popen(
        [
          sys.executable,
          '-m',
          _SERVER,
          str(self._port),
        ],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        # Ctrl-C is for the training, which ends the server at last.
        start_new_session=True,
      )
      limit = time.monotonic() + _START_SECONDS
      try:
        while not self._find_server():
          if self._server.poll() is not None or time.monotonic() > limit:
            raise errors.UsageError(
              f'Visdom does not start on port {self._port}: {_tail(output)}. '
              'Choose another --visdom-port, or omit --visdom.'
            )
          time.sleep(0.1)
      except BaseException:
        self._end_server()
        raise

  def _end_server(self):
    if self._server is None:
      return
    assert self._server.stdin, 'it is a pipe'
    self._server.stdin.close()
    try:
      self._server.wait(5)
    except subprocess.TimeoutExpired:
      self._server.kill()
      self._server.wait()
    self._server = None


def _nameless():
  return tempfile.TemporaryFile('ab+')


def _tail(output):
  """The last words that were written to a file."""
  output.seek(0)
  words = b' '.join(output.read().split())[-300:]
  return words.decode(errors='replace') or 'no reason given'

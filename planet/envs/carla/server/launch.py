"""Start a CARLA server, and end what was started."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from agents.run import errors
from planet.envs.carla.server import connect, guard

_TIMEOUT = 90.0
# Seconds for the server to end before it is killed.
_TERM_TIMEOUT = 10.0
_ATTEMPT = 2.0
_TAIL = 20


class Server:
  """Process of a CARLA server that we have started.

  It has a process group of its own, which ends with `close` and with this
  process, however that ends; see `guard`.

  Args:
    binary: Path of `CarlaUE4.sh`.
    port: Port to listen on; the two following are used as well.
    log: File that its output is added to; a temporary one if None.
    timeout: Seconds to wait for it.
    flags: Further flags.

  Attributes:
    pid: Number of the process, which is that of its group.

  Raises:
    UsageError: If it cannot be started or does not answer in time, with the
      end of its output.
  """

  def __init__(
    self,
    binary: str,
    port: int,
    log: str | None = None,
    timeout: float = _TIMEOUT,
    flags: Sequence[str] = (),
  ):
    binary = os.path.expanduser(binary)
    if not (os.path.isfile(binary) and os.access(binary, os.X_OK)):
      raise errors.UsageError(
        f'The CARLA server {binary} is not a program that can be run; set '
        'CARLA_SERVER to the path of CarlaUE4.sh.'
      )
    self._log = log or _temporary_log()
    os.makedirs(os.path.dirname(os.path.abspath(self._log)), exist_ok=True)
    command = [binary, '-RenderOffScreen', '-nosound', '-quality-level=Low']
    command += [f'-carla-rpc-port={port}', *flags]
    guarded = [sys.executable, '-I', guard.__file__, self._log]
    with open(self._log, 'ab') as output:
      self._guard: Any = subprocess.Popen(
        [*guarded, str(_TERM_TIMEOUT), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        start_new_session=True,
      )
    assert self._guard.stdout
    self.pid = int(self._guard.stdout.readline() or 0)
    try:
      self._wait(binary, port, timeout)
    except BaseException:
      self.close()
      raise

  def tail(self) -> str:
    """Return the last lines of the output."""
    with open(self._log, errors='replace') as file_:
      return ''.join(file_.readlines()[-_TAIL:]).strip()

  def is_running(self) -> bool:
    """Tell whether the process has not ended."""
    return self._guard.poll() is None

  def close(self) -> None:
    """End the process group, politely first; safe to call twice."""
    self._guard.stdin.close()
    self._guard.wait()
    self._guard.stdout.close()

  def _wait(self, binary, port, timeout):
    limit = time.time() + timeout
    while self.is_running() and time.time() < limit:
      with contextlib.suppress(errors.UsageError):
        connect.connect('127.0.0.1', port, _ATTEMPT, allow_mismatch=True)
        return
      time.sleep(0.5)
    code = self._guard.poll()
    failure = f'ended with exit code {code}'
    if code is None:
      failure = f'does not answer on port {port} after {timeout:g} s'
    raise errors.UsageError(
      f'The CARLA server {binary} {failure}; its output in {self._log} ends '
      f'with: {self.tail() or "nothing"}'
    )


def _temporary_log():
  handle, path = tempfile.mkstemp('.log', 'carla_server_')
  os.close(handle)
  return path

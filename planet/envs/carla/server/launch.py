"""Start and stop a CARLA server."""

import os
import subprocess
import sys
from typing import Any

from agents.run import errors, files
from planet.envs.carla.server import connect, guard

# Seconds for the server to end before it is killed.
_TERM_TIMEOUT = 10.0
_TAIL = 20


class Server:
  """Process of a CARLA server.

  Runs in its own process group, which ends with `close` or when this process
  ends for any reason; see `guard`. Call `connect.wait_for_town` before use.

  Args:
    binary: Path of `CarlaUE4.sh`.
    port: Port to listen on; the server also uses the next two.
    config: Complete settings, see `env_config.complete`.

  Attributes:
    pid: Id of the process and its group.

  Raises:
    UsageError: If the server cannot be started.
  """

  def __init__(self, binary: str, port: int, config: dict[str, Any]):
    binary = files.expand(binary)
    if not (os.path.isfile(binary) and os.access(binary, os.X_OK)):
      raise errors.UsageError(
        f'The CARLA server {binary} is not an executable file; set '
        'CARLA_SERVER to the path of CarlaUE4.sh.'
      )
    folder = config['server_log'] or connect.make_folder()
    os.makedirs(folder, exist_ok=True)
    self._binary = binary
    self._log = os.path.join(folder, f'carla_server_{port}.log')
    flags = connect.define_flags(port, config).split()
    command = [binary, *flags, '-nosound', *config['server_flags']]
    if config['adapter'] is not None:
      command.append(f'-graphicsadapter={config["adapter"]}')
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

  def why_ended(self) -> str | None:
    """Return exit code and last output of the server; None if it runs."""
    code = self._guard.poll()
    if code is None:
      return None
    with open(self._log, errors='replace') as file_:
      tail = ''.join(file_.readlines()[-_TAIL:]).strip()
    return (
      f'The CARLA server {self._binary} ended with exit code {code}; its '
      f'log {self._log} ends with: {tail or "nothing"}'
    )

  def close(self) -> None:
    """Stop the server; safe to call twice."""
    self._guard.stdin.close()
    self._guard.wait()
    self._guard.stdout.close()

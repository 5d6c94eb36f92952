"""Signs of life of the workers that share runs, in the file PING."""

import datetime
import json
import os

from agents.run import files

# Worker of a PING that cannot be read; real names hold a random number.
UNKNOWN = 'unknown'


def write(logdir: str, worker: str) -> None:
  """Note that a worker is alive now.

  The file holds JSON text, so that reading it cannot run a program that
  another user of a shared folder has written.

  Args:
    logdir: Folder of the run, created if needed.
    worker: Name of the worker.
  """
  now = datetime.datetime.now(datetime.timezone.utc)
  with files.atomic_write(os.path.join(logdir, 'PING')) as file_:
    json.dump({'worker': worker, 'time': now.isoformat()}, file_)


def read(logdir: str) -> tuple[str, datetime.datetime] | None:
  """Name and UTC time of the last sign of life, or None if there is none.

  Whatever else is in the file, such as the pickle of an older version, counts
  as a sign of life of somebody, given when the file was changed.
  """
  filename = os.path.join(logdir, 'PING')
  try:
    changed = os.path.getmtime(filename)
    with open(filename, 'rb') as file_:
      ping = json.load(file_)
    worker, last = ping['worker'], datetime.datetime.fromisoformat(ping['time'])
    if isinstance(worker, str) and last.tzinfo:
      return worker, last
  except OSError:
    return None
  except (KeyError, TypeError, ValueError, RecursionError):
    pass
  return UNKNOWN, datetime.datetime.fromtimestamp(
    changed, datetime.timezone.utc
  )

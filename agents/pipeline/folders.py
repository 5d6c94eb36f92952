"""Folders of sessions: names, contents, and which process may write."""

import contextlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from typing import Any

from agents.pipeline import toolbox
from agents.run import checkpoint, errors, files, references
from agents.run import folder as run_folder

SUBFOLDERS = ('checkpoints', 'memsnapshot', 'monitor', 'tensorboard', 'modules')
_STARTING = '.starting'
_DONE = 'done.lock'
_LOCK = 'running.lock'
_PARTS = (
  'checkpoints',
  'modules',
  '__init__.py',
  'params.yaml',
  'cpanel.json',
  'saam.py',
)

_SAAM = '''"""Parameters, paths and logs of this session."""

import os

from agents.pipeline.loader import Loader

loader = Loader(os.path.dirname(os.path.abspath(__file__)))
'''
_INIT = '''"""A session of agents.pipeline; see `loader`."""

from .saam import loader
'''


class SessionFinished(Exception):
  """The training to continue has done all its epochs."""


def make_name() -> str:
  """Return a name that sorts by time; its end tells apart what is as old."""
  # No generator with a seed: names must not depend on that of a run.
  return f'session_{time.strftime("%Y%m%d%H%M%S")}_{secrets.token_hex(2)}'


def create(base: str, name: str = '') -> tuple[str, contextlib.ExitStack]:
  """Create the folder of a new session, with all that makes it one.

  Args:
    base: Folder of all sessions, created if needed; becomes a package.
    name: Name of the session; made up by default.

  Returns:
    Tuple of the path of the session and its lock; see `lock`.

  Raises:
    UsageError: If the session exists or nothing can be written.
  """
  base = os.path.abspath(os.path.expanduser(base))
  if name and os.path.basename(name) != name:
    raise errors.UsageError(
      f'Session name {name!r} is a path; give the name alone, and its parent '
      'with --session-path.'
    )
  if name:
    _discard_unstarted(os.path.join(base, name))
  names: Iterable[str] = [name] if name else iter(make_name, None)
  try:
    path, held = run_folder.create(base, names, _LOCK)
  except FileExistsError:
    path = os.path.join(base, name)
    raise errors.UsageError(
      f'Session {path} exists; continue it with --load-checkpoint={path} '
      '--resume, or give another --session-name.'
    ) from None
  open(os.path.join(base, '__init__.py'), 'a').close()
  run_folder.mark(path, _STARTING)
  for folder in SUBFOLDERS:
    os.mkdir(os.path.join(path, folder))
  for filename, text in (('saam.py', _SAAM), ('__init__.py', _INIT)):
    run_folder.mark(path, filename, text)
  return path, held


def discard(path: str) -> None:
  """Remove the folder of a session that could not start."""
  shutil.rmtree(path, ignore_errors=True)


def mark_as_started(path: str) -> None:
  """Remember that a session is one that can be continued."""
  run_folder.unmark(path, _STARTING)


def find_missing(path: str) -> list[str]:
  """Parts that a session has, but not this folder."""
  return [x for x in _PARTS if not run_folder.has(path, x)]


def find_session(path: str) -> tuple[str, int | None]:
  """Session that the user means.

  Args:
    path: Folder of a session, or of one of its checkpoints.

  Returns:
    Tuple of the path of the session, and the epoch of the checkpoint, None if
    none was named.

  Raises:
    UsageError: If there is none.
  """
  path = os.path.abspath(os.path.expanduser(path))
  match = re.fullmatch(r'checkpoint-(\d+)', os.path.basename(path))
  session = os.path.dirname(os.path.dirname(path)) if match else path
  if not os.path.isdir(session):
    raise errors.UsageError(
      f'There is no folder {path}; give a session or one of its checkpoints '
      'with --load-checkpoint.'
    )
  missing = find_missing(session)
  if missing:
    raise errors.UsageError(
      f'Folder {session} is no session: it has no {", ".join(missing)}. Give '
      'a session or one of its checkpoints with --load-checkpoint.'
    )
  return session, int(match.group(1)) if match else None


def lock(session: str) -> contextlib.ExitStack:
  """Make sure that no other process writes to a session.

  Returns:
    What holds the lock until it is closed or the process ends.

  Raises:
    UsageError: If another process has the lock.
  """
  held = run_folder.hold(session, _LOCK)
  if not held:
    raise errors.UsageError(
      f'Session {session} is in use by another process; wait for it, or stop '
      'it.'
    )
  return held


def mark_as_done(session: str) -> None:
  """Remember that a training is finished."""
  run_folder.mark(session, _DONE, time.strftime('%Y-%m-%d %H:%M:%S\n'))


def unmark(session: str) -> None:
  """Forget that a training was finished, as there is more to do now."""
  run_folder.unmark(session, _DONE)


def check_unfinished(session: str) -> None:
  """Make sure that there is something left to train.

  Raises:
    SessionFinished: If not.
  """
  if run_folder.has(session, _DONE):
    raise SessionFinished(
      f'The training in {session} is finished. To train for longer, give more '
      'epochs: --repeal \'{"runner.n_epochs": N}\'.'
    )


def copy_modules(session: str, names: Iterable[str]) -> None:
  """Copy the code that a session runs, without bytecode.

  Args:
    session: Path of the session.
    names: Dotted names of modules; their whole packages are copied.

  Raises:
    UsageError: If a module does not exist.
  """
  for name in sorted({x.split('.')[0] for x in names}):
    module = toolbox.get_module(name, references.EVERYTHING)
    target = os.path.join(session, 'modules')
    if hasattr(module, '__path__'):
      shutil.copytree(
        list(module.__path__)[0],
        os.path.join(target, name),
        ignore=shutil.ignore_patterns('__pycache__', '*.pyc'),
        dirs_exist_ok=True,
      )
    elif module.__file__:
      shutil.copy(module.__file__, target)


def write_json(path: str, data: Mapping[str, Any]) -> None:
  """Store a dict of settings, completely or not at all."""
  with files.atomic_write(path) as file_:
    json.dump(data, file_, indent=2, default=_jsonable)
    file_.write('\n')


def _discard_unstarted(path):
  """Remove what is left of a process that was killed before it began.

  Raises:
    UsageError: If another process is about to begin.
  """
  if not run_folder.has(path, _STARTING):
    return
  with lock(path):
    # Another process may have done so, and begun.
    if not run_folder.has(path, _STARTING):
      return
    parent = os.path.join(path, 'checkpoints')
    if not checkpoint.list_folders(parent, 'checkpoint-'):
      discard(path)


def _jsonable(value):
  """Arrays the way `settings.parse_json` reads them."""
  return {'__numpy__': True, 'items': value.tolist()}

"""One process at a time writes in a folder, also without flock."""

import errno
import fcntl
import os
import subprocess
import sys
import time

import pytest

from agents.run import errors, files, locks, log, mpi
from tests import golden

# A process on another host, where no file system has flock.
HOLD = """
import fcntl, os, socket, sys, time
from agents.run import locks
def refuse(*args): raise OSError({error}, 'refused')
fcntl.flock = refuse
socket.gethostname = lambda: 'othernode'
locks.LEASE_SECONDS = 1.0
print(bool(locks.try_lock({path!r})), flush=True)
time.sleep(60)
"""


@pytest.fixture
def no_flock(monkeypatch):
  """Return a function that gives this process a file system without flock."""

  def start(error=errno.ENOSYS):
    def refuse(*unused):
      raise OSError(error, 'refused')

    monkeypatch.setattr(fcntl, 'flock', refuse)
    monkeypatch.setattr(locks, 'LEASE_SECONDS', 1.0)

  return start


def hold_elsewhere(path, error=errno.ENOSYS):
  """Start a process on another host that holds a lock."""
  code = HOLD.format(error=int(error), path=str(path))
  process = subprocess.Popen(
    [sys.executable, '-c', code], stdout=subprocess.PIPE, cwd=golden.ROOT
  )
  assert process.stdout.readline() == b'True\n'
  return process


def test_locks(tmp_path):
  """One holder at a time; a process that is killed holds nothing."""
  filename = str(tmp_path / 'lock')
  code = (
    'from agents.run import locks; import time\n'
    f'held = locks.try_lock({filename!r}); print(bool(held), flush=True)\n'
    'time.sleep(60)'
  )
  with subprocess.Popen(
    [sys.executable, '-c', code], stdout=subprocess.PIPE, cwd=golden.ROOT
  ) as process:
    assert process.stdout.readline() == b'True\n'
    assert locks.try_lock(filename) is None
    assert f'process {process.pid} on ' in locks.find_holder(filename)
    process.kill()
  held = locks.try_lock(filename)
  assert held and locks.try_lock(filename) is None
  assert f'process {os.getpid()} on ' in locks.find_holder(filename)
  held.release()
  assert locks.try_lock(filename)


@pytest.mark.parametrize('error', [errno.ENOSYS, errno.ENOLCK, errno.EPERM])
def test_another_host_takes_over_from_a_killed_one(
  error, tmp_path, no_flock, caplog
):
  """The holder is alive while it gives signs of life, and only then."""
  path = str(tmp_path / 'lock')
  no_flock(error)
  with hold_elsewhere(path, error) as process:
    began = time.monotonic()
    assert locks.try_lock(path) is None
    assert time.monotonic() - began < 5
    assert f'process {process.pid} on othernode' in locks.find_holder(path)
    process.kill()
  caplog.clear()
  held = locks.try_lock(path)
  assert held and locks.try_lock(path) is None
  said = [x.getMessage() for x in caplog.records]
  assert 'waiting up to 1 seconds' in said[0] and 'othernode' in said[0]
  assert 'is gone' in said[-1] and f'process {process.pid}' in said[-1]
  held.release()
  held = locks.try_lock(path)
  assert held
  held.release()


def test_lease_that_has_just_become_free(tmp_path, no_flock, monkeypatch):
  """The holder ends it, or filelock before 4.3 removes that of a dead one."""
  path = str(tmp_path / 'lock')
  no_flock()
  read, reads = locks._last_change, []
  with hold_elsewhere(path) as process:

    def end_meanwhile(path):
      reads.append(path)
      if len(reads) == 2:
        process.kill()
        os.remove(path + locks.LEASE)
      return read(path)

    monkeypatch.setattr(locks, '_last_change', end_meanwhile)
    held = locks.try_lock(path)
  assert held
  held.release()


def test_lock_of_an_earlier_version(tmp_path, no_flock):
  """What flock, or the earlier lock without it, left behind holds nothing."""
  path = tmp_path / 'lock'
  for text in ('', '4711\nothernode\n'):
    path.write_text(text)
    no_flock()
    held = locks.try_lock(str(path))
    assert held
    held.release()


def test_who_was_stopped_for_too_long_writes_no_more(tmp_path, no_flock):
  """Another one has taken over; the run ends at the next file."""
  path = str(tmp_path / 'lock')
  no_flock()
  held = locks.try_lock(path)
  log.append(str(tmp_path / 'file'), 'line\n')
  # As if this process had slept.
  held._held._stop_heartbeat()
  with hold_elsewhere(path) as process:
    with pytest.raises(locks.Lost, match='on othernode .* has taken over'):
      log.append(str(tmp_path / 'file'), 'line\n')
    process.kill()
  assert (tmp_path / 'file').read_text() == 'line\n'
  held.release()


def test_file_of_another_user(tmp_path, monkeypatch):
  """Whoever may not write there is told so, not that the run is in use."""
  path = tmp_path / 'lock'
  path.touch()
  opening = os.open

  def refuse(name, *args, **kwargs):
    if name == str(path):
      raise PermissionError(errno.EACCES, 'Permission denied', name)
    return opening(name, *args, **kwargs)

  monkeypatch.setattr(os, 'open', refuse)
  words = f'{path}, which belongs to .+ .Permission denied'
  with pytest.raises(errors.UsageError, match=words):
    locks.try_lock(str(path))


@pytest.mark.parametrize('how', ['moved', 'deleted', 'replaced'])
def test_folder_that_is_gone(how, tmp_path):
  """No second half appears in the old place."""
  folder = tmp_path / 'run'
  folder.mkdir()
  held = locks.try_lock(str(folder / 'lock'))
  with files.atomic_write(str(folder / 'sub' / 'file')) as file_:
    file_.write('complete')
  folder.rename(tmp_path / 'elsewhere')
  if how == 'replaced':
    folder.mkdir()
  for write in (
    lambda: files.write_yaml(str(folder / 'file.yaml'), {}),
    lambda: files.write_yaml(str(folder / 'sub' / 'file.yaml'), {}),
    lambda: log.append(str(folder / 'rows'), 'row\n'),
  ):
    with pytest.raises(locks.Lost, match='moved or deleted'):
      write()
  assert not folder.exists() or not os.listdir(folder)
  held.release()
  files.write_yaml(str(folder / 'file.yaml'), {})


def test_checkpoints_of_a_folder_that_is_gone(tmp_path):
  """Neither a folder, nor a file of TensorFlow, nor events."""
  from agents.run import checkpoint
  from agents.tools import saver
  from agents.tools.tf1 import tf

  folder = tmp_path / 'run'
  folder.mkdir()
  held = locks.try_lock(str(folder / 'lock'))
  with tf.Graph().as_default(), tf.Session() as sess:
    variable = tf.Variable(1.0)
    sess.run(variable.initializer)
    save = saver.Saver([variable])
    store = checkpoint.Checkpoints(
      str(folder), mpi.world(), define_saver=lambda **unused: save
    )
    store.save('1', {}, sess)
    folder.rename(tmp_path / 'elsewhere')
    for write in (
      lambda: store.save('2', {}, sess),
      lambda: save.save(sess, str(folder / 'model.ckpt'), 3),
      lambda: checkpoint.keep_best(sess, save, str(folder), 3, 1.0),
      lambda: log.Events(str(folder / 'scalars')).write(1, {'a': 1.0}),
    ):
      with pytest.raises(locks.Lost, match='moved or deleted'):
        write()
  assert not folder.exists()
  held.release()

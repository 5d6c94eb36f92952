"""Runs that several workers share."""

import collections
import itertools
import os
import threading
import time

import pytest

from agents.run import errors, folder, locks, stopping
from planet.training import running
from tests import processes

WORKERS, RUNS, VALUES = 20, 100, 10


class Counter:
  """Counts calls by their folders; workers share it."""

  def __init__(self):
    self._lock = threading.Lock()
    self.counts = collections.Counter()

  def __call__(self, logdir):
    with self._lock:
      self.counts[os.path.basename(logdir)] += 1


def count_to_ten(unused_logdir):
  yield from range(VALUES)


def work(experiment, limit, counts):
  """Exhaust the runs of an experiment, or die after some values."""
  count = 0
  for run in experiment:
    for _ in run:
      count += 1
      if count == limit:
        counts.append(count)
        return
  counts.append(count)


def start_workers(basedir, started, limit=None):
  """Let all workers run until the end; returns the number of all values."""
  threads, counts = [], []

  def count_run(logdir):
    started(logdir)
    yield from count_to_ten(logdir)

  for _ in range(WORKERS):
    experiment = running.Experiment(
      str(basedir), count_run, num_runs=RUNS, ping_every=0.5
    )
    threads.append(
      threading.Thread(target=work, args=(experiment, limit, counts))
    )
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(60)
  assert not any(thread.is_alive() for thread in threads)
  return sum(counts)


def names(basedir, filename):
  """Runs that have a file."""
  return {
    x for x in os.listdir(basedir) if os.path.exists(basedir / x / filename)
  }


ALL = {f'{x:05d}' for x in range(1, RUNS + 1)}


def let_others_live(monkeypatch, dead=()):
  """Do not take workers for dead that a busy machine holds up."""
  is_stale = running.Run._is_stale
  monkeypatch.setattr(
    running.Run,
    '_is_stale',
    lambda run, worker, age: worker in dead and is_stale(run, worker, age),
  )


def test_many_workers(tmp_path, monkeypatch):
  """20 threads finish 100 runs of 10 values, each started once."""
  let_others_live(monkeypatch)
  started = Counter()
  count = start_workers(tmp_path, started)
  assert count == RUNS * VALUES
  assert names(tmp_path, 'DONE') == ALL
  assert not names(tmp_path, 'FAIL')
  assert started.counts == dict.fromkeys(ALL, 1)


def test_dying_workers(tmp_path, monkeypatch):
  """Each of 20 dies within its second run; exactly these get resumed."""
  started, dead = Counter(), set()
  let_others_live(monkeypatch, dead)
  count = start_workers(tmp_path, started, 15)
  assert count == WORKERS * 15
  assert len(names(tmp_path, 'DONE')) == WORKERS
  unfinished = names(tmp_path, 'PING') - names(tmp_path, 'DONE')
  assert len(unfinished) == WORKERS
  dead.update(running.read_ping(str(tmp_path / x))[0] for x in unfinished)
  start_workers(tmp_path, started)
  assert names(tmp_path, 'DONE') == ALL
  assert started.counts == {x: 1 + (x in unfinished) for x in ALL}


def make_run(folder, process_fn=count_to_ten, **kwargs):
  kwargs = {'worker_name': 'me', 'ping_every': 0, **kwargs}
  experiment = running.Experiment('', process_fn, **kwargs)
  return running.Run(str(folder), experiment)


@pytest.mark.parametrize('scores', [[1.0, 2.0], iter([1.0, 2.0])])
def test_scores_without_a_generator(tmp_path, scores):
  """Functions of users may return any iterable, as in the original."""
  run = make_run(tmp_path, lambda unused_logdir: scores)
  run.claim()
  assert list(run) == [1.0, 2.0]
  assert os.listdir(tmp_path).count('DONE') == 1


def fail_with(error):
  def process_fn(unused_logdir):
    yield 1
    raise error

  return process_fn


def test_failing_process(tmp_path):
  """DONE comes first, so that nobody resumes it; FAIL has the traceback."""
  run = make_run(tmp_path, fail_with(ZeroDivisionError('on purpose')))
  run.claim()
  with pytest.raises(ZeroDivisionError):
    list(run)
  assert (tmp_path / 'DONE').read_text() == '\n'
  text = (tmp_path / 'FAIL').read_text()
  assert text.startswith('Traceback') and text.endswith('\n')
  assert 'ZeroDivisionError: on purpose' in text
  times = [os.stat(tmp_path / x).st_mtime_ns for x in ('DONE', 'FAIL')]
  assert times == sorted(times)
  with pytest.raises(running.SkipRun):
    make_run(tmp_path).claim()


@pytest.mark.parametrize(
  'error',
  [
    errors.UsageError('mend it'),
    stopping.StopRequested(),
    errors.WorkerDeath('killed'),
    RuntimeError('model.ckpt; No space left on device'),
  ],
  ids=repr,
)
def test_errors_after_which_the_run_can_go_on(error, tmp_path):
  """Mistakes, stops, killed workers, full disks leave no DONE or FAIL."""
  run = make_run(tmp_path, fail_with(error))
  run.claim()
  with pytest.raises(type(error)):
    list(run)
  # A refused folder may be that of another program.
  refused = isinstance(error, errors.UsageError)
  assert os.listdir(tmp_path) == ([] if refused else ['PING'])
  make_run(tmp_path).claim()


def test_abandoned_run_can_be_resumed(tmp_path):
  run = make_run(tmp_path)
  run.claim()
  for _ in run:
    break
  assert os.listdir(tmp_path) == ['PING']
  again = make_run(tmp_path)
  again.claim()
  assert list(again) == list(range(VALUES))
  assert sorted(os.listdir(tmp_path)) == ['DONE', 'PING']


def test_takeover_is_noticed(tmp_path):
  """The worker that lost the run stops, saves nothing, and leaves it."""

  def process_fn(unused_logdir):
    with stopping.on_close((tmp_path / 'saved').touch):
      yield from itertools.count()

  run = make_run(tmp_path, process_fn, ping_every=0.05)
  run.claim()
  write_ping(tmp_path, 'other')
  limit = time.time() + 60
  with pytest.raises(running.WorkerConflict):
    for _ in run:
      assert time.time() < limit
      time.sleep(0.05)
  assert os.listdir(tmp_path) == ['PING']
  assert running.read_ping(str(tmp_path))[0] == 'other'


@pytest.mark.parametrize('error', [None, ZeroDivisionError('on purpose')])
def test_lost_run_is_not_ended(error, tmp_path):
  """Whatever the loser runs into, the run belongs to the other worker."""

  def process_fn(logdir):
    yield 1
    write_ping(tmp_path, 'other')
    assert run._conflict.wait(30)
    if error:
      raise error

  run = make_run(tmp_path, process_fn, ping_every=0.05)
  run.claim()
  with pytest.raises(running.WorkerConflict):
    list(run)
  assert os.listdir(tmp_path) == ['PING']


def write_ping(folder, name):
  (folder / 'PING').write_text(name)


def wait_for_pings(folder, count):
  """Wait until the heartbeat was renewed so many times."""
  seen = set()
  with processes.time_limit(30):
    while len(seen) <= count:
      seen.add(os.stat(folder / 'PING').st_mtime_ns)
      time.sleep(0.01)


def test_pings_are_kept_up(tmp_path):
  """Renewed while the run goes on, then not."""
  run = make_run(tmp_path, ping_every=0.05)
  run.claim()
  values = iter(run)
  next(values)
  wait_for_pings(tmp_path, 3)
  assert running.read_ping(str(tmp_path))[0] == 'me'
  list(values)
  time.sleep(0.3)
  assert running.read_ping(str(tmp_path))[1] > 0.3


def test_the_first_ping_is_in_time(tmp_path, monkeypatch):
  """Waiting for other workers does not count as silence."""

  def wait(seconds):
    path = str(tmp_path / 'PING')
    before = os.path.getmtime(path) - seconds
    os.utime(path, (before, before))

  monkeypatch.setattr(stopping, 'sleep', wait)
  make_run(tmp_path, ping_every=30).claim()
  assert running.read_ping(str(tmp_path))[1] < 15


def test_pings_outlive_an_error(tmp_path, monkeypatch):
  run = make_run(tmp_path, ping_every=0.05)
  run.claim()
  write, failed = folder.mark, []

  def mark(*args):
    if not failed:
      failed.append(args)
      raise OSError('disk is full')
    write(*args)

  monkeypatch.setattr(folder, 'mark', mark)
  values = iter(run)
  next(values)
  wait_for_pings(tmp_path, 2)
  assert failed


def test_run_of_a_living_worker_is_skipped(tmp_path):
  write_ping(tmp_path, 'other')
  with pytest.raises(running.SkipRun):
    make_run(tmp_path, ping_every=30).claim()
  assert running.read_ping(str(tmp_path))[0] == 'other'


@pytest.mark.parametrize('hours', [-2, 2])
def test_clocks_of_machines_differ(hours, tmp_path, monkeypatch):
  """Signs of life are as old as the file system says."""
  write_ping(tmp_path, 'other')
  now = time.time
  monkeypatch.setattr(time, 'time', lambda: now() + 3600 * hours)
  with pytest.raises(running.SkipRun):
    make_run(tmp_path, ping_every=30).claim()


@pytest.mark.parametrize('alive', [False, True])
def test_ping_from_the_future(alive, tmp_path):
  """A clock that was set back does not keep a dead worker alive."""
  write_ping(tmp_path, 'other')
  future = time.time() + 3600
  os.utime(tmp_path / 'PING', (future, future))
  if alive:
    threading.Timer(0.1, write_ping, (tmp_path, 'other')).start()
    with pytest.raises(running.SkipRun):
      make_run(tmp_path, ping_every=0.3).claim()
  else:
    make_run(tmp_path, ping_every=0.3).claim()


@pytest.mark.parametrize('ping_every', [0, 0.2])
def test_folder_that_is_moved(ping_every, tmp_path):
  """The run ends, and nothing appears in the old place."""
  logdir, elsewhere = tmp_path / 'run', tmp_path / 'elsewhere'

  def process_fn(unused_logdir):
    (logdir / 'data').touch()
    yield 1
    logdir.rename(elsewhere)
    time.sleep(2 * ping_every)
    yield 2

  run = make_run(logdir, process_fn, ping_every=ping_every)
  run.claim()
  with pytest.raises(locks.Lost, match='moved or deleted'):
    list(run)
  assert not logdir.exists()
  assert not {'DONE', 'FAIL'} & set(os.listdir(elsewhere))


def test_run_of_another_process_is_skipped(tmp_path):
  """Also by one that has looked before; the lock is gone with the owner."""
  first, second = make_run(tmp_path), make_run(tmp_path)
  first.claim()
  with pytest.raises(running.SkipRun):
    second.claim()
  assert sorted(os.listdir(tmp_path)) == ['PING', 'lock']
  list(first)
  assert sorted(os.listdir(tmp_path)) == ['DONE', 'PING']


def test_run_that_ends_while_it_is_claimed(tmp_path, monkeypatch):
  """Nobody begins it again, although it was open a moment before."""
  run = make_run(tmp_path)
  hold = folder.lock

  def end_and_hold(logdir, *args):
    folder.mark(logdir, 'DONE')
    return hold(logdir, *args)

  monkeypatch.setattr(folder, 'lock', end_and_hold)
  with pytest.raises(running.SkipRun):
    run.claim()
  assert os.listdir(tmp_path) == ['DONE']


def test_resuming_can_be_switched_off(tmp_path):
  write_ping(tmp_path, 'me')
  with pytest.raises(running.SkipRun):
    make_run(tmp_path, resume_runs=False).claim()


@pytest.mark.parametrize('content', [b'', b'\x80garbage'])
def test_unreadable_ping(content, tmp_path):
  """It counts as a sign of life of its own age, not for ever."""
  file_ = tmp_path / 'PING'
  file_.write_bytes(content)
  with pytest.raises(running.SkipRun):
    make_run(tmp_path, ping_every=30).claim()
  past = time.time() - 100
  os.utime(file_, (past, past))
  run = make_run(tmp_path, ping_every=0.05)
  run.claim()
  assert list(run) == list(range(VALUES))


def test_finished_run_is_asked_for_once(tmp_path):
  """Even if the number of runs has no limit."""
  for name in ('config.yaml', 'DONE'):
    (tmp_path / name).write_text('')
  experiment = running.Experiment(
    str(tmp_path), count_to_ten, num_runs=None, ping_every=0
  )
  assert list(experiment) == []


def test_stop_while_waiting(tmp_path):
  """After a request, no worker waits for heartbeats or begins a run."""
  run = make_run(tmp_path, ping_every=30)
  endless = running.Experiment(str(tmp_path), count_to_ten, ping_every=30)
  with processes.time_limit(10), stopping.as_if_asked():
    with pytest.raises(running.SkipRun):
      run.claim()
    assert list(endless) == []


def test_endless_experiments_count_up(tmp_path):
  experiment = running.Experiment(
    str(tmp_path), count_to_ten, num_runs=None, ping_every=0
  )
  for run, number in zip(experiment, (1, 2, 3)):
    assert os.path.basename(run.logdir) == f'{number:05d}'
    list(run)


def test_arguments_from_functions(tmp_path):
  """`start_fn` and `resume_fn` of the original, by position."""
  seen = []

  def process(logdir, *args):
    seen.append(args)
    yield from range(3)

  functions = process, lambda logdir: [1], lambda logdir: (2, 3)
  for number in (1, None):
    experiment = running.Experiment(
      str(tmp_path), *functions, 1, 'me', ping_every=0
    )
    # The first time, the worker dies.
    for _ in itertools.islice(next(iter(experiment)), number):
      pass
  assert seen == [([1],), (2, 3)]
  folder = str(tmp_path / 'other')
  experiment = running.Experiment(folder, process, None, None, 1, ping_every=0)
  assert [list(x) for x in experiment] == [[0, 1, 2]] and seen[2:] == [()]


def test_run_that_changes_the_working_directory(tmp_path, monkeypatch):
  def process(logdir):
    os.chdir('/')
    folder.mark(logdir, 'own')
    yield 1.0

  monkeypatch.chdir(tmp_path)
  for run in running.Experiment('runs', process, num_runs=1, ping_every=0):
    assert list(run) == [1.0]
  assert {'own', 'DONE'} <= set(os.listdir(tmp_path / 'runs' / '00001'))

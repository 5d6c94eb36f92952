"""Trainings as objects, with the smallest of generators."""

import contextlib
import gc
import io
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest

from agents.run import errors, folder, stopping, training
from agents.run.log import MetricsWriter, read_events, read_metrics

SCRIPT = """
import logging
import sys
from agents.run import training

def work():
  try:
    print('noise', file=sys.stderr)
    logging.getLogger('agents').warning('caution')
    yield {'epoch': 1}
    yield {'epoch': 2}
  finally:
    open(sys.argv[1], 'w').write('saved')

records = training.Training(work)
for record in records:
  break
"""


def work(log, epochs=3):
  """Yields records, and says in a list what becomes of the training."""
  try:
    for epoch in range(1, epochs + 1):
      print('noise')
      yield {'epoch': epoch, 'random': (random.random(), np.random.rand())}
    log.append('finished')
  except GeneratorExit:
    log.append('saved')
    raise


def start(log, **options):
  return training.Training(lambda: work(log), **options)


def test_iteration(capsys):
  log = []
  assert [x['epoch'] for x in start(log)] == [1, 2, 3]
  assert log == ['finished']
  assert capsys.readouterr().out == ''
  assert len(list(start(log, verbose=True))) == 3
  assert capsys.readouterr().out == 'noise\n' * 3


def test_closing_saves():
  log = []
  records = start(log)
  next(records)
  records.close()
  records.close()
  assert log == ['saved'] and list(records) == []
  with start(log) as records:
    next(records)
  assert log == ['saved'] * 2
  # Not even begun.
  start(log).close()
  assert log == ['saved'] * 2


def test_dropping_saves():
  log = []
  for _ in start(log):
    break
  gc.collect()
  assert log == ['saved']


@pytest.mark.parametrize('end', ['', 'raise ValueError'])
def test_the_end_of_the_program_saves(tmp_path, end):
  filename = tmp_path / 'saved'
  command = [sys.executable, '-c', SCRIPT + end, str(filename)]
  done = subprocess.run(command, timeout=60, capture_output=True, text=True)
  assert filename.read_text() == 'saved'
  assert done.returncode == bool(end)
  assert ('ValueError' in done.stderr) == bool(end)
  # Warnings are told, nothing else.
  assert done.stderr.startswith('caution\n')


def test_forks_of_the_caller_end():
  """They leave the training to their parent."""
  log = []
  records = start(log)
  next(records)
  child = os.fork()
  if not child:
    records.close()
    os._exit(len(log))
  end = time.monotonic() + 20
  while not (found := os.waitpid(child, os.WNOHANG))[0]:
    if time.monotonic() > end:
      os.kill(child, signal.SIGKILL)
    time.sleep(0.05)
  assert found == (child, 0)
  assert len(list(records)) == 2 and log == ['finished']


def test_errors_reach_the_caller():
  def fail():
    yield {'epoch': 1}
    raise KeyError('broken')

  records = training.Training(fail)
  next(records)
  with pytest.raises(KeyError, match='broken'):
    next(records)
  assert list(records) == []


def test_sentences_are_printed(capsys):
  def speak():
    yield 'There is nothing to do.'

  assert list(training.Training(speak)) == []
  assert capsys.readouterr().err == 'There is nothing to do.\n'


def interrupt_in(name):
  """Send Ctrl-C once `next` of the main thread is in a function."""
  main = threading.main_thread().ident
  limit, names = time.monotonic() + 30, []
  while (name, '__next__') not in zip(names, names[1:]):
    assert time.monotonic() < limit, names
    time.sleep(0.01)
    frames = traceback.walk_stack(sys._current_frames()[main])
    names = [x.f_code.co_name for x, _ in frames]
  os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize('count', [1, 2])
def test_an_interrupt_saves(count):
  """The first one waits for the end of the step, the second one does not."""
  log, left = [], threading.Event()

  def busy():
    yield {'epoch': 1}
    # The rest is one step, which goes on after the interrupts.
    interrupt_in('result')
    if count == 2:
      interrupt_in('wait')
    left.wait(0.3 if count == 1 else 30)
    if stopping.requested():
      log.append('saved')
      raise stopping.StopRequested

  records = training.Training(busy)
  next(records)
  # Processes in the background may ignore it.
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  try:
    with pytest.raises(KeyboardInterrupt):
      next(records)
  finally:
    signal.signal(signal.SIGINT, before)
  assert log == (['saved'] if count == 1 else [])
  left.set()
  assert list(records) == []
  assert log == ['saved'] and not stopping.requested()


def test_random_numbers_are_separate():
  """Neither other trainings nor the caller change those of a training."""

  def seeded():
    random.seed(0)
    np.random.seed(0)
    yield from work([])

  alone = list(training.Training(seeded))
  random.seed(1)
  expected = random.Random(1).random()
  first, second = training.Training(seeded), training.Training(seeded)
  both = list(zip(first, second))
  assert [x for x, _ in both] == [x for _, x in both] == alone
  assert random.random() == expected
  # Without a seed, no two are the same.
  assert next(start([]))['random'] != next(start([]))['random']


def test_a_second_training_takes_over(tmp_path):
  log = []

  def locked():
    with folder.Run.open(str(tmp_path)):
      yield from work(log)

  first = training.Training(locked)
  next(first)
  second = training.Training(locked)
  next(second)
  assert log == ['saved']
  assert list(first) == []
  assert len(list(second)) == 2


def test_each_has_its_own_default_graph():
  from agents.tools.tf1 import tf

  def define():
    tf.reset_default_graph()
    with tf.Session() as sess:
      for _ in range(2):
        assert tf.get_default_session() is sess
        tf.constant(1)
        yield {'operations': len(tf.get_default_graph().get_operations())}

  with tf.Graph().as_default() as graph:
    first, second = training.Training(define), training.Training(define)
    both = list(zip(first, second))
    assert tf.get_default_graph() is graph and not graph.get_operations()
  assert [x['operations'] for x, _ in both] == [1, 2]
  assert [x['operations'] for _, x in both] == [1, 2]


def test_threads_of_the_user_are_heard(capsys):
  """Only what works for a silent training is silent, in whatever thread."""
  began, told = threading.Event(), threading.Event()

  def working():
    owner = training.current()

    def help_out():
      with training.as_part_of(owner):
        print('helper')

    print('noise')
    print('noise', file=sys.stderr)
    helper = threading.Thread(target=help_out)
    helper.start()
    helper.join()
    began.set()
    assert told.wait(10)
    print('noise')
    yield {}

  def tell():
    assert began.wait(10)
    print('heard')
    print('seen', file=sys.stderr)
    told.set()

  thread = threading.Thread(target=tell)
  thread.start()
  before = sys.stdout
  next(training.Training(working))
  thread.join()
  assert sys.stdout is before
  assert capsys.readouterr() == ('heard\n', 'seen\n')


def test_streams_that_the_user_replaces_meanwhile():
  """They stay, and what was kept of the old ones still prints."""
  began, told = threading.Event(), threading.Event()
  kept, own = [], io.StringIO()

  def working():
    began.set()
    assert told.wait(10)
    print('noise')
    yield {}

  with contextlib.redirect_stdout(io.StringIO()) as before:
    thread = threading.Thread(target=next, args=(training.Training(working),))
    thread.start()
    assert began.wait(10)
    kept.append(sys.stdout)
    sys.stdout = own
    told.set()
    thread.join()
    assert sys.stdout is own
    print('later', file=kept[0])
  assert before.getvalue() == 'later\n'


def test_python_in_the_graph_is_silent(capsys):
  """TensorFlow calls it in threads of its own."""
  from agents.tools import graph_errors
  from agents.tools.tf1 import tf

  def define():
    with tf.Graph().as_default(), tf.Session() as sess:
      noise = graph_errors.remember(lambda: print('noise'))
      operation = tf.py_func(noise, [], [])
      sess.run(operation)
      yield {}

  next(training.Training(define))
  assert capsys.readouterr().out == ''
  next(training.Training(define, verbose=True))
  assert capsys.readouterr().out == 'noise\n'


def test_silence_of_two_threads(capsys):
  """The last one gives the streams back, whichever it is."""
  events = [threading.Event() for _ in range(2)]

  def wait(event):
    event.wait(10)
    yield {}

  threads = [
    threading.Thread(
      target=next, args=(training.Training(lambda x=x: wait(x)),)
    )
    for x in events
  ]
  for thread in threads:
    thread.start()
    time.sleep(0.1)
  for event, thread in zip(events, threads):
    event.set()
    thread.join()
  print('heard')
  assert capsys.readouterr().out == 'heard\n'


def work_with_metrics(folder):
  """Yields two records, each with a line of metrics before it."""
  with contextlib.closing(MetricsWriter(folder)) as writer:
    for epoch in (1, 2):
      writer.write('epoch', epoch, 10 * epoch, {'test_return': 1}, 50 * epoch)
      yield {'epoch': epoch}


def test_scalars_of_the_user(tmp_path):
  """They are where the others are, at the steps of the record."""
  records = training.Training(lambda: work_with_metrics(str(tmp_path)))
  with pytest.raises(errors.UsageError, match='within the loop'):
    records.log({'a': 1})
  for record in records:
    records.log({'mine/return': np.float32(record['epoch']), 'b': math.nan})
    if record['epoch'] == 2:
      records.log({'c': 4})
  with pytest.raises(errors.UsageError, match='within the loop'):
    records.log({'a': 1})
  rows = read_metrics(str(tmp_path))
  for row in rows:
    del row['wall_time']
  place = {'phase': 'own', 'step': 2, 'global_step': 20, 'env_steps': 100}
  assert rows[3] == {**place, 'mine/return': 2.0, 'c': 4.0}
  events = read_events(str(tmp_path / 'scalars'))
  assert events[1] == {'return/test': 1, 'mine/return': 2, 'c': 4}
  assert len(rows) == 4 and len(events) == 2


@pytest.mark.parametrize(
  'scalars, message',
  [
    ({'a': 'many'}, "Cannot log 'a': 'many'; give a number."),
    ({'a': [1, 2]}, 'give a number'),
    ({1: 2}, 'a name is text'),
    ({' ': 2}, 'a name is text'),
    ({'step': 2}, 'choose another name'),
  ],
)
def test_scalars_that_are_none(tmp_path, scalars, message):
  """Refused as a whole, before anything is written."""
  with training.Training(lambda: work_with_metrics(str(tmp_path))) as records:
    next(records)
    with pytest.raises(errors.UsageError) as error:
      records.log({'good': 1, **scalars})
    assert message in str(error.value)
    assert len(read_metrics(str(tmp_path))) == 1


def test_saves_when_asked():
  """The training goes on, also where that fails; between records only."""
  saved = []

  def work():
    with training.saving(lambda: saved.append(1 / (1 - len(saved)))):
      yield {}
      yield {}

  records = training.Training(work)
  with pytest.raises(errors.UsageError, match='Training.save needs a training'):
    records.save()
  next(records)
  records.save()
  next(records)
  with pytest.raises(ZeroDivisionError):
    records.save()
  assert not list(records) and saved == [1]
  with pytest.raises(errors.UsageError, match='within the loop'):
    records.save()


def test_scalars_without_a_folder():
  with start([]) as records:
    next(records)
    with pytest.raises(errors.UsageError, match='give the training a logdir'):
      records.log({'a': 1})

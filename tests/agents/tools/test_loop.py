"""Phases, reports, summaries and checkpoints of the loop."""

import ast
import glob
import os
import time

import numpy as np
import pytest

from agents.run import checkpoint, errors, log
from agents.tools import graph_errors, phases
from agents.tools.loop import Loop
from agents.tools.tf1 import tf
from tests import golden, graphs


class Recorder(phases.Observer):
  """Notes what each execution led to, one row per execution."""

  def __init__(self):
    self.rows = []

  def checkpoint(self, path):
    assert os.path.basename(path).startswith('model.ckpt-')
    assert os.path.exists(path + '.index')
    self.rows[-1]['checkpoint'] = int(path.rpartition('-')[2])

  def score(self, phase, epoch, global_step, score):
    self.rows[-1]['yielded'] = 1

  def summary(self, phase, step, global_step, summary):
    self.rows[-1]['summary_step'] = step
    phase.writer.flush()


def finished(row, batch):
  """Which episodes of a batch end in an execution, and their scores."""
  done = [(row + index) % 3 == 0 for index in range(batch)]
  return np.array(done), np.float32([10 * row + x for x in range(batch)])


def define_phases(loop, spec, placeholders, rows):
  """Phases that add a row for each execution."""

  def note(phase, log, report, reset):
    row = dict(phase=phase, log=log, report=report, reset=reset)
    rows.append(dict(row, checkpoint=0, yielded=0, summary_step=None))
    value = tf.Summary.Value(tag='row', simple_value=len(rows) - 1)
    text = tf.Summary(value=[value]).SerializeToString()
    return finished(len(rows) - 1, spec['batch']) + (text,)

  for index, phase in enumerate(spec['phases']):
    done, score, summary = tf.py_func(
      lambda *flags, index=index: note(index, *flags),
      placeholders,
      [tf.bool, tf.float32, tf.string],
    )
    done.set_shape([spec['batch']])
    score.set_shape([spec['batch']])
    loop.add_phase(done=done, score=score, summary=summary, **phase)


def expected_scores(rows, batch):
  """Mean over what ended since the last report of the same phase."""
  pending, scores = {}, []
  for index, row in enumerate(rows):
    collected = pending.setdefault(row['phase'], [])
    done, score = finished(index, batch)
    collected += score[done].tolist()
    if row['yielded']:
      scores.append(np.mean(collected) if collected else np.nan)
      collected.clear()
  return scores


@pytest.mark.parametrize('name', ['train_eval', 'not_dividing', 'resume'])
def test_recorded_schedule(name, tmp_path):
  """`ppo/loop_schedule`: the flags of every execution and what follows.

  `resume` begins in the middle. Exact, scores to 1e-6.
  """
  data = golden.load('ppo/loop_schedule').below(name)
  spec = ast.literal_eval(str(data['spec']))
  step = tf.Variable(spec['start_step'], False, dtype=tf.int32)
  placeholders = [tf.placeholder(tf.bool, ()) for _ in range(3)]
  recorder = Recorder()
  loop = Loop(str(tmp_path), step, *placeholders, observers=[recorder])
  define_phases(loop, spec, placeholders, recorder.rows)
  with graphs.session() as sess:
    scores = list(
      loop.run(sess, tf.train.Saver(max_to_keep=100), spec['max_step'])
    )
    final_step = sess.run(step)
  rows = recorder.rows
  assert len(rows) == len(data['phase'])
  for key in ('phase', 'reset', 'log', 'report', 'yielded', 'checkpoint'):
    assert [int(row[key]) for row in rows] == data[key].tolist(), key
  assert final_step == data['global_step'][-1] + spec['batch']
  np.testing.assert_allclose(scores, expected_scores(rows, spec['batch']), 1e-6)
  names = [spec['phases'][x]['name'] for x in data['phase']]
  expected = sorted(zip(names, data['summary_step'], range(len(rows))))
  assert read_summaries(tmp_path) == expected


def read_summaries(logdir):
  """Sorted tuples of phase, step and row from all event files."""
  found = []
  for filename in glob.glob(str(logdir / '*' / '*tfevents*')):
    phase = os.path.basename(os.path.dirname(filename))
    for event in tf.train.summary_iterator(filename):
      found += [
        (phase, event.step, int(value.simple_value))
        for value in event.summary.value
      ]
  return sorted(found)


def test_without_folder():
  """Neither files nor summaries, but scores; scalars have a batch of one."""
  log, report = [tf.placeholder(tf.bool, ()) for _ in range(2)]
  flags = []

  def note(log):
    flags.append(bool(log))
    return ''

  summary = tf.py_func(note, [log], tf.string)
  loop = Loop(None, log=log, report=report)
  loop.add_phase('eval', tf.constant(True), 3.0, summary, 4, 2, 1, 1)
  with graphs.session() as sess:
    assert list(loop.run(sess, None, 6)) == [3, 3, 3]
  assert flags == [False] * 6


def test_unknown_rank_is_refused():
  loop = Loop(None)
  with pytest.raises(ValueError, match='Rank'):
    loop.add_phase('a', tf.placeholder(tf.bool), 0.0, '', 1)


def test_summary_may_be_constant():
  """Bytes that are no tensor yet, such as an empty summary."""
  loop = Loop(None)
  loop.add_phase('train', True, 0.5, '', steps=1, report_every=1)
  with graphs.session() as sess:
    assert list(loop.run(sess, None, 2)) == [0.5, 0.5]


def score_models(logdir, scores, max_step):
  """Score a model after each of its steps, whose number is its weight."""
  with tf.Graph().as_default():
    step = tf.Variable(0, False, dtype=tf.int32, name='global_step')
    weight = tf.Variable(0.0)
    with tf.control_dependencies([weight.assign_add(1.0)]):
      score = tf.gather(tf.constant(scores), step)
    loop = Loop(str(logdir), step)
    loop.best_phase = 'eval'
    loop.add_phase('train', True, 100.0, '', 1, 1, None, 1)
    loop.add_phase('eval', True, score, '', 1, 1)
    with graphs.session() as sess:
      saver = tf.train.Saver()
      newest = checkpoint.find_variables(str(logdir))
      if newest:
        saver.restore(sess, newest)
      list(loop.run(sess, saver, max_step))
  path = checkpoint.find_variables(str(logdir), 'best')
  reader = tf.train.load_checkpoint(path)
  return [reader.get_tensor(x) for x in ('Variable', 'global_step')]


def test_best_model(tmp_path):
  """It is kept beside the newest ones, also over the end of a process."""
  scores = [0.0, -3.0, 0.0, np.nan, 0.0, 5.0, 0.0, 4.0, 0.0, 6.0]
  assert score_models(tmp_path, scores, 2) == [1, 2]
  assert score_models(tmp_path, scores, 6) == [3, 6]
  assert score_models(tmp_path, scores, 8) == [3, 6]
  assert checkpoint.read_best_score(str(tmp_path)) == 5
  assert score_models(tmp_path, scores, 10) == [5, 10]
  names = sorted(os.listdir(tmp_path / 'best'))
  ends = ['.data-00000-of-00001', '.index']
  assert names == [f'model.ckpt-10{x}' for x in ends] + ['score.json']
  # The newest ones are those that were due in training.
  assert checkpoint.newest_step(str(tmp_path)) == 9
  (tmp_path / 'best' / 'score.json').write_text('')
  with pytest.raises(errors.UsageError, match='score.json is damaged'):
    checkpoint.find_variables(str(tmp_path), 'best')


class Killed(BaseException):
  """Stands for the end of the process."""


def test_killed_while_storing(tmp_path):
  """What an execution led to was told before, so that nothing is missing."""

  class Events(phases.Observer):
    def score(self, phase, epoch, global_step, score):
      events.append(('score', global_step))

    def summary(self, phase, step, global_step, summary):
      events.append(('summary', global_step))

  class Saver:
    def save(self, sess, filename, global_step):
      raise Killed

  events: list[tuple[str, int]] = []
  step = tf.Variable(0, False, dtype=tf.int32)
  log, report = [tf.placeholder(tf.bool, ()) for _ in range(2)]
  seen = [Events()]
  loop = Loop(str(tmp_path), step, log=log, report=report, observers=seen)
  summary = tf.summary.scalar('row', 1.0)
  loop.add_phase('eval', True, 3.0, summary, 2, 2, 2, 2)
  with graphs.session() as sess, pytest.raises(Killed):
    list(loop.run(sess, Saver(), 4))
  assert events == [('summary', 1), ('score', 2), ('summary', 2)]


@pytest.mark.parametrize(
  'repeat, begin, score', [(True, 4, 8.5), (False, 8, 9.0)]
)
def test_stopped_phase_is_repeated(repeat, begin, score, tmp_path):
  """Its score is that of the episodes of one whole phase."""

  def run(max_step, stop_at=None):
    with tf.Graph().as_default():
      step = tf.Variable(0, False, dtype=tf.int32, name='global_step')
      # An episode takes three steps; one that is not finished is not stored.
      clock = tf.Variable(0, False, name='clock_temporary')
      reset = tf.placeholder(tf.bool, ())
      with tf.control_dependencies([step]):
        done = tf.equal(tf.where(reset, 0, clock) % 3, 2)
      with tf.control_dependencies([done]):
        tick = clock.assign(tf.where(reset, 0, clock) + 1)
      with tf.control_dependencies([tick]):
        summary = tf.constant('')
      end = tf.cast(step, tf.float32) + 1
      loop = Loop(str(tmp_path), step, reset=reset, saves_at_end=True)
      loop.should_stop = lambda: sess.run(step) == stop_at
      loop.add_phase('train', done, end, summary, 4, 4)
      loop.add_phase('eval', done, end, summary, 8, 8, repeat=repeat)
      saver = tf.train.Saver([x for x in tf.global_variables() if x != clock])
      with graphs.session() as sess:
        newest = checkpoint.find_variables(str(tmp_path))
        if newest:
          saver.restore(sess, newest)
        scores = list(loop.run(sess, saver, max_step))
        return sess.run(step), scores

  assert run(12, stop_at=8) == (begin, [3])
  assert run(12) == (12, [score])
  # Who is not asked to stop stays where the limit is.
  assert run(19)[0] == 19


def test_error_within_a_phase(tmp_path):
  """What was done before it is saved, as after Ctrl-C, and goes on."""

  def run(fails):
    with tf.Graph().as_default():
      step = tf.Variable(0, False, dtype=tf.int32, name='global_step')
      weight = tf.Variable(0.0)

      def play(step):
        if fails and step == 5:
          raise errors.EnvError('on purpose')
        return np.float32(step)

      score = tf.py_func(graph_errors.remember(play), [step], tf.float32)
      score.set_shape(())
      with tf.control_dependencies([score]):
        score += weight.assign_add(1.0)
      loop = Loop(str(tmp_path), step, saves_at_end=True)
      loop.add_phase('train', True, score, '', 10, 10)
      saver = tf.train.Saver()
      with graphs.session() as sess:
        if newest := checkpoint.find_variables(str(tmp_path)):
          saver.restore(sess, newest)
        list(loop.run(sess, saver, 10))
        return sess.run(weight)

  with pytest.raises(errors.EnvError, match='on purpose'):
    run(fails=True)
  assert checkpoint.newest_step(str(tmp_path)) == 5
  assert run(fails=False) == 10


class Twins:
  """Communicator of two processes that do the same."""

  def Get_size(self):
    return 2

  def Allreduce(self, source, target):
    target[...] = 2 * source


def test_steps_of_all_processes_count():
  loop = Loop(None, comm=Twins())
  loop.add_phase('phase', True, 5.0, tf.constant(''), 16, report_every=16)
  with graphs.session() as sess:
    # The part of the second phase has a score of its own.
    assert list(loop.run(sess, None, 24)) == [5.0, 5.0]


def test_values_that_phases_feed():
  """Each its own, even if they share a name."""
  number = tf.placeholder(tf.float32, ())
  loop = Loop(None)
  for value in (3.0, 5.0):
    loop.add_phase('same', True, number, '', 1, 1, feed={number: value})
  with graphs.session() as sess:
    assert list(loop.run(sess, None, 4)) == [3.0, 5.0, 3.0, 5.0]


@pytest.mark.parametrize('score', [np.inf, -np.inf])
def test_infinite_scores_end_the_run(tmp_path, score):
  """Nothing is kept of them; the sentence names the step and what is whole."""
  step = tf.Variable(0, False, dtype=tf.int64, name='global_step')
  value = tf.where(step < 4, 1.0, score)
  loop = Loop(str(tmp_path), step, best_phase='phase')
  loop.add_phase('phase', True, value, tf.constant(''), 2, 2, None, 2)
  with graphs.session() as sess:
    saver = tf.train.Saver()
    with pytest.raises(errors.NotFinite) as error:
      list(loop.run(sess, saver))
  assert 'at step 6' in str(error.value)
  assert str(tmp_path / 'model.ckpt-4') in str(error.value)
  assert checkpoint.read_best_score(str(tmp_path)) == 1


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
  """Even if no score shows it; what is not saved does not matter."""
  weights = tf.Variable([1.0, 1.0])
  tf.Variable([np.nan], name='last_temporary')
  with tf.control_dependencies([weights.assign([1.0, np.nan])]):
    score = tf.constant(5.0)
  loop = Loop(str(tmp_path), best_phase='eval')
  loop.add_phase('train', True, 1.0, '', 2, None, None, 2)
  loop.add_phase('eval', True, score, '', 1, 1)
  with (
    graphs.session() as sess,
    pytest.raises(errors.NotFinite, match='step 3'),
  ):
    list(loop.run(sess, tf.train.Saver(), 6))
  assert checkpoint.newest_step(str(tmp_path)) == 2
  assert not (tmp_path / 'best').exists()


def test_numbers_that_are_not_finite_end_the_run():
  value = tf.check_numerics(tf.constant(np.nan), 'loss')
  loop = Loop(None)
  loop.add_phase('phase', True, value, tf.constant(''), 2, 2)
  with graphs.session() as sess:
    with pytest.raises(
      errors.NotFinite, match='at step 0.*there is no checkpoint'
    ):
      list(loop.run(sess, None))


def test_many_steps(tmp_path):
  """More than 32 bits have room for."""
  loop = Loop(None)
  loop.add_phase('phase', True, 1.0, tf.constant(''), 2, 2)
  with graphs.session() as sess:
    loop._step.load(2**31 - 2, sess)
    assert len(list(loop.run(sess, None, 2**31 + 4))) == 3
    assert sess.run(loop._step) == 2**31 + 4


def test_writers_are_closed(tmp_path):
  """All summaries are on disk once the loop has ended; it may go on."""
  step = tf.Variable(0, False, dtype=tf.int64, name='global_step')
  loop = Loop(str(tmp_path), step)
  summary = tf.summary.scalar('x', 1.0)
  loop.add_phase('phase', True, 1.0, summary, 2, None, 1)
  with graphs.session() as sess:
    for last in (2, 4):
      list(loop.run(sess, None, last))
      assert len(log.read_events(str(tmp_path / 'phase'))) == last
      time.sleep(1.1)  # Names of files are times in seconds.

"""Phases, scores and checkpoints, against `planet/trainer.json`."""

import glob
import os

import numpy as np
import pytest

from agents.run import checkpoint, errors
from agents.tools import graph_errors, phases, streaming_mean
from agents.tools.tf1 import tf
from planet.tools.attr_dict import AttrDict
from planet.training import Trainer
from tests import golden

RECORDED = golden.load_json('planet/trainer')


def test_recorded_events():
  """Whether an event is due: phase step, batch, every, result; exact."""
  trainer = Trainer(None)
  for step, batch, every, expected in RECORDED['is_every_steps']:
    due = trainer._is_every_steps(step, batch, every)
    assert due == expected, (step, batch, every)


@pytest.mark.parametrize('row', RECORDED['find_current_phase'])
def test_recorded_phases(row):
  """Phase, epoch and steps within the phase at global steps; exact."""
  trainer = Trainer(None)
  for name, steps in row['phases']:
    trainer.add_phase(name, steps, 0.0, '')
  for global_step, *expected in row['rows']:
    phase, epoch, steps_in = trainer._find_current_phase(global_step)
    assert [phase.name, epoch, steps_in] == expected, global_step


class Recorder(phases.Observer):
  """Notes what each execution was fed, and the checkpoints that exist."""

  def __init__(self):
    self.calls = []
    self.checkpoints = []

  def note(self, step, phase, log, reset):
    row = dict(step=step, phase=phase.decode(), log=log, reset=reset)
    self.calls.append(dict(row, report=False))
    return np.float32(step + 1)

  def score(self, phase, epoch, global_step, score):
    self.calls[-1]['report'] = True

  def checkpoint(self, path):
    assert os.path.exists(path + '.index')
    self.checkpoints.append(int(path.rpartition('model.ckpt-')[2]))


def define_trainer(logdir, config, recorder):
  """Trainer whose score is the phase step plus one."""
  loads = AttrDict(checkpoint_to_load=None)
  trainer = Trainer(str(logdir), loads, observers=[recorder])
  score = tf.py_func(
    recorder.note,
    [trainer.step, trainer.phase, trainer.log, trainer.reset],
    tf.float32,
  )
  score.set_shape(())
  summary = tf.cond(
    trainer.log,
    lambda: tf.summary.scalar('step', tf.cast(trainer.step, tf.float32)),
    lambda: tf.constant(''),
  )
  for name in ('train', 'test'):
    trainer.add_phase(
      name,
      score=score,
      summary=summary,
      batch_size=config['batch'],
      **config[name],
    )
  trainer.add_saver()
  return trainer


def read_events(logdir):
  """Lists of (phase, step) by the last part of the tag, from event files."""
  steps = {}
  for phase in ('train', 'test'):
    for filename in glob.glob(str(logdir / phase / '*tfevents*')):
      for event in tf.train.summary_iterator(filename):
        for value in event.summary.value:
          tag = value.tag.split('/')[-1]
          steps.setdefault(tag, []).append([phase, event.step])
  return steps


@pytest.mark.parametrize('run', RECORDED['runs'], ids=['a', 'b', 'c'])
def test_recorded_run(run, tmp_path):
  """All that is fed, mean scores, checkpoints and events; exact.

  Phases alternate, with batches that divide the phases or do not.
  """
  recorder = Recorder()
  trainer = define_trainer(tmp_path, run['config'], recorder)
  scores = list(trainer.iterate(run['config']['max_step']))
  keys = ('step', 'phase', 'log', 'reset', 'report')
  assert recorder.calls == [{k: x[k] for k in keys} for x in run['rows']]
  np.testing.assert_allclose(scores, run['yielded_scores'], 1e-6)
  assert recorder.checkpoints == run['checkpoints_at_global_step']
  written = read_events(tmp_path)
  logged = [x for x in run['rows'] if x['log']]
  assert len(written['step']) == len(logged)
  # Events with a score but no summary of the phase are written, too.
  everything = written['step'] + written['score']
  for row in run['summaries_written']:
    assert row in everything
  assert all(row in run['summaries_written'] for row in everything)


def count_steps(logdir, max_step, fail_at=None, **config):
  """Run a trainer of one phase; returns it with the steps that were fed."""
  tf.reset_default_graph()
  recorder = Recorder()
  logdir = logdir and str(logdir)
  trainer = Trainer(logdir, AttrDict(config), observers=[recorder])

  def note(step, *more):
    if step == fail_at:
      raise errors.EnvError('on purpose')
    return recorder.note(step, *more)

  score = tf.py_func(
    graph_errors.remember(note),
    [trainer.step, trainer.phase, trainer.log, trainer.reset],
    tf.float32,
  )
  score.set_shape(())
  trainer.add_phase('train', 100, score, '', 5, checkpoint_every=10)
  trainer.add_saver()
  trainer.run(max_step)
  return [x['step'] for x in recorder.calls]


def test_resume(tmp_path):
  """The next process goes on after the newest checkpoint."""
  assert count_steps(tmp_path, 15) == [0, 5, 10]
  assert count_steps(tmp_path, 30) == [10, 15, 20, 25]
  assert count_steps(tmp_path, 30) == []


def test_five_checkpoints_are_kept(tmp_path):
  """Also over several processes, each of which writes three."""
  for max_step in (30, 60, 90):
    count_steps(tmp_path, max_step)
  names = {os.path.basename(x) for x in glob.glob(str(tmp_path / '*.index'))}
  assert names == {f'model.ckpt-{x}.index' for x in (50, 60, 70, 80, 90)}


def test_named_checkpoint(tmp_path):
  count_steps(tmp_path, 30)
  config = dict(checkpoint_to_load='model.ckpt-20')
  assert count_steps(tmp_path, 30, **config) == [20, 25]


def test_incomplete_checkpoint_is_passed_over(tmp_path):
  """A process may be killed while it writes."""
  count_steps(tmp_path, 30)
  for filename in glob.glob(str(tmp_path / 'model.ckpt-30.data-*')):
    os.remove(filename)
  (tmp_path / 'model.ckpt-20.index').write_bytes(b'damaged')
  assert count_steps(tmp_path, 30) == [10, 15, 20, 25]


def test_checkpoint_at_the_end(tmp_path):
  count_steps(tmp_path, 15, checkpoint_at_end=True)
  assert (tmp_path / 'model.ckpt-15.index').exists()
  assert count_steps(tmp_path, 25) == [15, 20]


def test_checkpoint_before_an_error(tmp_path):
  """An environment that fails costs nothing that was learned."""
  with pytest.raises(errors.EnvError, match='on purpose'):
    count_steps(tmp_path, 50, fail_at=35, checkpoint_at_end=True)
  assert checkpoint.newest_step(str(tmp_path)) == 35
  assert count_steps(tmp_path, 45) == [35, 40]


def test_nothing_is_kept_without_a_folder():
  """Also without configuration (the original failed)."""
  assert count_steps(None, 15) == [0, 5, 10]
  assert count_steps(None, 15) == [0, 5, 10]


def test_scores_of_any_length():
  """Vectors count each entry; no entry at all leaves the mean unknown."""
  trainer = Trainer(None)
  length = tf.placeholder(tf.int32, ())
  score = tf.cast(tf.range(length), tf.float32)
  for count in (0, 3):
    trainer.add_phase(f'a{count}', 1, score, '', 1, 1, feed={length: count})
  scores = list(trainer.iterate(4))
  np.testing.assert_array_equal(scores, [np.nan, 1, np.nan, 1])


def define_growing(logdir, means=0, weights=0):
  """Trainer of a model to which bookkeeping or weights have been added."""
  tf.reset_default_graph()
  trainer = Trainer(str(logdir), AttrDict(checkpoint_at_end=True))
  trainer.add_phase('train', 100, 0.0, '', 5)
  tf.get_variable('weight', initializer=tf.constant(1.0))
  for index in range(weights):
    tf.get_variable(f'weight_{index}', initializer=tf.constant(1.0))
  for index in range(means):
    streaming_mean.StreamingMean((), tf.float32, f'mean_{index}')
  trainer.add_saver()
  return trainer


def test_bookkeeping_that_the_checkpoint_does_not_have(tmp_path):
  """Running means begin anew, weights do not; losses may come and go."""
  define_growing(tmp_path).run(15)
  for means, max_step in ((2, 30), (1, 45)):
    define_growing(tmp_path, means).run(max_step)
    assert (tmp_path / f'model.ckpt-{max_step}.index').exists()
  with pytest.raises(errors.UsageError, match='weight_0'):
    define_growing(tmp_path, 1, 1).run(60)


@pytest.mark.parametrize(
  'name, original',
  [
    (
      'graph/optimizers/graph/encoder/kernel/main_1',
      'graph/graph/encoder/kernel/main_1',
    ),
    (
      'graph/optimizers/cond_main/cond/beta2_power',
      'graph/cond_3/optimizer_main/beta2_power',
    ),
  ],
)
def test_slots_of_the_original(tmp_path, name, original):
  """A checkpoint of the released PlaNet continues with its own slots."""

  def define(name, value):
    tf.reset_default_graph()
    trainer = Trainer(str(tmp_path), AttrDict(checkpoint_at_end=True))
    trainer.add_phase('train', 100, 0.0, '', 5)
    slot = tf.get_variable(name, initializer=value, trainable=False)
    trainer.add_saver()
    return trainer, slot

  define(original, 3.0)[0].run(15)
  trainer, slot = define(name, 0.0)
  with tf.Session() as sess:
    trainer.run(20, sess)
    assert sess.run(slot) == 3


def test_numbers_that_are_checked_end_the_run(tmp_path):
  """As in the loops of debug runs."""
  trainer = Trainer(str(tmp_path))
  score = tf.check_numerics(tf.constant(np.nan), 'state')
  trainer.add_phase('train', 5, score, '', report_every=5)
  trainer.add_saver()
  with pytest.raises(errors.NotFinite, match='at step 0: .*is no checkpoint'):
    trainer.run(10)


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_nothing_that_is_not_finite_is_saved(value, tmp_path):
  """Neither a new checkpoint nor a better best one; the last stays."""
  trainer = Trainer(str(tmp_path), AttrDict(checkpoint_at_end=True))
  trainer.best_phase = 'train'
  weight = tf.get_variable('weight', initializer=tf.ones([2]))
  grow = tf.assign(
    weight, tf.where([trainer.global_step < 10] * 2, weight, [value] * 2)
  )
  with tf.control_dependencies([grow]):
    score = tf.cast(trainer.global_step, tf.float32)
  trainer.add_phase('train', 5, score, '', 5, 5, checkpoint_every=5)
  trainer.add_saver()
  with pytest.raises(errors.NotFinite, match='at step 15: .*/model.ckpt-10'):
    trainer.run(30)
  names = {
    x.partition('.index')[0] for x in os.listdir(tmp_path) if 'index' in x
  }
  assert names == {'model.ckpt-5', 'model.ckpt-10'}
  assert checkpoint.read_best_score(str(tmp_path)) == 5
  assert not glob.glob(str(tmp_path / '*.meta'))


def test_checkpoint_of_two_hours(tmp_path):
  """One stays, as in the original."""
  tf.get_variable('weight', ())
  trainer = Trainer(str(tmp_path))
  trainer.add_saver()
  kept = trainer._saver.as_saver_def()
  assert kept.keep_checkpoint_every_n_hours == 2


def test_several_savers(tmp_path):
  """Parts of another run, as with `config.savers` of the original."""

  def train(folder, start, *savers):
    with tf.Graph().as_default(), tf.Session() as sess:
      names = 'encoder', 'head'
      values = [tf.get_variable(x, initializer=start) for x in names]
      trainer = Trainer(str(tmp_path / folder))
      step = [tf.assign_add(x, 1.0) for x in values]
      with tf.control_dependencies(step):
        trainer.add_phase('train', 1, tf.zeros([]), '', checkpoint_every=1)
      for saver in savers:
        trainer.add_saver(**saver)
      trainer.run(2, sess)
      return sess.run(values)

  own = {}
  assert train('other', 5.0, own) == [7, 7]
  part = dict(include='encoder', logdir=str(tmp_path / 'other'), save=False)
  assert train('new', 0.0, own, part) == [9, 2]
  part['checkpoint'] = 'model.ckpt-1'
  assert train('newer', 0.0, dict(load=False), part) == [8, 2]
  part = dict(include='head', logdir=str(tmp_path), save=False)
  with pytest.raises(errors.UsageError, match='no checkpoint to restore'):
    train('newest', 0.0, own, part)

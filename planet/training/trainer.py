"""Alternate between training and testing phases."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agents import utility
from agents.run import checkpoint, errors, files, stopping
from agents.tools import graph_errors, phases, streaming_mean
from agents.tools.attr_dict import AttrDict
from agents.tools.tf1 import tf
from planet.tools.filter_variables import filter_variables
from planet.training import precision, released_names
from planet.training.ranks import Ranks

_logger = logging.getLogger(__name__)

Patterns = str | Sequence[str]


class Trainer(phases.PhaseMachine):
  """Execute phases in turn, with scores, summaries and checkpoints.

  All counters count examples: an execution adds the batch size of its phase.

  Args:
    logdir: Folder of the run, or None to write nothing.
    config: AttrDict with optional entries: `precision`, see
      `planet.training.precision`; `checkpoint_to_load`, name of the checkpoint
      to restore from the logdir, '' for none, None for the newest, which it
      searches for; `checkpoint_at_end`, whether to save one when iteration
      ends or is interrupted; `checkpoint_secs`, see `PhaseMachine`; `debug`,
      whether the run is too short to optimize its graph.
    ranks: Processes that train together; only the first one writes to the
      logdir. Only this process by default.
    **more: `best_phase` and `observers`, see `PhaseMachine`.

  Attributes:
    ranks: Processes that train together.
    score_weight: Weight of this process in the mean score.
    may_play: Function that returns whether environment steps are left;
      otherwise training ends after the epoch.
    on_start: Function that is called once the variables are restored.
    global_step: Number of examples over all phases, int64 variable.
    step: Number of examples within the current phase, int32 placeholder.
    phase: Name of the current phase, string placeholder.
    log: Whether to compute summaries, bool placeholder.
    reset: Whether the phase has just started, bool placeholder.
  """

  def __init__(
    self,
    logdir: str | None,
    config: AttrDict | None = None,
    ranks: Ranks | None = None,
    **more: Any,
  ) -> None:
    self.ranks = ranks or Ranks()
    super().__init__(
      logdir if self.ranks.is_first else None,
      should_stop=self.ranks.should_stop,
      comm=self.ranks.comm,
      **more,
    )
    self._has_logdir = bool(logdir)
    self.score_weight = 1.0
    self.may_play: Callable[[], bool] = lambda: True
    self.on_start: Callable[[], None] | None = None
    self._config: Any = config or {}
    self._loaders: list[tuple] = []
    self.checkpoint_secs = self._config.get('checkpoint_secs')
    self.saves_at_end = bool(self._config.get('checkpoint_at_end'))
    self.global_step: tf.Variable = tf.train.get_or_create_global_step()
    self.step = tf.placeholder(tf.int32, (), name='step')
    self.phase = tf.placeholder(tf.string, (), name='phase')
    self.log = tf.placeholder(tf.bool, (), name='log')
    self._report = tf.placeholder(tf.bool, (), name='report')
    self.reset = tf.placeholder(tf.bool, (), name='reset')

  def add_saver(
    self,
    include: Patterns = '.*',
    exclude: Patterns = '.^',
    logdir: str | None = None,
    load: bool = True,
    save: bool = True,
    checkpoint: str | None = None,
  ) -> None:
    """Select variables to save and restore; without this call, none.

    Variables of several savers are restored in their order. The last one with
    `save` writes the checkpoints.

    Args:
      include: Regular expression(s) for names of variables.
      exclude: Regular expression(s) for names to exclude.
      logdir: Folder to restore from, such as that of another run; that of the
        trainer by default.
      load: Whether to restore the variables.
      save: Whether to save them, in the folder of the trainer.
      checkpoint: Name of the checkpoint to restore from; by default the newest
        or, in the folder of the trainer, `checkpoint_to_load`.
    """
    variables = filter_variables(include, exclude)
    saver = utility.define_saver(
      variables=variables,
      keep_checkpoint_every_n_hours=2,  # of the original
    )
    if load:
      self._loaders.append((saver, variables, logdir, checkpoint))
    if not save:
      return
    self._saver = saver
    self._watch_finite(variables)

  def add_phase(
    self,
    name: str,
    steps: int,
    score: tf.Tensor,
    summary: tf.Tensor,
    batch_size: int = 1,
    report_every: int | None = None,
    log_every: int | None = None,
    checkpoint_every: int | None = None,
    restore_every: int | None = None,
    feed: dict[tf.Tensor, Any] | None = None,
  ) -> None:
    """Add a phase to the end of an epoch.

    Args:
      name: Name of the phase, fed to the placeholder `phase`.
      steps: Examples per epoch.
      score: Float tensor, scalar or a vector of any length.
      summary: String tensor of a serialized summary.
      batch_size: Examples per execution.
      report_every: Examples between mean scores, None for never.
      log_every: Examples between summaries, None for never.
      checkpoint_every: Examples between checkpoints, None for never.
      restore_every: Unused, as in the original.
      feed: Extra values to feed in this phase.
    """
    del restore_every
    score = tf.convert_to_tensor(score, tf.float32)
    summary = tf.convert_to_tensor(summary, tf.string)
    if not score.shape.ndims:
      score = score[None]
    writer = self._make_writer(name, flush_secs=30)
    op = self._define_step(name, batch_size, score, summary)
    # All ranks play the logged episodes; the first one writes.
    log_every = log_every if self._has_logdir else None
    due = report_every, log_every, checkpoint_every
    self._phases.append(
      phases.Phase(name, int(steps), batch_size, op, writer, *due, feed or {})
    )

  def run(
    self, max_step: int | None = None, sess: tf.Session | None = None
  ) -> None:
    """Execute the phases and discard the scores, see `iterate`."""
    for _ in self.iterate(max_step, sess):
      pass

  def iterate(
    self, max_step: int | None = None, sess: tf.Session | None = None
  ) -> Iterator[float]:
    """Execute the phases, starting from the newest checkpoint.

    Args:
      max_step: Global step to stop at, None for no limit.
      sess: Session to use; a new one by default.

    Yields:
      Mean scores as floats when they are due.
    """
    session = sess
    if session is None:
      options = self.ranks.session_options()
      bits = self._config.get('precision')
      precision.enable(bits, options)
      if self._config.get('debug') and bits in (None, 'float32'):
        # Such a run is too short to gain what optimizing the graph takes.
        options.graph_options.rewrite_options.disable_meta_optimizer = True
      session = tf.Session(config=options)
    try:
      global_step = self._initialize(session)
      if self.on_start:
        self.on_start()
      yield from self._iterate(session, global_step, max_step)
    finally:
      if sess is None:
        session.close()

  def _execute(self, sess, phase, phase_step, reset, log, report):
    if reset and phase is self._phases[0]:
      if not self.ranks.comm.bcast(self.may_play()):
        raise stopping.StopRequested('All episodes were played.')
    feed = {
      **phase.feed,
      self.step: phase_step,
      self.phase: phase.name,
      self.log: log,
      self._report: report,
      self.reset: reset,
    }

    def execute():
      with graph_errors.unwrapped():
        return sess.run(phase.op, feed)

    summary, score, global_step = self.ranks.run(execute)
    if report:
      score = self.ranks.average_score(float(score), self.score_weight)
      if self.ranks.size > 1:
        summary = _replace_score(summary, phase.name, score)
      self.ranks.check_same(sess)
    return summary, score, int(global_step)

  def _read_step(self, sess):
    return int(sess.run(self.global_step))

  def _define_step(self, name, batch_size, score, summary):
    """Define summary, mean score and new global step of an execution."""

    def add_score():
      scalar = tf.summary.scalar(f'{name}/score', mean_score, family='trainer')
      return tf.summary.merge([summary, scalar])

    with tf.variable_scope(f'phase_{name}', use_resource=True):
      mean = streaming_mean.StreamingMean((), tf.float32, 'score_mean')
      with tf.control_dependencies([score, summary]):
        submit = mean.submit(score)
      with tf.control_dependencies([submit]):
        mean_score = tf.cond(self._report, mean.clear, float)
        summary = tf.cond(self._report, add_score, lambda: summary)
      with tf.control_dependencies([mean_score, summary]):
        next_step = self.global_step.assign_add(batch_size)
      with tf.control_dependencies([next_step]):
        return [tf.identity(x) for x in (summary, mean_score, next_step)]

  def _initialize(self, sess):
    """Initialize or restore all variables; return the global step."""
    with sess.graph.as_default():
      utility.initialize_variables(sess, None, None)
      for saver, variables, logdir, name in self._loaders:
        path = self._find_checkpoint(logdir, name)
        if not path:
          continue
        _logger.info('Restore %s.', path)
        restorer = _choose_restorer(sess, saver, variables, path)
        restorer.restore(sess, path)
        if saver is self._saver and not logdir:
          saver.continue_in(os.path.dirname(path))
      self.ranks.broadcast(sess)
    sess.graph.finalize()
    return self._read_step(sess)

  def _find_checkpoint(self, logdir, name):
    """Return the path of the checkpoint of a saver, None for none."""
    folder = files.expand(logdir) if logdir else self._logdir
    if not folder:
      return None
    if name is None and not logdir:
      name = self._config.get('checkpoint_to_load')
      if name is not None:
        # A run has checked what it continues from.
        return os.path.join(folder, name) if name else None
    path = checkpoint.find_variables(folder, name)
    if logdir and not path:
      raise errors.UsageError(
        f'Folder {logdir} has no checkpoint to restore variables from; give '
        'the folder of a run to add_saver.'
      )
    return path


def _replace_score(summary, name, score):
  """Return a summary with the score of all ranks instead of that of one."""
  changed = tf.Summary.FromString(summary)
  for value in changed.value:
    if value.tag.endswith(f'trainer/{name}/score'):
      value.simple_value = score
  return changed.SerializeToString()


def _choose_restorer(sess, keeper, variables, path):
  """Return a saver that restores a checkpoint, even without some statistics.

  A resumed run may change losses and collections, and with them running means
  and optimizer slots. New ones keep their initial values. Missing weights are
  an error of the given saver.
  """
  with sess.graph.as_default():
    stored = tf.train.NewCheckpointReader(path).get_variable_to_shape_map()
    found = {x: released_names.find(x.op.name, stored) for x in variables}
    missing = {x for x, name in found.items() if not name}
    if missing & set(tf.trainable_variables()):
      return keeper
    if missing:
      names = sorted(x.op.name for x in missing)
      _logger.info('New since this checkpoint: %s.', ', '.join(names))
    named = {name: x for x, name in found.items() if name}
    return utility.define_saver(variables=named)

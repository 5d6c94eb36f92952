"""Execute operations in a loop and coordinate logging and checkpoints."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

from agents.tools import callables, graph_errors, phases, streaming_mean
from agents.tools.tf1 import tf


class Loop(phases.PhaseMachine):
  """Alternate phases of training and evaluation, with one operation each.

  Every operation takes one step in each environment of its batch. A score
  counts when its episode is done; `run` yields the mean of all scores since the
  last report of the same phase.

  Args:
    logdir: Folder for summaries and checkpoints, None to write none.
    step: Variable of the global step; created if not given.
    log: Bool placeholder, whether to compute summaries.
    report: Bool placeholder, whether to compute the mean score.
    reset: Bool placeholder, whether a phase starts.
    comm: MPI communicator of processes that run the same phases, each with
      its share of the batch.
    **more: See `PhaseMachine`.
  """

  def __init__(
    self,
    logdir: str | None,
    step: tf.Variable | None = None,
    log: tf.Tensor | None = None,
    report: tf.Tensor | None = None,
    reset: tf.Tensor | None = None,
    comm: Any = None,
    **more: Any,
  ):
    # Resuming within a phase would lose unfinished episodes.
    super().__init__(logdir, saves_within=False, comm=comm, **more)
    if step is None:
      step = tf.Variable(0, False, dtype=tf.int64, name='global_step')
    self._step = step
    self._log = tf.placeholder(tf.bool) if log is None else log
    self._report = tf.placeholder(tf.bool) if report is None else report
    self._reset = tf.placeholder(tf.bool) if reset is None else reset
    self._processes = self._comm.Get_size()
    self._forget: dict[str, tf.Operation] = {}
    self._functions: dict[phases.Phase, Callable[..., Any]] = {}

  def add_phase(
    self,
    name: str,
    done: tf.Tensor,
    score: tf.Tensor,
    summary: tf.Tensor,
    steps: int,
    report_every: int | None = None,
    log_every: int | None = None,
    checkpoint_every: int | None = None,
    feed: dict[tf.Tensor, Any] | None = None,
    repeat: bool = False,
  ) -> None:
    """Add a phase to the end of an epoch.

    Args:
      name: Name of the phase and of its subfolder in the log directory.
      done: Bool tensor, scalar or [batch], whether scores are final.
      score: Float tensor of the same shape with the scores so far.
      summary: String tensor of a serialized summary, or bytes.
      steps: Steps of the phase per epoch.
      report_every: Steps between two mean scores, None for never.
      log_every: Steps between two summaries, None for never.
      checkpoint_every: Steps between two checkpoints, None for never.
      feed: Extra values to feed in this phase.
      repeat: Whether a phase that is interrupted starts over when resumed, so
        that its score covers all of its episodes.

    Raises:
      ValueError: If the rank of done or score is unknown.
    """
    done = tf.convert_to_tensor(done, tf.bool)
    score = tf.convert_to_tensor(score, tf.float32)
    summary = tf.convert_to_tensor(summary, tf.string)
    if done.shape.ndims is None or score.shape.ndims is None:
      raise ValueError("Rank of 'done' and 'score' tensors must be known.")
    writer = self._make_writer(name, flush_secs=60)
    batch = 1 if score.shape.ndims == 0 else score.shape.as_list()[0]
    batch *= self._processes
    mean = streaming_mean.StreamingMean((), tf.float32, comm=self._comm)
    op = self._define_step(done, score, summary, mean)
    self._phases.append(
      phases.Phase(
        name,
        int(steps),
        batch,
        op,
        writer,
        report_every,
        log_every if writer else None,
        checkpoint_every,
        feed or {},
      )
    )
    if repeat:
      self._forget[name] = mean.forget()

  def run(
    self, sess: tf.Session, saver: Any, max_step: int | None = None
  ) -> Iterator[float]:
    """Run the phases, starting at the global step.

    Args:
      sess: Session to execute the operations in.
      saver: Saver of checkpoints, None to write none.
      max_step: Global step to stop at, None for no limit.

    Yields:
      Mean scores as floats, whenever a report is due.
    """
    self._saver = saver
    with sess.graph.as_default():
      variables = tf.global_variables()
      self._watch_finite(x for x in variables if '_temporary' not in x.name)
    self._max_step = max_step
    flags = [self._reset, self._log, self._report]
    self._functions = {
      x: callables.make_function(x.op, [*x.feed, *flags], sess)
      for x in self._phases
    }
    yield from self._iterate(sess, self._read_step(sess), max_step)

  def _read_step(self, sess):
    return int(sess.run(self._step))

  def _go_back(self, sess):
    """Return to the start of a phase that will be repeated."""
    step = self._read_step(sess)
    if self._max_step and step >= self._max_step:
      return
    phase, _, steps_in = self._find_current_phase(step)
    if phase.name in self._forget:
      self._step.load(step - steps_in + steps_in % phase.batch_size, sess)
      sess.run(self._forget[phase.name])

  def _execute(self, sess, phase, phase_step, reset, log, report):
    if reset:
      message = '{}\nPhase {} (phase step {}, global step {}).'
      logging.getLogger('agents').info(
        message.format('-' * 50, phase.name, phase_step, sess.run(self._step))
      )
    values = *phase.feed.values(), reset, log, report
    with graph_errors.unwrapped(sess.graph):
      summary, score, count, step = self._functions[phase](*values)
    phase.episodes = int(count)
    return summary, score, int(step)

  def _define_step(self, done, score, summary, mean):
    """Tensors for the summary, mean score, its episodes, and global step."""
    if done.shape.ndims == 0:
      done, score = done[None], score[None]
    with tf.control_dependencies([done, score, summary]):
      submit = mean.submit(tf.boolean_mask(score, done))
    with tf.control_dependencies([submit]):
      mean_score, count = tf.cond(
        self._report, mean.clear_counted, lambda: (0.0, 0.0)
      )
      steps = tf.shape(done)[0] * self._processes
      next_step = self._step.assign_add(tf.cast(steps, self._step.dtype))
    with tf.control_dependencies([mean_score, next_step]):
      return (
        tf.identity(summary),
        tf.identity(mean_score),
        tf.identity(count),
        tf.identity(next_step),
      )

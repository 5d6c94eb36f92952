"""One run of the pipeline: its flags, folder, logs, graph and checkpoints."""

import contextlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agents.pipeline import (
  checkpoints,
  folders,
  outputs,
  settings,
  sources,
  toolbox,
)
from agents.run import errors, mpi, references


class Session:
  """Owns what a run shares with the outside.

  Everything that can be wrong with the command line is reported before
  anything is written. With several ranks of MPI, the first one owns the
  folder; the others have none.

  Args:
    argv: List of arguments after the name of the program; those of the
      process by default.

  Attributes:
    args: Namespace of all flags.
    path: Folder of the session, None in a dry run and on other ranks.
    params: Tree of parameters, plain data.
    cpanel: Control panel that the tree was made from.
    trust: `references.Trust` in what the tree names; everything unless it was
      stored.
    state: Dict that is kept in checkpoints.
    shared: Dict of what several parts of the run use; who adds it closes it.
    comm: Communicator of all ranks.
    logger: `Logger`.
    monitor: `Monitor`.
    profiler: `Profiler`.
    writer: `Writer`, with `add_scalar`.

  Raises:
    UsageError: If something is wrong with the arguments.
    SessionFinished: If the training to continue is finished.
  """

  def __init__(self, argv: Sequence[str] | None = None) -> None:
    self.args = settings.parse_args(argv)
    words = sys.argv[1:] if argv is None else argv
    self._command = f'agents-session {shlex.join(words)}'
    self.comm = mpi.world()
    self.state: dict[str, Any] = {}
    self.shared: dict[str, Any] = {}
    self.is_dry_run = self.args.dry_run
    self.is_loading = bool(self.args.load_checkpoint)
    self.is_playing = self.args.play
    self.is_resumed = self.args.resume
    self.is_custom = self.args.custom
    self.is_session_only = self.args.create_session_only
    self.trust = references.EVERYTHING
    if self.is_loading:
      self.trust = settings.find_trust(self.args)
    self._created: str | None = None
    self._outputs: outputs.Outputs | None = None
    self._graph: Any = None
    self._tf_session: Any = None
    # What is open, to be closed by `finalize` in the reverse order.
    self._open = contextlib.ExitStack()
    outputs.check_installed(self.args)
    try:
      self._start()
    except BaseException:
      self.discard()
      self.finalize()
      raise

  def folder(self, name: str) -> str | None:
    """Create a folder in the session; return its path, None without one."""
    if not self.path:
      return None
    path = os.path.join(self.path, name)
    os.makedirs(path, exist_ok=True)
    return path

  @property
  def graph(self) -> Any:
    """Graph of the run, made when it is first asked for."""
    if self._graph is None:
      from agents.tools.tf1 import tf

      self._graph = tf.Graph()
    return self._graph

  def tf_session(self) -> Any:
    """Return the session of TensorFlow, which the first call makes."""
    if self._tf_session is None:
      from agents.tools.tf1 import tf

      threads = self.params.get('tf') or {}
      # Ranks share the cores of a machine.
      default = 1 if self.comm.Get_size() > 1 else 0
      options = tf.ConfigProto(
        allow_soft_placement=True,
        intra_op_parallelism_threads=threads.get('intra_op') or default,
        inter_op_parallelism_threads=threads.get('inter_op') or default,
      )
      options.gpu_options.allow_growth = True
      self._tf_session = tf.Session(graph=self.graph, config=options)
      self._open.callback(self._tf_session.close)
    return self._tf_session

  def make_runner(self) -> Any:
    """Make the runner that the parameters name, without starting it.

    Raises:
      UsageError: If there is no such class.
    """
    from agents.pipeline.runner import Runner

    name = self.params['runner']['name']
    return toolbox.get_class(name, self.trust, Runner)(self.params)

  def save_states(
    self,
    states: Mapping[str, Any],
    index: int,
    runner_state: Mapping[str, Any],
    snapshots: dict[str, Any] | None = None,
  ) -> str | None:
    """Write a checkpoint; all ranks have to call it.

    Args:
      states: Nested dict of plain data, bytes and arrays of this rank.
      index: Number of the epoch.
      runner_state: Plain data, the state of the runner.
      snapshots: Contents of the memories, or None.

    Returns:
      Path of the checkpoint, None in a dry run.
    """
    if not self._checkpoints:
      return None
    runner = {'params': self.params, 'state': runner_state}
    return self._checkpoints.save(
      index,
      self.tf_session(),
      {**states, 'session': self.state},
      settings.to_plain(runner),
      snapshots,
    )

  def load_states(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Restore variables from the checkpoint that the user gave.

    Returns:
      Tuple of the states and the contents of memories, or None for those.
    """
    stored = checkpoints.Checkpoints(self._source.session, self.comm)
    states, snapshots = stored.load(self._source.checkpoint, self.tf_session())
    self.state.update(states.pop('session'))
    return states, snapshots

  def mark_as_done(self) -> None:
    """Remember that all epochs are done."""
    if self.path:
      folders.mark_as_done(self.path)

  def mark_as_started(self) -> None:
    """Remember that everything could be built, so that the session stays.

    One that goes on from an older checkpoint puts the newer ones aside.
    """
    if not self.path:
      return
    folders.mark_as_started(self.path)
    if self.is_resumed:
      epoch = self.runner_state['i_epoch']
      folder = checkpoints.set_newer_aside(self.path, epoch)
      if folder:
        self.logger.warn(
          f'Going on after epoch {epoch}; newer checkpoints are now in '
          f'{folder}.'
        )

  def discard(self) -> None:
    """Leave nothing of a session that is new, but could not start."""
    if self._created:
      # First what writes to it.
      if self._outputs:
        with contextlib.suppress(BaseException):
          self._outputs.close()
      folders.discard(self._created)
    self._created = None

  def finalize(self) -> None:
    """Close everything, also if a part of it fails.

    Checkpoints are not written. The failure is raised at the end, unless this
    is called because of another one.
    """
    failing = sys.exc_info()[0] is not None
    try:
      self._open.close()
    except BaseException:
      if not failing:
        raise

  def _start(self):
    """Read parameters, then open the folder and everything in it."""
    expected = (errors.UsageError, folders.SessionFinished)
    source = mpi.on_first_rank(self.comm, self._find_source, expected)
    settings.repeal(source.params, self.args.repeal)
    self._source = source
    self.cpanel, self.params = source.cpanel, source.params
    self.runner_state = source.state
    # All ranks use the folder of checkpoints, only the first one the rest.
    shared = mpi.on_first_rank(self.comm, self._open_folder, expected)
    self._checkpoints = shared and checkpoints.Checkpoints(shared, self.comm)
    first = self.comm.Get_rank() == 0
    self.path = shared if first else None
    shown = settings.to_plain(self.params)
    told = outputs.Outputs(self.path, self.args, first, shown)
    self._outputs = told
    self._open.callback(told.close)
    self.logger, self.monitor = told.logger, told.monitor
    self.profiler, self.writer = told.profiler, told.writer
    for text in source.warnings:
      self.logger.warn(text)
    if self.path and self.is_resumed and self.args.session_name:
      self.logger.warn('Flag --session-name has no effect with --resume.')

  def _find_source(self):
    """Parameters of the module or of the session that the user has named."""
    path = self.args.load_checkpoint
    if not path:
      return sources.generate(self.args.params, self.args.cpanel)
    if self.is_resumed and not self.is_dry_run:
      session, _ = folders.find_session(path)
      self._open.callback(folders.lock(session).close)
      checkpoints.recover(session)
    return sources.load(path)

  def _open_folder(self):
    """Create or enter the folder of this session; return its path."""
    args, stored = self.args, self._source.session
    if self.is_dry_run:
      return None
    if self.is_resumed:
      if 'runner.n_epochs' in args.repeal:
        folders.unmark(stored)
      folders.check_unfinished(stored)
      return stored
    base = args.session_path
    if self.is_loading:
      child = 'evaluations' if self.is_playing else 'customs'
      base = os.path.join(stored, child)
    path, lock = folders.create(base, args.session_name)
    self._created = path
    self._open.callback(lock.close)
    packages = settings.find_packages(self.params)
    folders.copy_modules(path, [*packages, *args.save_modules])
    self.params.update(
      session_name=os.path.basename(path),
      session_msg=args.msg,
      session_cmd=self._command,
    )
    self._source.write(path)
    return path

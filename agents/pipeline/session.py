"""One run of the pipeline: its flags, folder, logs, graph and checkpoints."""

import contextlib
import os
import shlex
import sys
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from agents.pipeline import folders
from agents.pipeline import old_trees
from agents.pipeline import settings
from agents.pipeline import toolbox
from agents.pipeline.checkpoints import Checkpoints
from agents.pipeline.logs import Logger
from agents.pipeline.logs import Monitor
from agents.pipeline.profiler import Profiler
from agents.run import errors
from agents.run import files
from agents.run import mpi
from agents.run import references


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
    self._command = f'python -m agents.pipeline.main {shlex.join(words)}'
    self.comm = mpi.world()
    self.state: dict[str, Any] = {}
    self.shared: dict[str, Any] = {}
    self.is_dry_run = self.args.dry_run
    self.is_loading = bool(self.args.load_checkpoint)
    self.is_playing = self.args.play
    self.is_resumed = self.args.resume
    self.is_custom = self.args.custom
    self.is_session_only = self.args.create_session_only
    self.runner_state: dict[str, Any] = {}
    unknown: Any = None  # Each of these is set later, if at all.
    self._source = self._checkpoint = self._lock = unknown
    self._graph = self._tf_session = self._checkpoints = unknown
    self.trust = references.EVERYTHING
    if self.is_loading:
      self.trust = settings.find_trust(self.args)
    self._created: str | None = None
    self._extras: list[Callable[[], None]] = []
    self._check_extras()
    try:
      self._open()
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
    snapshots: Mapping[str, Any] | None = None,
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
    if not self._shared_path:
      return None
    runner = {'params': self.params, 'state': runner_state}
    return self._get_checkpoints(self._shared_path).save(
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
    checkpoints = Checkpoints(self._source, self.comm)
    states, snapshots = checkpoints.load(self._checkpoint, self.tf_session())
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
      folder = folders.set_newer_aside(self.path, epoch)
      if folder:
        self.logger.warn(
          f'Going on after epoch {epoch}; newer checkpoints are now in '
          f'{folder}.'
        )

  def discard(self) -> None:
    """Leave nothing of a session that is new, but could not start."""
    if self._created:
      # First what writes to it.
      self._close_extras()
      folders.discard(self._created)
      self.trust = references.EVERYTHING
    if self.is_loading:
      self.trust = settings.find_trust(self.args)
    self._created = None

  def finalize(self) -> None:
    """Close everything, also if a part of it fails.

    Checkpoints are not written. The first failure is raised at the end,
    unless this is called because of another one.
    """
    failures = self._close_extras()
    if self._tf_session is not None:
      self._tf_session.close()
    if self._lock is not None:
      self._lock.close()
      self._lock = None
    if failures and sys.exc_info()[0] is None:
      raise failures[0]

  def _open(self):
    """Read parameters, then open the folder and everything in it."""
    if self.is_loading:
      loaded = self._on_first_rank(self._load)
      self._source, self._checkpoint, self.cpanel, runner = loaded
      self.params, self.runner_state = runner['params'], runner['state']
      old_trees.upgrade(self.params)
    else:
      self.cpanel, self.params = self._on_first_rank(self._generate)
    settings.repeal(self.params, self.args.repeal)
    # All ranks use the folder of checkpoints, only the first one the rest.
    self._shared_path = self._on_first_rank(self._open_folder)
    self.path = self._shared_path if self.comm.Get_rank() == 0 else None
    self._open_logs()

  def _generate(self):
    """Control panel and tree from the module of parameters."""
    module = toolbox.get_module(self.args.params, self.trust)
    for name in ('cpanel', 'gen_params'):
      if not hasattr(module, name):
        raise errors.UsageError(
          f'Module {self.args.params} has no {name!r}, which modules of '
          'parameters need; see agents.pipeline.params.ppo_pendulum.'
        )
    cpanel = settings.update_cpanel(module.cpanel, self.args.cpanel)
    return cpanel, module.gen_params(cpanel)

  def _load(self):
    """Session and checkpoint to load, control panel, and runner as stored."""
    import json

    path = self.args.load_checkpoint
    if self.is_resumed and not self.is_dry_run:
      source, _ = folders.find_session(path)
      self._lock = folders.lock(source)
      folders.recover(source)
    source, checkpoint = folders.find_checkpoint(path)
    try:
      with open(os.path.join(source, 'cpanel.json')) as file_:
        cpanel = settings.parse_json(file_.read())
      runner = files.read_yaml(os.path.join(checkpoint, 'runner.yaml'))
      _ = runner['params'], runner['state']
    except (OSError, TypeError, KeyError, json.JSONDecodeError) as error:
      raise errors.UsageError(
        f'Cannot read the parameters of {checkpoint} ({error}); give another '
        'checkpoint.'
      ) from None
    return source, checkpoint, cpanel, runner

  def _open_folder(self):
    """Create or enter the folder of this session; return its path."""
    args = self.args
    if self.is_dry_run:
      return None
    if self.is_resumed:
      if 'runner.n_epochs' in args.repeal:
        folders.unmark(self._source)
      folders.check_unfinished(self._source)
      return self._source
    base = args.session_path
    if self.is_loading:
      child = 'evaluations' if self.is_playing else 'customs'
      base = os.path.join(self._source, child)
    path = self._created = folders.create(base, args.session_name)
    self._lock = folders.lock(path)
    packages = settings.find_packages(self.params)
    folders.copy_modules(path, [*packages, *args.save_modules])
    self.params.update(
      session_name=os.path.basename(path),
      session_msg=args.msg,
      session_cmd=self._command,
    )
    folders.write_json(os.path.join(path, 'cpanel.json'), self.cpanel)
    files.write_yaml(
      os.path.join(path, 'params.yaml'), settings.to_plain(self.params)
    )
    return path

  def _close_extras(self):
    """Close what runs beside; returns a list of the errors."""
    failures = []
    while self._extras:
      try:
        self._extras.pop()()
      except BaseException as error:  # A second Ctrl-C, too.
        failures.append(error)
        with contextlib.suppress(OSError):
          self.logger.error(f'While closing the session: {error!r}')
    return failures

  def _open_logs(self):
    args, first = self.args, self.comm.Get_rank() == 0
    where = self._file
    self.logger = Logger(where('report.log'), args.log_level if first else 9)
    self.monitor = Monitor(where('varlog.json'))
    self.profiler = Profiler(where('prolog.json'), args.profiler_level)
    self.writer = self._make_writer()
    self.monitor.listeners.append(self._write_statistics)
    if not self.path:
      return
    if args.repeal:
      folders.write_json(where('repeal.json'), args.repeal)
    if self.is_resumed and args.session_name:
      self.logger.warn('Flag --session-name has no effect with --resume.')
    from agents.pipeline.resources import ResourceThread

    resources = ResourceThread(
      where('monlog.json'),
      not args.no_monitor_cpu,
      not args.no_monitor_gpu,
      logger=self.logger,
      meta=lambda: self.monitor.meta,
    )
    resources.start()
    self._extras.append(resources.stop)
    self.logger.info(f'Session {self.path}.')

  def _make_writer(self):
    from agents.pipeline.writers import Writer

    mirrors = []
    if self.args.visdom and self.comm.Get_rank() == 0:
      from agents.pipeline.visdom_mirror import VisdomMirror

      name = os.path.basename(self.path or 'dry_run')
      mirror = VisdomMirror(
        self.args.visdom_port, name, self._file('visdom.log'), self.logger
      )
      mirrors.append(mirror)
    if not self.path:
      writer = Writer(mirrors=mirrors)
    else:
      folder = self.folder('tensorboard')
      assert folder, 'there is a session'
      writer = Writer(folder, self._file('scalars.csv'), mirrors)
      if self.args.tensorboard:
        from agents.pipeline import tensorboard

        self.logger.info(f'TensorBoard at {tensorboard.start(folder)}.')
    self._extras.append(writer.close)
    return writer

  def _write_statistics(self, name, statistics, meta):
    """Draw the means of what the monitor has gathered."""
    mean = statistics['sum'] / statistics['num']
    step = meta.get('frame', meta.get('epoch', 0))
    self.writer.add_scalar(name.strip('/'), mean, step)

  def _check_extras(self):
    """Refuse early what needs packages that are not installed."""
    if self.args.visdom:
      from agents.pipeline import visdom_mirror

      visdom_mirror.find_pages()
    if self.args.tensorboard:
      from agents.pipeline import tensorboard

      tensorboard.check_installed()

  def _get_checkpoints(self, path):
    if self._checkpoints is None:
      self._checkpoints = Checkpoints(path, self.comm)
    return self._checkpoints

  def _file(self, name):
    return self.path and os.path.join(self.path, name)

  def _on_first_rank(self, function):
    """Result of a function on the first rank; its errors reach all ranks."""
    result = error = None
    if self.comm.Get_rank() == 0:
      try:
        result = function()
      except (errors.UsageError, folders.SessionFinished) as failure:
        error = failure
    result, error = self.comm.bcast((result, error))
    if error is not None:
      raise error
    return result

"""One run of the pipeline: flags, parameters, folder, outputs, in this order.

All errors in the command line are reported before anything is written. Imports
TensorFlow only when the graph is needed.
"""

import argparse
import contextlib
import copy
import functools
import itertools
import logging
import os
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Interval

from agents.pipeline import (
  checkpoints,
  logs,
  resources,
  toolbox,
  visdom_mirror,
)
from agents.run import (
  checkpoint,
  entry,
  errors,
  files,
  flags,
  folder,
  log,
  mpi,
  references,
  schema,
  wandb_mirror,
)
from agents.run.schema import Count, Whole, setting

_LOCK, _DONE = 'running.lock', 'done.lock'
# A session is a package that knows what it holds.
_PACKAGE = '__init__.py'
_INIT = '''"""A session of agents.pipeline; see `loader`."""

from .saam import loader
'''
_SAAM = '''"""Parameters, paths and logs of this session."""

import os

from agents.pipeline.loader import Loader

loader = Loader(os.path.dirname(os.path.abspath(__file__)))
'''


class SessionFinished(errors.UsageError):
  """The training to resume has completed all of its epochs."""

  code = 3


class Flags(schema.Settings):
  """Flags of `agents-session`."""

  params: str = setting('', 'parameter module of a new session', title='MODULE')
  cpanel: str = setting('{}', 'values to change in its cpanel', title='YAML')
  repeal: str = setting(
    '{}',
    'values to change anywhere in the tree, such as {"runner.n_epochs": 5}',
    title='YAML',
  )
  load_checkpoint: str = setting(
    '', 'checkpoint, or session to load the newest checkpoint of', title='PATH'
  )
  resume: bool = setting(False, 'continue training in the loaded session')
  play: bool = setting(False, 'play the loaded policy, or an untrained one')
  play_episodes: Count = setting(5, 'episodes to play; 0: no limit', title='N')
  trust: list[str] = setting([], references.HELP, title='MODULE')
  custom: bool = setting(False, "call the runner's custom()")
  create_session_only: bool = setting(False, 'write checkpoint 0 and exit')
  dry_run: bool = setting(False, 'write nothing to disk')
  session_path: str = setting(
    '~/logdir/sessions', 'folder for sessions', title='FOLDER'
  )
  session_name: schema.FileName = setting(
    '', 'name of the new session', title='NAME'
  )
  save_modules: list[str] = setting(
    [], 'packages to copy into the session', title='PACKAGE'
  )
  msg: str = setting('', 'note to store with the parameters', title='TEXT')
  log_level: Annotated[Whole, Interval(ge=0, le=4)] = setting(
    1, 'least severe messages to print: 0 debug to 4 fatal', title='N'
  )
  profiler_level: Whole = setting(-1, 'depth of the profile', title='N')
  tensorboard: bool = setting(False, 'start a TensorBoard server')
  visdom: bool = setting(False, 'show live curves in visdom')
  visdom_port: Annotated[Whole, Interval(ge=1, le=65535)] = setting(
    8097, 'port of the visdom server, started if needed', title='N'
  )
  wandb: str | None = setting(None, flags.WANDB, title='PROJECT')
  no_monitor_cpu: bool = setting(False, 'do not log CPU and memory')
  no_monitor_gpu: bool = setting(False, 'do not log GPUs')
  # Flags of the original that select the default.
  monitor_cpu: bool = setting(False)
  monitor_gpu: bool = setting(False)


class Threads(schema.Settings):
  """Settings in the node `tf` of the parameter tree: threads of TensorFlow.

  Attributes:
    intra_op: Threads within an operation, 0 or None for the default.
    inter_op: Operations at the same time.
  """

  called: ClassVar[str] = "Setting {!r} of the node 'tf'"

  intra_op: schema.Threads | Literal[0] | None = None
  inter_op: schema.Threads | Literal[0] | None = None


# Keys of a cpanel that can always be null, for no limit.
_NULLABLE = 'max_exec_time', 'max_exec_iter'
_KEPT = ' Sessions keep their parameters; change them with --repeal.'
# Flags of which only one can be given, and what to do instead.
_EXCLUSIVE = {
  'play resume custom': '',
  'create_session_only load_checkpoint': '',
  'create_session_only dry_run': '',
  'create_session_only play': '',
  'load_checkpoint params': _KEPT,
  'load_checkpoint cpanel': _KEPT,
}
# Nodes of a parameter tree; the last ones are those of `params.yaml`.
_NODES = dict.fromkeys(
  ('runner', 'tf', 'env', 'memory', 'agents', 'explorer')
  + ('session_name', 'session_msg', 'session_cmd')
)
# What to do about a session that cannot be written to.
_READ_ONLY = 'Copy the session elsewhere, or add --dry-run to write nothing.'
# Flags that others leave without effect.
_UNUSED = {
  'load_checkpoint': 'session_path',
  'resume': 'session_name save_modules msg',
  'dry_run': 'tensorboard',
}


class Session:
  """State shared by the parts of a run.

  With several MPI ranks, the first one owns the folder and the logs.

  Args:
    argv: List of arguments after the program name, or a command line of them;
      those of the process by default.

  Attributes:
    args: Namespace of all flags.
    path: Folder of the session, None in a dry run and on other ranks.
    params: Parameter tree, plain data.
    cpanel: Control panel from which the tree was generated.
    runner: Runner that the tree names, not yet started.
    comm: Communicator of all ranks.
    logger: `Logger`.
    monitor: `Monitor`, whose means go to the writer.
    profiler: `Profiler`.
    writer: `Writer`, with `add_scalar`.
    loaded: Paths of the session and of the checkpoint that were loaded; None
      for a new session.

  Raises:
    UsageError: If an argument is not valid.
    SessionFinished: If the training to resume is finished.
  """

  loaded: Any

  def __init__(self, argv: Sequence[str] | None = None) -> None:
    argv = shlex.split(argv) if isinstance(argv, str) else argv
    # Paths and numbers come from Python.
    argv = [str(x) for x in (sys.argv[1:] if argv is None else argv)]
    self.args = parse_args(argv)
    self.is_loading = bool(self.args.load_checkpoint)
    self.is_playing, self.is_resumed = self.args.play, self.args.resume
    self.comm = mpi.world()
    self._command = shlex.join(['agents-session', *argv])
    self._tf_session: Any = None
    self._created: folder.Run | None = None
    # Closed by `finalize`, in reverse order.
    self._open = contextlib.ExitStack()
    try:
      self._read_parameters()
      self._create_runner()
      self._open_folder()
      self._open_outputs()
    except BaseException:
      self.discard()
      raise

  def _read_parameters(self):
    """Generate parameters, or load those of a session, on the first rank."""
    args = self.args
    self._warnings: list[str] = []

    def read():
      if not self.is_loading:
        return None, generate(args.params, args.cpanel, self._warnings)
      path = files.absolute(args.load_checkpoint)
      session = checkpoints.find_session(path)
      if args.resume and not args.dry_run:
        files.check_writable(session, _READ_ONLY)
        self._open.enter_context(folder.Run.open(session, _LOCK))
        checkpoint.recover_folders(os.path.join(session, 'checkpoints'))
      found = checkpoints.find_checkpoint(path, session, self._warnings.append)
      return (session, found), load(session, found)

    self.loaded, parts = mpi.on_first_rank(self.comm, read)
    self.cpanel, self.params = parts
    repeal(self.params, args.repeal)
    if self.loaded:
      # What is typed for --repeal is trusted.
      trust = references.parse(args.trust).and_typed(args.repeal.values())
      toolbox.check_names(self.params, trust)

  def _create_runner(self):
    """Create the runner that the parameters name, and check their nodes."""
    node = self.params.get('runner')
    if not isinstance(node, dict) or 'name' not in node:
      raise errors.UsageError(
        f"The node 'runner' of the parameters is {node!r}; give a mapping with "
        'the name of a class, such as agents.pipeline.runner.Runner.'
      )
    given = schema.convert(dict | None, self.params.get('tf'), "The node 'tf'")
    self._threads = Threads.read(given or {})
    kind = toolbox.get_class(node['name'])
    if not hasattr(kind, 'start'):
      raise errors.UsageError(
        f'The runner {node["name"]} has no method start; name a class that is '
        'derived from agents.pipeline.runner.Runner.'
      )
    self.runner = kind(self.params)
    # Classes of users may read nodes of their own.
    if not self.loaded and not toolbox.list_foreign(self.params):
      for name in self.params:
        errors.find('Node of the parameters', name, _NODES)

  def _open_folder(self):
    """Create or enter the folder; only the first rank keeps its path."""
    args = self.args

    def enter():
      if args.dry_run:
        return None
      if args.resume:
        path = self.loaded[0]
        goes_on = 'runner.n_epochs' in args.repeal
        if folder.has(path, _DONE) and not goes_on:
          raise SessionFinished(
            f'The training in {path} is finished. To continue it, raise the '
            'number of epochs: --repeal \'{"runner.n_epochs": N}\'.'
          )
        return path
      if self.loaded:
        child = 'evaluations' if args.play else 'customs'
        base = os.path.join(self.loaded[0], child)
        files.check_creatable(base, _READ_ONLY)
        return self._create(base)
      return self._create(args.session_path)

    # All ranks use the folder of checkpoints, only the first one the rest.
    path = mpi.on_first_rank(self.comm, enter)
    if path:
      mpi.check_shared(self.comm, path)
    self._checkpoints = path and checkpoints.open_folder(path, self.comm)
    self.path = path if self.comm.Get_rank() == 0 else None

  def _create(self, base):
    """Create the folder of a new session; return its path."""
    base = files.absolute(base)
    # Not from a seeded generator: runs with equal seeds need other names.
    name = self.args.session_name
    name = name or time.strftime('session_%Y%m%d%H%M%S_') + secrets.token_hex(2)
    path = os.path.join(base, name)
    # A session killed before its first checkpoint starts over.
    killed = (
      folder.has(path, _LOCK)
      and not folder.has(path, _DONE)
      and not checkpoints.open_folder(path, self.comm).paths()
    )
    if os.path.exists(path) and not killed:
      raise errors.UsageError(
        f'Session {path} exists; resume it with --load-checkpoint={path} '
        '--resume, or choose another --session-name.'
      )
    self._created = self._open.enter_context(folder.Run.open(path, _LOCK))
    for child in ('checkpoints', 'monitor', 'tensorboard', 'modules'):
      os.makedirs(os.path.join(path, child), exist_ok=True)
    open(os.path.join(base, _PACKAGE), 'a').close()
    folder.mark(path, _PACKAGE, _INIT)
    folder.mark(path, 'saam.py', _SAAM)
    packages = toolbox.list_packages(self.params)
    copy_modules(path, [*packages, *self.args.save_modules])
    files.write_json(os.path.join(path, 'cpanel.json'), self.cpanel, indent=2)
    params = {
      **self.params,
      'session_name': name,
      'session_msg': self.args.msg,
      'session_cmd': self._command,
    }
    files.write_yaml(os.path.join(path, 'params.yaml'), params)
    return path

  def _open_outputs(self):
    """Open logs, servers and mirrors; log their addresses and warnings."""
    args, first = self.args, self.comm.Get_rank() == 0
    level = args.log_level if first else len(logs.LEVELS)
    self.logger = logs.Logger(self._file('report.log'), level)
    self.monitor = logs.Monitor(self._file('varlog.json'))
    self.profiler = logs.Profiler(
      self._file('prolog.json'), args.profiler_level
    )
    self.writer = logs.Writer()
    self.monitor.listeners.append(self.writer.add_statistics)
    if self.path:
      self._add_output(log.Events(self._file('tensorboard')))
    if args.wandb and first:
      shown = self.path, self.params, self.logger.info
      self._add_output(wandb_mirror.WandbMirror(args.wandb, *shown))
    if args.visdom and first:
      name = os.path.basename(self.path or 'dry_run')
      output = self._file('visdom.log')
      self._add_output(
        visdom_mirror.VisdomMirror(args.visdom_port, name, output, self.logger)
      )
    if self.path:
      if args.tensorboard:
        address = start_tensorboard(self._file('tensorboard'))
        self.logger.info(f'TensorBoard at {address}.')
      if args.repeal:
        files.write_json(self._file('repeal.json'), args.repeal, indent=2)
      thread = resources.ResourceThread(
        self._file('monlog.json'),
        self.logger,
        not args.no_monitor_cpu,
        not args.no_monitor_gpu,
        meta=lambda: self.monitor.meta,
      )
      thread.start()
      self._open.callback(thread.stop)
      self.logger.info(f'Session {self.path}.')
    for text in self._warnings:
      self.logger.warn(text)
    for why, names in _UNUSED.items():
      for name in names.split():
        if getattr(args, why) and getattr(args, name) != Flags.default(name):
          flag, other = (x.replace('_', '-') for x in (name, why))
          self.logger.warn(f'Flag --{flag} has no effect with --{other}.')

  def _add_output(self, output):
    self.writer.outputs.append(output)
    self.on_close(output.close)

  def on_close(self, function: Callable[[], Any]) -> None:
    """Call a function at the end of the session, even if it cannot start."""
    self._open.callback(function)

  def folder(self, name: str) -> str | None:
    """Create a folder in the session; return its path, None without one."""
    path = self._file(name)
    if path:
      os.makedirs(path, exist_ok=True)
    return path

  def tf_session(self) -> Any:
    """Return the TensorFlow session and graph that the whole run shares."""
    if self._tf_session is None:
      from agents.tools import devices
      from agents.tools.tf1 import tf

      # Ranks share the cores of a machine.
      default = 1 if self.comm.Get_size() > 1 else 0
      options = devices.session_options()
      threads = self._threads
      options.intra_op_parallelism_threads = threads.intra_op or default
      options.inter_op_parallelism_threads = threads.inter_op or default
      self._tf_session = tf.Session(graph=tf.Graph(), config=options)
    return self._tf_session

  def save_states(
    self,
    states: Mapping[str, Any],
    index: int,
    memories: Mapping[str, Any] | None = None,
    keep: int | None = None,
    best: int | None = None,
  ) -> None:
    """Write a checkpoint unless this is a dry run; all ranks must call it.

    Args:
      states: Nested dict of plain data, bytes and arrays of this rank.
      index: Number of the epoch.
      memories: Contents of the memories by name, or None.
      keep: Number of newest checkpoints to keep, None for all.
      best: Epoch whose checkpoint to keep as well, or None.
    """
    if not self._checkpoints:
      return
    rank = self.comm.Get_rank()

    def write(new):
      if rank == 0:
        path = os.path.join(new, 'runner.yaml')
        files.write_yaml(path, {'params': self.params})
      if memories is not None:
        checkpoint.write_tree(os.path.join(new, f'memory{rank}'), memories)

    name, sess = checkpoints.name_of(index), self.tf_session()
    also = None if best is None else checkpoints.name_of(best)
    path = self._checkpoints.save(name, states, sess, write, keep, also)
    if self.path and memories is not None:
      checkpoints.remove_memories(self.path, path)

  def load_states(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Restore variables from the loaded checkpoint.

    Returns:
      Tuple of the states and the contents of memories, None if not stored.

    Raises:
      UsageError: If it is damaged, or has other parameters or ranks.
    """
    session, path = self.loaded
    if not self.is_resumed:
      # A training that goes on may have removed it since.
      given = files.absolute(self.args.load_checkpoint)
      find = functools.partial(checkpoints.find_checkpoint, given, session)
      path = mpi.on_first_rank(self.comm, find)
      self.loaded = session, path
    stored = checkpoints.open_folder(session, self.comm)
    states = stored.load(path, self.tf_session(), self.is_resumed)
    memory = os.path.join(path, f'memory{self.comm.Get_rank()}')
    if self.is_playing or not os.path.exists(memory + '.json'):
      return states, None
    try:
      return states, checkpoint.read_tree(memory)
    except (OSError, ValueError) as error:
      raise errors.UsageError(
        f'Cannot read the memories in {path} ({error}); load an older '
        'checkpoint with --load-checkpoint.'
      ) from None

  def newest_checkpoint(self) -> str:
    """Return a description of the newest checkpoint."""
    found = checkpoints.list_checkpoints(self.path) if self.path else {}
    return f'last checkpoint: epoch {max(found)}' if found else 'no checkpoint'

  def supersede(self, epoch: int) -> None:
    """Move later checkpoints aside when training resumes from an epoch."""
    moved = self.path and checkpoints.set_newer_aside(self.path, epoch)
    if moved:
      self.logger.warn(
        f'Resuming after epoch {epoch}; newer checkpoints are now in {moved}.'
      )

  def begin(self) -> None:
    """Record that a training begins or continues."""
    if self.path:
      folder.unmark(self.path, _DONE)

  def mark_as_done(self) -> None:
    """Record that all epochs are done."""
    if self.path:
      folder.mark(self.path, _DONE, time.strftime('%Y-%m-%d %H:%M:%S\n'))

  def discard(self) -> None:
    """Close everything and remove the folder of a session that cannot start."""
    try:
      self._open.close()
    finally:
      new = self._created
      if new and new.folder and new.missing:
        folder.remove(new.folder, new.missing, _PACKAGE)

  def finalize(self) -> None:
    """Close everything, even if a part fails to close.

    Does not write checkpoints. Logs a failure, and raises it unless this is
    called because of another error.
    """
    failing = sys.exc_info()[0] is not None
    try:
      self._open.close()
    except BaseException as error:
      self.logger.error(f'While closing the session: {error!r}')
      if not failing:
        raise

  def _file(self, name) -> Any:
    return self.path and os.path.join(self.path, name)


def parse_args(argv: Sequence[str]) -> argparse.Namespace:
  """Parse the command line of a session.

  Args:
    argv: List of arguments after the program name.

  Returns:
    Namespace with an attribute per flag.

  Raises:
    UsageError: If flags are unknown, malformed or incompatible, or need a
      package that is not installed.
    SystemExit: After `--help`, with code 0.
  """
  parser = entry.Parser(
    prog='agents-session',
    description='Train, resume or play an agent. Each run has a session '
    'folder for its\nparameters, logs and checkpoints.',
    epilog=_describe_cpanel(argv),
  )
  flags.add_arguments(parser, Flags)
  args = parser.parse_args(argv)
  flags.check(Flags, args, dashes=True)
  example = '{"number_epochs": 2}'
  args.cpanel = schema.parse_mapping(args.cpanel, 'cpanel', example)
  args.repeal = schema.parse_mapping(args.repeal, 'repeal', example)
  _check_combination(args)
  _check_packages(args)
  return args


def _check_combination(args):
  for names, instead in _EXCLUSIVE.items():
    given = [x for x in names.split() if getattr(args, x)]
    if len(given) > 1:
      both = ' and '.join(f'--{x.replace("_", "-")}' for x in given)
      raise errors.UsageError(
        f'Flags {both} exclude each other; use only one.{instead}'
      )
  if args.load_checkpoint and not (args.play or args.resume or args.custom):
    raise errors.UsageError(
      'Flag --load-checkpoint needs an action; add one of --resume, --play '
      'and --custom.'
    )
  if (args.resume or args.custom) and not args.load_checkpoint:
    raise errors.UsageError(
      'Flags --resume and --custom need a session; add --load-checkpoint=PATH.'
    )
  if not (args.params or args.load_checkpoint):
    raise errors.UsageError(
      'There is nothing to run; add --params with a module, for example '
      '--params agents.pipeline.params.ddpg_pendulum.'
    )


def _check_packages(args):
  """Refuse flags for packages that are not installed."""
  wandb_mirror.check(args.wandb)
  if args.visdom:
    visdom_mirror.check_installed()
  if args.tensorboard:
    viz = errors.how_to_install('viz')
    errors.check_installed(
      'tensorboard', 'Flag --tensorboard', viz, 'omit the flag'
    )


def _describe_cpanel(argv):
  """End of `--help`: parameter modules, or the values of the one given."""
  if not flags.HELP & set(argv):
    return ''
  words = [y for x in argv for y in x.split('=', 1)]
  module = next((y for x, y in zip(words, words[1:]) if x == '--params'), None)
  if module is None:
    return (
      'parameter modules:\n  agents.pipeline.params.{ddpg_pendulum, '
      'ppo_pendulum, ppo_cheetah}\n  baselines_her.params.{fetch_reach, '
      'fetch_push}\n\nTo list the cpanel of a module: --params MODULE --help'
    )
  cpanel = getattr(toolbox.get_module(module), 'cpanel', {})
  lines = [f'  {key}: {value!r}' for key, value in cpanel.items()]
  return '\n'.join([f'cpanel of {module}:', *lines])


def generate(
  name: str, given: Mapping[str, Any], notes: list[str] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Return the control panel and tree of a parameter module.

  Args:
    name: Dotted name of the module, possibly one of digideep, see
      `agents.pipeline.digideep`.
    given: Values that override those of its control panel.
    notes: List to which to append sentences for the user.

  Raises:
    UsageError: If it is not a parameter module, or a value is not valid.
  """
  module = toolbox.get_module(name)
  for part in ('cpanel', 'gen_params'):
    if not hasattr(module, part):
      raise errors.UsageError(
        f'Module {name} has no {part!r}, which parameter modules need; see '
        'agents.pipeline.params.ddpg_pendulum.'
      )
  cpanel = update_cpanel(module.cpanel, given)
  params = module.gen_params(cpanel)
  if not isinstance(params, Mapping):
    raise errors.UsageError(
      f'The gen_params of {name} returns {params!r}; return a mapping, see '
      'agents.pipeline.params.ddpg_pendulum.'
    )
  # Agents of digideep have a type, those of the pipeline a class as name.
  named = params.get('agents')
  nodes = named.values() if isinstance(named, Mapping) else []
  if any(isinstance(x, Mapping) and 'type' in x for x in nodes):
    from agents.pipeline import digideep

    params, found = digideep.translate(params)
    (notes if notes is not None else []).extend(found)
  return toolbox.to_data(cpanel, 'cpanel'), toolbox.to_data(params)


def load(session: str, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
  """Return the control panel and tree of a checkpoint.

  Args:
    session: Folder of the session.
    path: Folder of the checkpoint.

  Raises:
    UsageError: If the files cannot be read.
  """
  try:
    cpanel = files.read_plain(os.path.join(session, 'cpanel.json'))
    params = files.read_yaml(os.path.join(path, 'runner.yaml'))['params']
    parts = [params[x].values() for x in ('memory', 'agents', 'explorer')]
    nodes = itertools.chain([params['runner']], *parts)
    if not all(isinstance(x['name'], str) for x in nodes):
      raise ValueError('a name is not a string')
    return dict(cpanel), params
  except (OSError, TypeError, KeyError, ValueError, AttributeError) as error:
    raise errors.UsageError(
      f'Cannot read the parameters of {path} ({error}); load another '
      'checkpoint.'
    ) from None


def update_cpanel(
  cpanel: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
  """Return a control panel with some values replaced.

  Args:
    cpanel: Dict from a parameter module.
    given: Dict of replacements; prefix a key with a plus sign to add it.

  Raises:
    UsageError: If a key is unknown, or its value has another type, such as
      null for a number.
  """
  result = dict(copy.deepcopy(cpanel))
  for key, value in given.items():
    if str(key).startswith('+'):
      result[key[1:]] = value
      continue
    called = f'Key {key!r} of --cpanel'
    if key not in cpanel:
      raise errors.UsageError(
        f'{called} is unknown; {f"+{key}"!r} would add it. '
        f'{errors.suggest(str(key), cpanel)}'
      )
    if key == 'seed':
      result[key] = schema.convert(schema.Seed | None, value, called)
    else:
      example = None if key in _NULLABLE and value is None else cpanel[key]
      result[key] = schema.check_like(example, value, called)
  return result


def repeal(params: dict[str, Any], given: Mapping[str, Any]) -> None:
  """Replace values in a parameter tree.

  Args:
    params: Nested dict, changed in place.
    given: Dict from paths such as `runner.n_epochs` to values.

  Raises:
    UsageError: If a path does not exist or leads to a mapping, or a number,
      boolean or text has another type than the old value.
  """
  for path, value in given.items():
    node: Any = params
    for name in str(path).split('.'):
      known = node if isinstance(node, dict) else {}
      if name not in known:
        raise errors.UsageError(
          f'Path {path!r} of --repeal is unknown at {name!r}. '
          f'{errors.suggest(name, known)}'
        )
      parent, node = node, node[name]
    called = f'Path {path!r} of --repeal'
    if isinstance(node, dict) and node:
      raise errors.UsageError(
        f'{called} is a mapping; give a value in it, such as '
        f'{f"{path}.{next(iter(node))}"!r}.'
      )
    free = value is None or isinstance(value, (dict, list))
    parent[name] = schema.check_like(None if free else node, value, called)


def copy_modules(session: str, names: Iterable[str]) -> None:
  """Copy the code that a session runs, without bytecode.

  Args:
    session: Path of the session.
    names: Dotted names of modules; copies their entire packages.

  Raises:
    UsageError: If a module does not exist.
  """
  for name in sorted({x.split('.')[0] or x for x in names}):
    module = toolbox.get_module(name)
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


def start_tensorboard(path: str) -> str:
  """Start TensorBoard in a thread of this process and return its address.

  It uses the default port, or one of the next ones if that is taken.
  """
  from tensorboard import program

  # TensorBoard logs every request, and warns that it lacks TensorFlow.
  logging.getLogger('werkzeug').setLevel(logging.ERROR)
  server = program.TensorBoard()
  server.configure(argv=['tensorboard', '--logdir', path])
  try:
    return server.launch().rstrip('/')
  except program.TensorBoardServerException as error:
    raise errors.UsageError(
      f'TensorBoard does not start: {error.msg}; omit --tensorboard.'
    ) from None

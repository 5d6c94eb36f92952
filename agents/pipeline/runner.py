"""Main loop of a run: cycles of exploring, storing and learning; epochs."""

import functools
import math
import os
import re
import shlex
import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import tqdm

from agents import utility
from agents.pipeline import logs, toolbox
from agents.run import (
  errors,
  life,
  mpi,
  random_state,
  references,
  schema,
  stopping,
)
from agents.run import progress as progress_lib
from agents.run.schema import Amount, Count, Flag, Name, Positive

_COUNTS = {
  'epoch': 'epoch {:,}',
  'frame': '{:,} environment steps',
  'episode': '{:,} episodes',
}


class RunnerSettings(schema.Settings):
  """Settings in the node `runner` of the parameter tree.

  A custom runner with more settings derives a class from this one and sets it
  as its attribute `declared`.

  Attributes:
    name: Class of the runner.
    n_cycles: Cycles per epoch.
    n_epochs: Epochs to train.
    max_time: Hours until this process stops.
    max_iter: Epochs until this process stops.
    randargs: `seed` of all random numbers.
    test_act: Whether to test.
    test_int: Epochs between tests.
    save_int: Epochs between checkpoints.
    keep_checkpoints: Newest checkpoints to keep, None for all. That of the best
      epoch stays as well, if `save_int` divides its number.
    memory_save: Which checkpoints include the memories.
    score: Statistic that selects the best epoch, one of the `scores` of an
      explorer, or any that parts of your own record.
  """

  called: ClassVar[str] = 'Setting {!r} of the runner'

  name: Name = 'agents.pipeline.runner.Runner'
  n_cycles: Positive = 1
  n_epochs: Positive = 1
  max_time: Amount | None = None
  max_iter: Count | None = None
  randargs: dict[Literal['seed'], schema.Seed | None] = {}
  test_act: Flag = True
  test_int: Positive = 1
  save_int: Positive = 1
  keep_checkpoints: Positive | None = 5
  memory_save: Literal['never', 'final', 'every'] = 'final'
  score: Name = '/reward/test/episodic'


@references.nameable
class Runner:
  """Creates memories, agents and explorers from parameters, and runs them.

  Args:
    params: Parameter tree; see `agents.pipeline.params.ppo_pendulum`.

  Attributes:
    declared: Class of the settings in the node `runner`.
    state: Dict of the counters `i_epoch`, `i_cycle` (within the epoch) and
      `i_frame`, the best score and its epoch, and the elapsed seconds.

  Raises:
    UsageError: If a setting is unknown or its value is not valid.
  """

  declared: type[RunnerSettings] = RunnerSettings

  def __init__(self, params: dict[str, Any]) -> None:
    self.params = params
    self._settings = self.declared.read(params['runner'])
    self.state: dict[str, Any] = {
      'i_epoch': 0,
      'i_cycle': 0,
      'i_frame': 0,
      'best_score': None,
      'best_epoch': None,
      'seconds': 0.0,
    }
    self._began = time.monotonic()
    self._epochs_here = 0
    self._is_limited = False
    self._progress: progress_lib.Progress | None = None

  def start(self, session: Any) -> None:
    """Create all parts and restore a loaded checkpoint.

    A new session gets checkpoint 0, with the initial weights.
    """
    self.session = session
    seed = self._settings.randargs.get('seed')
    if seed is not None:
      seed += 1000000 * session.comm.Get_rank()  # as in HER
    random_state.set_seeds(seed)
    part = toolbox.get_part
    training = ['train', 'test'] if self._settings.test_act else ['train']
    wanted = ['eval'] if session.is_playing else training
    nodes = find_nodes(self.params, wanted)
    # If a part fails on one rank, all of them end, and the first cleans up.
    on_all = functools.partial(mpi.on_all_ranks, session.comm)
    self.memory = on_all(
      lambda: {
        mode: part(x, f'memory {mode!r}')(session, mode)
        for mode, x in nodes['memory'].items()
      }
    )
    self.agents = {
      name: part(x, f'agent {name!r}')(
        session, self.memory, name=name, **find_parts(x, name)
      )
      for name, x in nodes['agents'].items()
    }
    self.explorer: dict[str, Any] = {}
    explorers = {x: y for x, y in nodes['explorer'].items() if x in wanted}
    on_all(lambda: self._create_explorers(explorers))
    self._check_score()
    self._check_parts()
    self._initialize()
    if session.is_loading:
      self.load()
    elif not session.is_playing:
      self.save(final=True)
    self.override()

  def override(self) -> None:
    """Change what was created or restored; for subclasses, as in digideep."""

  def train(self) -> None:
    """Run until all epochs are done, or the user or a limit stops the run.

    Finishes with a report unless an error occurs, and with a checkpoint as
    `agents.run.life.run` says.
    """
    self._began = time.monotonic()
    self.session.begin()
    settings, state, comm = self._settings, self.state, self.session.comm
    if comm.Get_rank() == 0:
      total = settings.n_epochs * settings.n_cycles
      self._progress = progress_lib.Progress(self._status, total, unit='cycles')
    asked = functools.partial(life.is_asked, comm)
    try:
      with stopping.handle_signals('Stopping after this cycle'):
        list(life.run(self._run_epochs(), self._save_if_due, comm, asked))
        done = state['i_epoch'] >= settings.n_epochs
        if done:
          self.session.mark_as_done()
        self._report(done)
    finally:
      if self._progress:
        self._progress.close()

  def train_cycle(self) -> None:
    """Explore, store and learn once."""
    profiler = self.session.profiler
    with profiler(''):
      with profiler('train'):
        chunk = self.explorer['train'].update()
      with profiler('store'):
        errors.find('Memory', 'train', self.memory).store(chunk)
      for name, agent in self.agents.items():
        with profiler(f'update/{name}'):
          agent.update()
    frames = self.explorer['train'].timesteps
    self.state['i_frame'] = frames * self.session.comm.Get_size()

  def test(self) -> None:
    """Evaluate the agents with the statistics of the training explorer."""
    with self.session.profiler('test'):
      explorer = self.explorer['test']
      explorer.import_normalizers(self.explorer['train'].export_normalizers())
      explorer.reset()
      explorer.update()

  def enjoy(self) -> None:
    """Play as many episodes as the user asked for."""
    explorer, count = self.explorer['eval'], self.session.args.play_episodes
    try:
      with stopping.handle_signals('Stopping'):
        explorer.reset()
        while not count or explorer.n_episode < count:
          explorer.update()
          self._pack()
          if stopping.requested():
            break
    finally:
      explorer.close()
    videos = self.session.folder('videos')
    if videos and os.listdir(videos):
      self.session.logger.info(f'Videos are in {videos}.')

  def custom(self) -> None:
    """Run the action of --custom, which derived classes may define."""
    raise errors.UsageError(
      f'Runner {type(self).__name__} has no method custom; omit --custom or '
      'name a runner that has one.'
    )

  def log(self) -> None:
    """Write the statistics of an epoch and update the best score."""
    statistics = self._pack().get(self._settings.score)
    if statistics:
      score, best = logs.mean(statistics), self.state['best_score']
      if not math.isfinite(score):
        raise self._not_finite('The score')
      if best is None or score >= best:
        self.state.update(best_score=score, best_epoch=self.state['i_epoch'])

  def save(self, final: bool = False) -> None:
    """Write a checkpoint.

    Args:
      final: Whether no cycle follows soon: before training, at its end, or on
        request. Such checkpoints include the memories by default.
    """
    self._check_finite()
    when = self._settings.memory_save
    memories = None
    if when == 'every' or (when == 'final' and final):
      memories = {k: v.state_dict() for k, v in self.memory.items()}
    states = {
      'runner': self.state_dict(),
      'agents': {k: v.state_dict() for k, v in self.agents.items()},
      'explorer': {k: v.state_dict() for k, v in self.explorer.items()},
      'normalizers': self.explorer['train'].export_normalizers(),
      'monitor': self.session.monitor.state_dict(),
      'random': random_state.get_random_state(),
    }
    self.session.save_states(
      states,
      self.state['i_epoch'],
      memories,
      keep=self._settings.keep_checkpoints,
      best=self.state['best_epoch'],
    )

  def load(self) -> None:
    """Restore the loaded checkpoint.

    Raises:
      UsageError: If it does not fit the parameters.
    """
    states, memories = self.session.load_states()
    self.load_state_dict(states['runner'])
    for name, agent in self.agents.items():
      agent.load_state_dict(states['agents'][name])
    if self.session.is_playing:
      self.explorer['eval'].import_normalizers(states['normalizers'])
    else:
      for mode in self.explorer.keys() & states['explorer'].keys():
        self.explorer[mode].load_state_dict(states['explorer'][mode])
      for name, memory in self.memory.items():
        if memories and name in memories:
          memory.load_state_dict(memories[name])
        else:
          self.session.logger.warn(
            f'The contents of memory {name} were not saved; it starts empty.'
          )
      self.session.monitor.load_state_dict(states['monitor'])
    random_state.set_random_state(states['random'])
    if self.session.is_resumed:
      self.session.supersede(self.state['i_epoch'])

  def state_dict(self) -> dict[str, Any]:
    """Return the counters of the run, plain data."""
    seconds = self.state['seconds'] + time.monotonic() - self._began
    return {**self.state, 'seconds': seconds}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore the result of `state_dict`."""
    self.state.update(state)
    self._began = time.monotonic()

  def _create_explorers(self, nodes):
    for mode, x in nodes.items():
      create = toolbox.get_part(x, f'explorer {mode!r}')
      self.explorer[mode] = create(self.session, self.agents, mode=mode)
      self.session.on_close(self.explorer[mode].close)

  def _check_score(self):
    """Refuse a score that is never recorded; parts of users record any."""
    score, explorers = self._settings.score, self.explorer.values()
    parts = self, *self.agents.values(), *explorers
    if all(map(toolbox.is_own, parts)) and not score.startswith('/update/'):
      modes = 'train', 'test'
      known = [x.format(y) for e in explorers for x in e.scores for y in modes]
      errors.find('Score of the runner', score, dict.fromkeys(known))

  def _check_parts(self):
    """Refuse before training what the first cycle and test would refuse."""
    if self.session.is_playing:
      return
    own = type(self)
    if own.train_cycle is Runner.train_cycle:
      errors.find('Memory', 'train', self.memory)
    if own.test is Runner.test and 'test' in self.explorer:
      known = self.explorer['train'].export_normalizers()
      self.explorer['test'].import_normalizers(known)

  def _run_epochs(self):
    """Run the rest of the epochs; yields None after each cycle and epoch."""
    state, settings = self.state, self._settings
    while state['i_epoch'] < settings.n_epochs and not self._is_limited:
      before = state['i_epoch'] * settings.n_cycles
      if self._progress:
        done = state['i_cycle']
        name = f'Epoch {state["i_epoch"] + 1}'
        self._progress.start_phase(name, settings.n_cycles, done, before + done)
      while state['i_cycle'] < settings.n_cycles:
        self.train_cycle()
        state['i_cycle'] += 1
        if self._progress:
          self._progress.update(1, before + state['i_cycle'])
        yield None
      state.update(i_epoch=state['i_epoch'] + 1, i_cycle=0)
      try:
        self._end_epoch()
      except BaseException:
        # A run that is continued repeats the test.
        state.update(i_epoch=state['i_epoch'] - 1, i_cycle=settings.n_cycles)
        raise
      yield None

  def _end_epoch(self):
    """Test the agents and report on the epoch."""
    state, settings = self.state, self._settings
    self.session.monitor.set_meta('epoch', state['i_epoch'])
    if settings.test_act and state['i_epoch'] % settings.test_int == 0:
      self.test()
    self._check_finite()
    for agent in self.agents.values():
      agent.epoch_done()
    self.log()
    self._epochs_here += 1
    self._is_limited = self._has_reached_limit()

  def _save_if_due(self, forced):
    """Save at the end, or after some epochs; see `life.run`."""
    epoch, settings = self.state['i_epoch'], self._settings
    is_last = epoch >= settings.n_epochs or self._is_limited
    is_due = not self.state['i_cycle'] and epoch % settings.save_int == 0
    if forced or (is_due and not is_last):
      self.save(final=forced)
    # The last one includes the memories.
    return False

  def _check_finite(self):
    """Stop without saving if a variable is infinite or NaN."""
    from agents.tools.tf1 import tf

    variables = [x for x in tf.global_variables() if x.dtype.is_floating]
    values = self.session.tf_session().run(variables)
    for variable, value in zip(variables, values):
      if not np.isfinite(value).all():
        raise self._not_finite(f'Variable {variable.op.name}')

  def _not_finite(self, what):
    return errors.NotFinite(
      f'{what} is not finite in epoch {self.state["i_epoch"]}; '
      f'{self.session.newest_checkpoint()}. Try smaller learning rates.'
    )

  def _has_reached_limit(self):
    """Whether the time or the epochs of this process are used up."""
    hours, epochs = self._settings.max_time, self._settings.max_iter
    late = hours is not None and time.monotonic() - self._began > 3600 * hours
    late = self.session.comm.bcast(late)
    return late or (epochs is not None and self._epochs_here >= epochs)

  def _initialize(self):
    """Give variables their initial values, unless they have some already."""
    from agents.tools.tf1 import tf

    sess = self.session.tf_session()
    missing = set(sess.run(tf.report_uninitialized_variables()))
    variables = tf.global_variables() + tf.local_variables()
    new = [x for x in variables if x.op.name.encode() in missing]
    utility.initialize_variables(sess, None, None, variables=new)

  def _pack(self):
    """Write the statistics of all ranks combined.

    Returns:
      Dict from name to the newest statistics since the last call.
    """
    monitor, comm = self.session.monitor, self.session.comm
    if comm.Get_size() > 1:
      monitor.merge(comm.allgather(monitor.state_dict()))
    statistics = monitor.pack()
    self.session.profiler.pack(monitor.meta)
    self.session.logger.info(self._describe_epoch(statistics))
    return statistics

  def _describe_epoch(self, statistics):
    """Return a line with the progress and the results of an epoch."""
    meta = self.session.monitor.meta
    words = [text.format(meta[k]) for k, text in _COUNTS.items() if k in meta]
    names = [x for x in statistics if 'reward' in x or 'success' in x]
    words += [f'{_plain(x)} {logs.mean(statistics[x]):.4g}' for x in names]
    return ', '.join(words) + '.'

  def _status(self):
    """Values for the progress bar."""
    score = self._settings.score
    last = self.session.monitor.last.get(score)
    return {
      'env steps': f'{self.state["i_frame"]:,}',
      _plain(score): last and f'{logs.mean(last):.4g}',
    }

  def _report(self, done):
    """Log the results and where to find them."""
    info, state = self.session.logger.info, self.state
    total = tqdm.tqdm.format_interval(self.state_dict()['seconds'])
    what = 'Finished' if done else 'Stopped'
    info(f'{what} after {state["i_epoch"]} epochs and {total}.')
    if state['best_score'] is not None:
      info(
        f'Best {_plain(self._settings.score)}: {state["best_score"]:.4g} '
        f'in epoch {state["best_epoch"]}.'
      )
    elif done:
      self.session.logger.warn(
        f'No epoch is the best: {self._settings.score}, the score of the '
        'runner, has not been recorded.'
      )
    path = self.session.path
    if path:
      info(f'Logs and checkpoints: {path}')
      info(f'Curves: agents-plot {shlex.quote(path)}')
    if path and not done:
      trust = ','.join(toolbox.list_foreign(self.params))
      command = f'agents-session --load-checkpoint {shlex.quote(path)} --resume'
      info(f'Continue: {command}' + (f' --trust {trust}' if trust else ''))


def find_nodes(
  params: Mapping[str, Any], modes: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
  """Return the nodes of memories, agents and explorers by name.

  Args:
    params: Parameter tree.
    modes: Modes of the explorers that are needed.

  Raises:
    UsageError: If one is missing, or has a name that is not allowed.
  """
  found: dict[str, Any] = {}
  for kind in ('memory', 'agents', 'explorer'):
    found[kind] = nodes = params.get(kind)
    if not (nodes and isinstance(nodes, Mapping)):
      raise errors.UsageError(
        f'The node {kind!r} of the parameters is {nodes!r}; give a mapping '
        'from names to nodes, see agents.pipeline.params.ddpg_pendulum.'
      )
    for name in nodes:
      if not re.fullmatch(r'\w[\w./-]*', str(name)) or name != str(name):
        raise errors.UsageError(
          f'The node {kind!r} of the parameters has the name {name!r}; use '
          'letters, digits, and _ . - after the first one.'
        )
  for mode in modes:
    errors.find('Explorer', mode, found['explorer'])
  return found


def find_parts(node: Mapping[str, Any], name: str) -> dict[str, Any]:
  """Return policy and sampler of an agent, as far as its node names them."""
  parts = {
    x: toolbox.get_part(node[x], f'the {x} of agent {name!r}')
    for x in ('policy', 'sampler')
    if x in node
  }
  if 'sampler' in parts:
    parts['sampler'] = parts['sampler']()
  return parts


def _plain(name):
  """Return a readable name for a name of the monitor, such as `test return`."""
  name = re.sub(r'/reward/(\w+)/episodic', r'\1 return', name)
  return re.sub(r'/success/(\w+)', r'\1 success rate', name).strip('/')

"""Entries of the table of results, and their commands."""

import dataclasses
import functools
import os
import shlex
from collections.abc import Sequence

from pydantic.dataclasses import dataclass

from agents.pipeline import checkpoints
from agents.run import errors, files
from scripts import machine
from scripts.reproductions.bars import Bar

# Folder of all results in this repository.
RESULTS = os.path.join(machine.ROOT, 'results')
# Session of the pipeline in the folder of a run.
SESSION = 'session0'
# Program of each system and its flags for the folder of the run.
PROGRAMS = {
  'ppo': ('agents.train_ppo', '--logdir={run}'),
  'her': ('baselines_her.run', '--log_path={run}'),
  'planet': ('planet.scripts.train', '--logdir {run}'),
  'pipeline': (
    'scripts.main',
    f'--session-path {{run}} --session-name {SESSION}',
  ),
}


@dataclass(frozen=True)
class Check:
  """Evaluation of a shipped agent.

  Attributes:
    seed: Seed of the shipped agent.
    episodes: Number of episodes.
    tolerance: Allowed distance from the shipped mean, but at least three
      standard errors of the difference.
    reason: Clause that explains a seed other than the first.
  """

  seed: int
  episodes: int
  tolerance: float
  reason: str = ''


@dataclass(frozen=True)
class Entry:
  """Result: a training with several seeds.

  Attributes:
    name: Name on the command line and of folders.
    system: `ppo`, `her`, `planet` or `pipeline`.
    meaning: Description for the table.
    flags: Arguments of the program except for its folder, with the placeholders
      `{seed}`, `{run}` and `{parent}`, the parent folder of the run.
    bar: Measure and threshold.
    hours: Estimated wall hours of a seed on `cores`.
    seeds: Seeds that belong to the result.
    measure: `return` or `success rate`.
    reproduces: Whether the bar is a published value or the performance of the
      original code today, not our own threshold.
    reason: Clause that explains our own threshold.
    published: Published values with their source, or empty.
    levels: Dict from environment steps to the published value there.
    shows_collected: Whether to plot collected episodes in addition to tests,
      which are rare at the full size of PlaNet; for PlaNet only.
    reference: File in `results/reference` with curves of the original, or the
      name of another entry to compare with.
    cores: Number of cores that a run can use.
    gpu: Whether a run needs a GPU.
    ranks: Number of MPI processes.
    stop_early: Whether to stop a run when it reaches the bar.
    reduced: Difference from the published setting.
    before: Command to run once before training, such as one that records
      demonstrations; its last word is the file that it writes.
    check: Evaluation of the shipped agent, None if there is none.
    reward_scale: Factor of rewards during training; returns exclude it.
  """

  name: str
  system: str
  meaning: str
  flags: str
  bar: Bar
  hours: float
  seeds: Sequence[int] = (0,)
  measure: str = 'return'
  reproduces: bool = False
  reason: str = ''
  published: str = ''
  levels: dict[int, float] = dataclasses.field(default_factory=dict)
  shows_collected: bool = False
  reference: str = ''
  cores: int = 1
  gpu: bool = False
  ranks: int = 1
  stop_early: bool = False
  reduced: str = ''
  before: str = ''
  check: Check | None = None
  reward_scale: float = 1.0

  @property
  def what(self) -> str:
    """What the bar measures, such as `steps to return 195`."""
    bar = self.bar
    if bar.in_steps:
      word = 'until {} stays' if bar.kind == 'stay' else 'to {}'
      return f'steps {word.format(self.measure)} {bar.level:g}'
    return f'gain in {self.measure}' if bar.kind == 'gain' else self.measure

  @property
  def has_original(self) -> bool:
    """Whether the reference is a file with curves of the original."""
    return self.reference.endswith('.csv')

  @property
  def python(self) -> str:
    """Start of a command, `python` for each rank."""
    return f'mpirun -n {self.ranks} python' if self.ranks > 1 else 'python'

  def command(self, seed: int, run: str) -> list[str]:
    """Return the command that starts or resumes a run in a folder."""
    module, folder = PROGRAMS[self.system]
    start = f'{self.python} -m {module}'
    session = os.path.join(run, SESSION)
    if self.system == 'pipeline' and checkpoints.list_checkpoints(session):
      return [*start.split(), '--load-checkpoint', session, '--resume']
    return fill(f'{start} {self.flags} {folder}', seed, run)


def shorten(steps: float) -> str:
  """Return a number of steps such as `855k` or `1.8M`."""
  return f'{steps / 1e6:g}M' if steps >= 1e6 else f'{steps / 1e3:g}k'


@functools.cache
def load() -> dict[str, Entry]:
  """Return all entries of `results.yaml` by name."""
  path = os.path.join(os.path.dirname(__file__), 'results.yaml')
  rows = files.read_yaml(path)
  return {name: Entry(name=name, **row) for name, row in rows.items()}


def find(name: str) -> Entry:
  """Return an entry by name; raises UsageError if it is unknown."""
  return errors.find('Result', name, load())


def fill(command: str, seed: int, run: str) -> list[str]:
  """Split a command and replace `{seed}`, `{run}` and `{parent}`."""
  parts = shlex.split(command)
  parent = os.path.dirname(run) or '.'
  for key, value in (('seed', str(seed)), ('run', run), ('parent', parent)):
    parts = [x.replace(f'{{{key}}}', value) for x in parts]
  return parts

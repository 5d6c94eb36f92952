"""What a row of the table of results is, and its command."""

import dataclasses
import functools
import os
import shlex
from collections.abc import Sequence

from pydantic.dataclasses import dataclass

from agents.pipeline import checkpoints
from agents.run import errors, files
from scripts.reproductions.bars import Bar

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
# Folder of all results in this repository.
RESULTS = os.path.join(ROOT, 'results')
# Session of the pipeline in the folder of a run.
SESSION = 'session0'
# Program of each system, and its flags for the folder of the run.
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
  """How a shipped agent is played.

  Attributes:
    seed: Seed whose agent is shipped.
    episodes: Number of episodes.
    tolerance: Least distance from the shipped mean that is still fine; three
      standard errors of the difference count where they are more.
    reason: Why that seed, in a clause, where it is not the first.
  """

  seed: int
  episodes: int
  tolerance: float
  reason: str = ''


@dataclass(frozen=True)
class Entry:
  """One result: a training for several seeds.

  Attributes:
    name: Name on the command line and of the folders.
    system: `ppo`, `her`, `planet` or `pipeline`.
    meaning: What is trained, for the table.
    flags: Arguments of the program besides its folder; `{seed}`, `{run}` and
      `{parent}`, the folder of the run, are filled in.
    bar: What is measured, and what it has to be.
    hours: Estimated wall hours of a seed on `cores`.
    seeds: Seeds that belong to the result.
    measure: `return` or `success rate`.
    reproduces: Whether the bar is a published value, or what the original code
      reaches today, rather than a threshold of our own.
    reason: Why a threshold of our own is what it is, in a clause.
    published: Published values with their source, empty if there are none.
    levels: Dict from label to a published value to draw beside the curve.
    shows_collected: Whether the curve has the collected episodes beside the
      tests, which are rare at the full size of PlaNet; for PlaNet only.
    reference: File of `results/reference` with curves of the original, or the
      name of another entry whose curves are the ones to compare with.
    cores: Number of cores that a run can use.
    gpu: Whether it needs one.
    ranks: Number of processes of MPI.
    stop_early: Whether to stop a run as soon as it has reached the bar.
    reduced: How the setting differs from the published one.
    before: Command to run once before, such as one that records demonstrations;
      its last word is the file that it writes.
    check: How the shipped agent is played, None if there is none.
    reward_scale: Factor of rewards in the training; returns are shown without.
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
  levels: dict[str, float] = dataclasses.field(default_factory=dict)
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

  def command(self, seed: int, run: str) -> list[str]:
    """Return the command that begins or continues a run in a folder."""
    module, folder = PROGRAMS[self.system]
    start = f'python -m {module}'
    if self.ranks > 1:
      start = f'mpirun -n {self.ranks} {start}'
    session = os.path.join(run, SESSION)
    if self.system == 'pipeline' and checkpoints.list_checkpoints(session):
      return [*start.split(), '--load-checkpoint', session, '--resume']
    return fill(f'{start} {self.flags} {folder}', seed, run)


@functools.cache
def load() -> dict[str, Entry]:
  """Return all entries of `results.yaml` by name."""
  path = os.path.join(os.path.dirname(__file__), 'results.yaml')
  rows = files.read_yaml(path)
  return {name: Entry(name=name, **row) for name, row in rows.items()}


def find(name: str) -> Entry:
  """Return the entry of a name; raises UsageError if there is none."""
  return errors.find('Result', name, load())


def fill(command: str, seed: int, run: str) -> list[str]:
  """Split a command and replace `{seed}`, `{run}` and `{parent}` in it."""
  parts = shlex.split(command)
  parent = os.path.dirname(run) or '.'
  for key, value in (('seed', str(seed)), ('run', run), ('parent', parent)):
    parts = [x.replace(f'{{{key}}}', value) for x in parts]
  return parts

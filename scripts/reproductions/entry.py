"""What an entry of the table of results is, and its command."""

import dataclasses
import glob
import os
import shutil
import sys
from collections.abc import Mapping, Sequence

from agents.run import errors
from scripts.reproductions import bars

# Folder of all results in this repository.
RESULTS = os.path.join(
  os.path.dirname(os.path.dirname(os.path.dirname(__file__))), 'results'
)
# Programs of each system; the rest of a command is the entry's own.
_PROGRAMS = {
  'ppo': 'agents.train_ppo',
  'her': 'baselines_her.run',
  'planet': 'planet.scripts.train',
  'pipeline': 'scripts.main',
}
_FOLDERS = {
  'ppo': ['--logdir={run}'],
  'her': ['--log_path={run}'],
  'planet': ['--logdir', '{run}'],
  'pipeline': ['--session-path', '{run}', '--session-name', '{session}'],
}


@dataclasses.dataclass(frozen=True)
class Check:
  """How a shipped agent is played.

  Attributes:
    seed: Seed whose agent is shipped.
    episodes: Number of episodes.
    tolerance: Least distance from the shipped mean that is still fine; three
      standard errors of the difference count where they are more.
    processes: Number of processes that share the episodes.
  """

  seed: int
  episodes: int
  tolerance: float
  processes: int = 1


@dataclasses.dataclass(frozen=True)
class Entry:
  """One result: a training for several seeds.

  Attributes:
    name: Name on the command line and of the folders.
    system: `ppo`, `her`, `planet` or `pipeline`.
    meaning: What is trained, for the table.
    flags: Arguments of the program besides folder and seed; `{seed}`, `{run}`
      and `{parent}`, the folder of the run, are filled in.
    seeds: Seeds that belong to the result.
    steps: Environment steps at which a run is complete.
    bar: What is measured, and what it has to be.
    measure: `return` or `success rate`.
    published: Published values with their source, empty if there are none.
    levels: Dict from label to a published value to draw beside the curve.
    shows_collected: Whether the curve has the collected episodes beside the
      tests, which are rare at the full size of PlaNet; for PlaNet only.
    reference: File of `results/reference` with curves of the original, or the
      name of another entry whose curves are the ones to compare with.
    cores: Number of cores that a run can use.
    hours: Estimated wall hours of a seed on them.
    gpu: Whether it needs one.
    ranks: Number of processes of MPI.
    stop_early: Whether to stop a run as soon as it has reached the bar.
    reduced: How the setting differs from the published one.
    before: Arguments of a command to run once before, such as one that records
      demonstrations, and the file in `{parent}` that it writes.
    check: How the shipped agent is played, None if there is none.
    reward_scale: Factor of rewards in the training, without which returns are
      told.
    panel: Panel of the figure in README, empty for none.
  """

  name: str
  system: str
  meaning: str
  flags: Sequence[str]
  seeds: Sequence[int]
  steps: float
  bar: bars.Bar
  hours: float
  measure: str = 'return'
  published: str = ''
  levels: Mapping[str, float] = dataclasses.field(default_factory=dict)
  shows_collected: bool = False
  reference: str = ''
  cores: int = 1
  gpu: bool = False
  ranks: int = 1
  stop_early: bool = False
  reduced: str = ''
  before: tuple[Sequence[str], str] | None = None
  check: Check | None = None
  reward_scale: float = 1.0
  panel: str = ''

  def command(self, seed: int, run: str) -> list[str]:
    """Return the command that begins or continues a run.

    Args:
      seed: Seed of the run.
      run: Folder of the run.
    """
    parts = ['python', '-m', _PROGRAMS[self.system]]
    if self.ranks > 1:
      parts = ['mpirun', '-n', str(self.ranks), *parts]
    parts += [*self.flags, *_FOLDERS[self.system]]
    if self.system == 'pipeline':
      session = find_session(run)
      if session:
        parts = [*parts[:3], '--load-checkpoint', session, '--resume']
      number = len(glob.glob(os.path.join(run, 'session*')))
      parts = [x.replace('{session}', f'session{number}') for x in parts]
    return fill(parts, seed, run)


def find_session(run: str) -> str | None:
  """Return the newest session of the pipeline that has a checkpoint.

  Args:
    run: Folder of sessions, which need not exist.
  """
  pattern = os.path.join(glob.escape(run), 'session*', 'checkpoints', '*')
  found = sorted(glob.glob(pattern))
  return os.path.dirname(os.path.dirname(found[-1])) if found else None


def fill(parts: Sequence[str], seed: int, run: str) -> list[str]:
  """Replace `{seed}`, `{run}` and `{parent}` in the parts of a command.

  `{parent}` is the folder of `{run}`, which itself is there only after the
  training has begun.
  """
  parent = os.path.dirname(run) or '.'
  values = {'seed': str(seed), 'run': run, 'parent': parent}
  for key, value in values.items():
    parts = [x.replace(f'{{{key}}}', value) for x in parts]
  return list(parts)


def executable(command: Sequence[str]) -> list[str]:
  """Return the command with the Python and the mpirun of this environment."""
  beside = os.path.join(os.path.dirname(sys.executable), 'mpirun')
  mpirun = beside if os.path.exists(beside) else shutil.which('mpirun')
  if 'mpirun' in command and not mpirun:
    raise errors.UsageError(
      "This result needs mpirun, which is not installed: pip install '.[mpi]'."
    )
  known = {'python': sys.executable, 'mpirun': str(mpirun)}
  return [known.get(x, x) for x in command]

"""Training of PPO, in one process, with workers, and with ranks."""

from typing import Any

from agents.tools import phases
from scripts.benchmarks import common

# Updates before those that are measured.
_WARM_UP = 2


def run(variant: str, args: Any) -> dict[str, Any]:
  """Measure training phases, each with the update at its end.

  The baseline of `ppo` steps environments in worker processes, whose CPU
  seconds are not counted: look at the wall. That of `ppo-ranks` is one process.
  """
  from agents import runs, train_ppo
  from agents.run import mpi

  names = ('num_agents', 'update_every', 'eval_episodes')
  sizes = dict.fromkeys(names, args.episodes or None)
  config = runs.prepare(args.config, overrides={'seed': 0, **sizes})
  steps = config.update_every * config.max_length
  with config.unlocked:
    config.steps = steps * (args.updates + _WARM_UP)
  timer = _Timer()
  workers = variant == 'baseline' and args.name == 'ppo'
  comm = mpi.world() if variant == 'rank' else None
  for _ in train_ppo.train(config, workers, comm, lambda: [timer]):
    pass
  return timer.clock.report(steps * args.updates)


class _Timer(phases.Observer):
  """Measures training phases, once some of them have passed."""

  def __init__(self):
    self.clock = common.Clock()
    self._running = False

  def start_phase(self, phase, epoch, *unused):
    self.close()
    if epoch >= _WARM_UP and phase.name == 'train':
      self.clock.__enter__()
      self._running = True

  def close(self):
    if self._running:
      self.clock.__exit__()
    self._running = False


_FLAGS = [
  ('config', 'pybullet_pendulum', 'configuration'),
  ('updates', 6, 'number of updates to measure'),
  ('episodes', 0, 'episodes per update and environments; 0: as configured'),
]
ALL = [
  common.Benchmark(
    'ppo',
    'training steps of PPO in one process; baseline: with worker processes',
    'steps',
    run,
    _FLAGS,
  ),
  common.Benchmark(
    'ppo-ranks',
    'training steps of PPO by several processes of MPI; baseline: one process',
    'steps',
    run,
    [*_FLAGS, ('ranks', 2, 'number of processes')],
    ranks=True,
  ),
]

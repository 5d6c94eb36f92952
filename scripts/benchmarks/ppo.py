"""Benchmarks of PPO training in one process, with workers and with ranks."""

from agents.tools import phases
from scripts.benchmarks import common

# Updates before measuring.
_WARM_UP = 2


@common.benchmark('steps')
def ppo(
  variant: str,
  config: str = 'pybullet_pendulum',
  updates: int = 6,
  episodes: int = 0,
) -> common.Result:
  """Training steps of PPO in one process; baseline: with worker processes.

  Includes updates. CPU time excludes worker processes; compare wall time.

  Flags:
    config: Configuration.
    updates: Number of updates to measure.
    episodes: Episodes per update and number of environments; 0: as configured.
  """
  from agents import runs, train_ppo
  from agents.run import mpi

  names = ('num_agents', 'update_every', 'eval_episodes')
  overrides = {'seed': 0, **dict.fromkeys(names, episodes or None)}
  settings = runs.prepare(config, overrides=overrides)
  steps = settings.update_every * settings.max_length
  with settings.unlocked:
    settings.steps = steps * (updates + _WARM_UP)
  timer = _Timer()
  workers = variant == 'baseline'
  comm = mpi.world() if variant == 'rank' else None
  for _ in train_ppo.train(settings, workers, comm, lambda: [timer]):
    pass
  return timer.clock.report(steps * updates)


@common.benchmark('steps', ours='rank', baseline='ours')
def ppo_ranks(
  variant: str,
  config: str = 'pybullet_pendulum',
  updates: int = 6,
  episodes: int = 0,
) -> common.Result:
  """Training steps of PPO by MPI processes; baseline: one process.

  Takes the flags of ppo, for all processes together.
  """
  return ppo(variant, config, updates, episodes)


class _Timer(phases.Observer):
  """Measure training phases after the warm-up."""

  def __init__(self):
    self.clock = common.Clock()
    self._running = False

  def start_phase(self, phase, epoch, *unused):
    self.close()
    if epoch >= _WARM_UP and phase.name == 'train':
      self.clock.start()
      self._running = True

  def close(self):
    if self._running:
      self.clock.stop()
    self._running = False

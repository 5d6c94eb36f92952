"""Updates of PlaNet by several ranks of MPI, against one process.

Each rank runs `python -m scripts.benchmarks.planet_ranks` under mpirun.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from scripts.benchmarks import common, planet


def add_arguments(parser: argparse.ArgumentParser) -> None:
  planet.add_arguments(parser)
  parser.add_argument('--ranks', type=int, default=2, help='to train together')


def run(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure updates on constant data, of the same batch in all.

  `reduction_s` are the seconds that exchanging the gradients takes where no
  rank has to wait for another one; `update_s` those of a whole update. Both
  are of the fastest one, as other programs slow most of them down.
  """
  if variant == 'baseline':
    return planet.run_step('ours', args)
  command = [os.path.join(os.path.dirname(sys.executable), 'mpirun')]
  if not os.path.exists(command[0]):
    command = ['mpirun']
  command += ['--oversubscribe', '--bind-to', 'none', '-n', str(args.ranks)]
  command += [sys.executable, '-m', 'scripts.benchmarks.planet_ranks']
  for name in ('batch', 'length', 'units', 'task'):
    command += [f'--{name}', str(getattr(args, name))]
  # Open MPI refuses root, but containers often have no other user.
  root = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
  result = subprocess.run(
    command, env={**os.environ, **root}, stdout=subprocess.PIPE, text=True
  )
  result.check_returncode()
  found = json.loads(result.stdout.splitlines()[-1])
  measurement = common.Measurement(args.units)
  measurement.cpu_s = found.pop('cpu_s')
  measurement.wall_s = found.pop('wall_s')
  measurement.extra = found
  return measurement


def measure_rank(args: argparse.Namespace) -> dict[str, float]:
  """Measure this rank and the others.

  Args:
    args: Sizes, `batch` being that of all ranks.

  Returns:
    Dict of `cpu_s` of all ranks and `wall_s` for all updates, `update_s` of
    one, `reduction_s` of one exchange, and the `megabytes` of gradients in it.
  """
  from agents.run import mpi
  from agents.tools.tf1 import tf
  from planet.training import objectives as objectives_lib
  from planet.training.ranks import Ranks

  ranks = Ranks(mpi.world())
  args.batch //= ranks.size
  with tempfile.TemporaryDirectory() as logdir:
    config = planet._define_config(logdir, args)
    graph = planet._define_graph(config, args)
  objectives = objectives_lib.compute_objectives(
    graph.posterior, graph.prior, graph.data, graph, config
  )
  summaries, norms = objectives_lib.apply_optimizers(
    objectives, graph.trainer, config, ranks.average
  )
  update = tf.group(*summaries, *norms.values())
  weights = tf.trainable_variables()
  reduction = tf.group(*ranks.average([x.read_value() for x in weights]))
  with tf.Session(config=ranks.session_options()) as sess:
    sess.run(
      [tf.global_variables_initializer(), tf.local_variables_initializer()]
    )
    ranks.broadcast(sess)
    updates, update_s = _measure(
      lambda: sess.run(update), ranks.comm, args.units
    )
    _, reduction_s = _measure(
      lambda: sess.run(reduction), ranks.comm, 10 * args.units
    )
  size = sum(x.shape.num_elements() * x.dtype.size for x in weights)
  return {
    'cpu_s': ranks.comm.allreduce(updates.cpu_s),
    'wall_s': updates.wall_s,
    'update_s': update_s,
    'reduction_s': reduction_s,
    'megabytes': size / 1e6,
  }


def _measure(
  function: Callable[[], Any], comm: Any, units: int
) -> tuple[common.Measurement, float]:
  """Call a function on all ranks at the same time.

  Returns:
    Tuple of the measurement of all calls, and the seconds of the fastest one.
  """
  function()
  times = []
  with common.Measurement(units) as measurement:
    for _ in range(units):
      comm.Barrier()
      began = time.time()
      function()
      times.append(time.time() - began)
  return measurement, min(times)


def main() -> None:
  """Print the measurement as the last line of the first rank."""
  from agents.run import mpi

  mpi.abort_on_errors()
  parser = argparse.ArgumentParser()
  add_arguments(parser)
  result = measure_rank(parser.parse_args())
  if mpi.world().Get_rank() == 0:
    print(json.dumps(result), flush=True)


SUBJECTS = [
  common.Subject(
    'planet-ranks',
    'an update of PlaNet by several ranks, against one process',
    'updates',
    run,
    add_arguments,
    planet.environ,
  ),
]

if __name__ == '__main__':
  main()

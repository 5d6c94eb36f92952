"""PlaNet as a library: a training to iterate over.

Example:

  import planet

  training = planet.train('cartpole_balance', 'logs/cartpole', config='cpu')
  for record in training:
    print(record['environment_steps'], record.get('test_return'))
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from agents.run import references
from agents.run.training import Training
from planet.scripts import parameters, tasks
from planet.scripts import train as program


def train(
  env: Any = None,
  logdir: str | os.PathLike[str] | None = None,
  total_env_steps: float | None = None,
  config: str = 'default',
  params: Mapping[str, Any] | parameters.Parameters | None = None,
  seed: int | None = None,
  *,
  trust: Iterable[str] | references.Trust = (),
  verbose: bool = False,
) -> Training:
  """Train, or continue the run in a folder.

  The training iterates over a record of each epoch, a dict of `logdir` of the
  run, `epoch` from 1, `environment_steps` and `episodes` recorded for training,
  `updates`, `seconds` of the epoch, `loss/<name>` of the last batch for
  training, and, if episodes have ended, their mean `return` and `test_return`.

  Args:
    env: Name of a task; id of an environment of gymnasium or PyBullet; function
      that returns an environment, for which it is sent to other processes; or
      an environment, which is stepped in this process and thus must not draw
      with OpenGL. Environments need `render_mode='rgb_array'`. That of `params`
      by default.
    logdir: Folder of the experiment, whose only run is in `00001`, or of a run;
      a temporary one by default.
    total_env_steps: Environment steps to train for, those of the first episodes
      and of repeated actions included; `max_steps` decides by default.
    config: `default`, `debug`, `cpu` or `carla_cpu`.
    params: Parameters, such as `batch_shape`. `model`, `network`, `planner` and
      `collect_objective` may be objects of your own, see docs/planet.md.
    seed: Seed of all random numbers.
    trust: Modules of your own that a stored run may name.
    verbose: Whether to print what the program prints.

  Raises:
    UsageError: If the parameters are wrong; while training, if they do not fit
      the stored run.
  """
  given, objects = parameters.name_objects(params or {})
  if env is not None:
    given['tasks'] = [tasks.name_env(env)]
    if not isinstance(env, str):
      objects['tasks'] = env
  if total_env_steps is not None:
    given['total_env_steps'] = total_env_steps
  logdir = os.fspath(logdir or tempfile.mkdtemp(prefix='planet-'))
  args = program.parse_args([f'--logdir={logdir}', f'--config={config}'])
  args.params, args.objects, args.seed, args.trust = given, objects, seed, trust
  program.check(args)
  return Training(lambda: program.work(args), verbose)

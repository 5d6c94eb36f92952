"""Train PlaNet from Python.

Example:

  import planet

  training = planet.train('cartpole_balance', 'logs/cartpole', config='cpu')
  for record in training:
    print(record['environment_steps'], record.get('test_return'))
"""

import os
import tempfile
from collections.abc import Mapping
from typing import Any

from agents.run import files, references, schema
from agents.run.training import Training, check_arguments
from planet.scripts import parameters, table
from planet.scripts import train as program


def train(
  env: Any = None,
  logdir: str | os.PathLike[str] | None = None,
  total_env_steps: float | None = None,
  config: str = 'default',
  params: Mapping[str, Any] | parameters.Parameters | None = None,
  seed: int | None = None,
  *,
  trust: references.Trusted = None,
  verbose: bool = False,
) -> Training:
  """Start or resume a training run.

  Args:
    env: Task name; id of a gymnasium or PyBullet environment; picklable
      function that returns an environment; or an environment, which runs in
      this process and must not render with OpenGL. Functions without an
      argument `render_mode`, and environments, need the mode `rgb_array` for
      images. Defaults to `tasks` in `params`.
    logdir: Folder of an experiment, with its only run in `00001`, or of a run;
      a temporary folder by default.
    total_env_steps: Environment steps to train for, including initial episodes
      and repeated actions; `max_steps` applies by default.
    config: Name of a preset, see `planet.scripts.presets`; or of a function,
      `module:function`, see docs/parts.md.
    params: Parameters, such as `batch_shape`. `model`, `network`, `planner` and
      `collect_objective` accept your own objects, see docs/parts.md.
    seed: Seed of all random numbers.
    trust: Your modules that a stored run may import: a name or a list of names.
    verbose: Whether to print progress and messages.

  Returns:
    `Training`, an iterator of dicts, one per epoch: `logdir` of the run;
    `epoch` from 1; `environment_steps` and `episodes` collected for training
    so far; `updates` so far; `seconds` of the epoch; `loss/<name>` of the last
    training batch; and mean `return` and `test_return` of finished episodes,
    which are missing if none has ended.

  Raises:
    UsageError: If the parameters are wrong; while training, if they do not fit
      the stored run.
  """
  check_arguments(params, config)
  given, objects = parameters.name_objects(params or {})
  if env is not None:
    given['tasks'] = [table.name_env(env)]
    if not isinstance(env, str):
      objects['tasks'] = env
  if total_env_steps is not None:
    given['total_env_steps'] = total_env_steps
  logdir = logdir or tempfile.mkdtemp(prefix='planet-')
  # The program may change its working directory meanwhile.
  logdir = files.absolute(logdir)
  seed = schema.convert(schema.Seed | None, seed, "Argument 'seed'")
  args = program.Arguments(
    logdir=logdir,
    config=config,
    params=given,
    objects=objects,
    seed=seed,
    trust=trust,
  )
  args = program.check(args)
  return Training(lambda: program.train_experiment(args), verbose)

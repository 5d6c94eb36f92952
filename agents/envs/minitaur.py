"""The minitaur of PyBullet, a quadruped without a registered id."""

import ast
import contextlib
import importlib
import importlib.util
import os
import sys
import types
from typing import Any

from agents.envs import adapters, quiet
from agents.run import errors

# Classes without ids, and their modules.
CLASSES = {
  'MinitaurReactiveEnv': 'minitaur_reactive_env',
  'MinitaurTrottingEnv': 'minitaur_trotting_env',
}
_ENVS = 'pybullet_envs.minitaur.envs'
_DEFAULTS = {
  'accurate_motor_model_enabled': True,
  'motor_overheat_protection': True,
  'pd_control_enabled': True,
  'render': False,
}


def minitaur(duck: bool = False, **changes: Any) -> adapters.GymEnv:
  """Create the quadruped of PyBullet.

  Simulates its motors, with torque protection, and an angle controller; masses,
  friction and battery vary per episode.

  Args:
    duck: Whether it carries a duck.
    **changes: Other arguments of PyBullet's class, such as
      `env_randomizer=None` to always use the same robot.

  Returns:
    Environment with the interface of `agents.envs.adapters`.

  Raises:
    UsageError: If PyBullet is missing.
  """
  # The original looks for the class with the duck in the other module.
  constructor = (
    _import_minitaur('duck_gym_env').MinitaurBulletDuckEnv
    if duck
    else _import_minitaur('gym_env').MinitaurBulletEnv
  )
  if 'env_randomizer' not in changes:
    randomizer = _import_minitaur('env_randomizer').MinitaurEnvRandomizer()
    changes['env_randomizer'] = randomizer
  with quiet.quietly():
    return adapters.GymEnv(constructor(**{**_DEFAULTS, **changes}))


def create(name: str, **settings: Any) -> adapters.GymEnv:
  """Create a minitaur of `CLASSES`, for which PyBullet has trained policies.

  Args:
    name: Name of the class.
    **settings: Its arguments.

  Raises:
    UsageError: If PyBullet is missing.
  """
  with _using_pybullet(name):
    for message in ('timestamp', 'vector', 'minitaur_logging'):
      _load_messages(f'{_ENVS}.{message}_pb2')
    module = importlib.import_module(f'{_ENVS}.{CLASSES[name]}')
    return adapters.GymEnv(getattr(module, name)(**settings))


def _load_messages(name):
  """Define the protocol messages of a module.

  PyBullet's modules were generated for a version of protobuf that refuses to
  work beside current ones. They contain the definitions, as bytes.
  """
  if name in sys.modules:
    return
  from google.protobuf import descriptor_pool, message_factory

  spec = importlib.util.find_spec(_ENVS.rpartition('.')[0])
  folder = list((spec and spec.submodule_search_locations) or ())
  if not folder:
    raise ImportError(f'{_ENVS} is missing')
  path = os.path.join(folder[0], 'envs', f'{name.rpartition(".")[2]}.py')
  with open(path, encoding='utf-8') as file_:
    tree = ast.parse(file_.read())
  given = next(
    x.value
    for x in ast.walk(tree)
    if isinstance(x, ast.keyword) and x.arg == 'serialized_pb'
  )
  # Python 2 needed a function around the text.
  text = ast.literal_eval(
    given.args[0] if isinstance(given, ast.Call) else given
  )
  content = text if isinstance(text, bytes) else text.encode('latin1')
  found = descriptor_pool.Default().AddSerializedFile(content)
  module = types.ModuleType(name)
  for key, value in found.message_types_by_name.items():
    setattr(module, key, message_factory.GetMessageClass(value))
  sys.modules[name] = module


def _import_minitaur(name):
  """Import a module of PyBullet about the minitaur."""
  with _using_pybullet('The minitaur'):
    return importlib.import_module(f'pybullet_envs.bullet.minitaur_{name}')


@contextlib.contextmanager
def _using_pybullet(name):
  """Silence PyBullet, and say how to install it where an import fails."""
  try:
    with quiet.quietly():
      yield
  except ImportError as error:
    raise errors.UsageError(
      f'{name} needs PyBullet, which cannot be imported ({error}): '
      f'{errors.how_to_install("pybullet")}.'
    ) from None

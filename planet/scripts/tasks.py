"""Tasks: environments with their observations and time limits.

Every function takes the configuration so far and the parameters. Constructors
of environments are picklable and import no TensorFlow, because they run in
processes of their own.
"""

import collections
import re

from agents.run import errors
from planet.control import dummy_env
from planet.envs import gym_pixels
from planet.envs import suite
from planet.envs.carla import task_env
from planet.scripts import driving
from planet.scripts import parameters
from planet.tools.bind import bind

# A decision lasts `action_repeat` steps of the environment.
Task = collections.namedtuple(
  'Task',
  'name, env_ctor, max_length, state_components, action_repeat',
  defaults=[1],
)

_EPISODE_STEPS = 1000


def dummy(config, params):
  """Random images and rewards, without a simulator."""
  action_repeat = parameters.read(params, 'action_repeat') or 1
  max_length = _EPISODE_STEPS // action_repeat
  env_ctor = bind(
    dummy_env.make,
    action_repeat,
    max_length,
    image_size=parameters.read(params, 'image_size'),
  )
  return Task('dummy', env_ctor, max_length, ['reward'], action_repeat)


def cartpole_balance(config, params):
  return _suite_task(
    'cartpole_balance',
    'cartpole',
    'balance',
    8,
    ['position', 'velocity'],
    config,
    params,
  )


def cartpole_swingup(config, params):
  return _suite_task(
    'cartpole_swingup',
    'cartpole',
    'swingup',
    8,
    ['position', 'velocity'],
    config,
    params,
  )


def finger_spin(config, params):
  return _suite_task(
    'finger_spin',
    'finger',
    'spin',
    2,
    ['position', 'velocity', 'touch'],
    config,
    params,
  )


def cheetah_run(config, params):
  return _suite_task(
    'cheetah_run', 'cheetah', 'run', 4, ['position', 'velocity'], config, params
  )


def cup_catch(config, params):
  return _suite_task(
    'cup_catch',
    'ball_in_cup',
    'catch',
    4,
    ['position', 'velocity'],
    config,
    params,
  )


def walker_walk(config, params):
  return _suite_task(
    'walker_walk',
    'walker',
    'walk',
    2,
    ['height', 'orientations', 'velocity'],
    config,
    params,
  )


def reacher_easy(config, params):
  return _suite_task(
    'reacher_easy',
    'reacher',
    'easy',
    4,
    ['position', 'velocity', 'to_target'],
    config,
    params,
  )


def gym_cheetah(config, params):
  return _gym_task(
    'gym_cheetah', 'HalfCheetah-v3', config, params, ['reward', 'state']
  )


def gym_racecar(config, params):
  return _gym_task(
    'gym_racing',
    'CarRacing-v0',
    config,
    params,
    ['reward'],
    observation_is_image=True,
  )


def carla(config, params):
  """Driving, on a CARLA server or in the world that needs none."""
  action_repeat = parameters.read(params, 'action_repeat') or 1
  max_length = parameters.read(params, 'max_length') // action_repeat
  if not max_length:
    raise errors.UsageError(
      f'Parameter action_repeat is {action_repeat}, more than the steps of an '
      'episode; lower it or raise max_length.'
    )
  env_ctor = bind(
    task_env.make,
    action_repeat,
    max_length,
    'carla',
    parameters.read(params, 'image_size'),
    min_length=required_length(config),
    pixels=config.observation == 'image',
    settings=driving.define_settings(config, params),
  )
  components = ['reward', 'state']
  return Task('carla', env_ctor, max_length, components, action_repeat)


_FUNCTIONS = {
  function.__name__: function
  for function in (
    dummy,
    cartpole_balance,
    cartpole_swingup,
    finger_spin,
    cheetah_run,
    cup_catch,
    walker_walk,
    reacher_easy,
    gym_cheetah,
    gym_racecar,
    carla,
  )
}


def required_length(config):
  """Return the number of observations that an episode needs for training."""
  return config.batch_shape[1] * config.num_chunks


def find(name):
  """Function that defines a task.

  Besides the names of this module, `gym_<id>` is the environment of this id
  in gymnasium or PyBullet, rendered to images.

  Args:
    name: Name of the task.

  Returns:
    Function from configuration and parameters to a `Task`.

  Raises:
    UsageError: If there is no such task.
  """
  if name in _FUNCTIONS:
    return _FUNCTIONS[name]
  match = re.fullmatch(r'gym_(.*-v\d+)', name)
  if match:
    return bind(_any_gym_task, name, match.group(1))
  raise errors.UsageError(
    f'Task {name!r} is unknown. {errors.suggest(name, _FUNCTIONS)} Any '
    'environment of gymnasium or PyBullet is available as gym_<id>, such '
    'as gym_Pendulum-v1.'
  )


def _suite_task(name, domain, task, action_repeat, components, config, params):
  given = parameters.read(params, 'action_repeat')
  action_repeat = given or action_repeat
  max_length = _EPISODE_STEPS // action_repeat
  env_ctor = bind(
    suite.make,
    domain,
    task,
    action_repeat,
    max_length,
    image_size=parameters.read(params, 'image_size'),
    camera_id=parameters.read(params, 'camera_id'),
    pixels=config.observation == 'image',
  )
  components = ['reward'] + components
  return Task(name, env_ctor, max_length, components, action_repeat)


def _any_gym_task(name, env_id, config, params):
  # The name becomes part of scopes in the graph.
  name = re.sub(r'[^A-Za-z0-9_.-]', '_', name)
  return _gym_task(name, env_id, config, params, ['reward', 'state'])


def _gym_task(
  name, env_id, config, params, components, observation_is_image=False
):
  action_repeat = parameters.read(params, 'action_repeat') or 1
  max_length = _EPISODE_STEPS // action_repeat
  env_ctor = bind(
    gym_pixels.make,
    env_id,
    action_repeat,
    max_length,
    min_length=required_length(config),
    image_size=parameters.read(params, 'image_size'),
    observation_is_image=observation_is_image,
    pixels=config.observation == 'image',
  )
  return Task(name, env_ctor, max_length, components, action_repeat)

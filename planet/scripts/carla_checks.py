"""Checks of the smoke test that concern a server, and what all checks share."""

import argparse
import functools
import os
import signal
from typing import Any

import numpy as np

from agents.envs.wrappers import Async
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import choice
from planet.envs.carla import env as env_lib
from planet.envs.carla.server import actors, connect, launch


class Report:
  """Checks and their results, printed as they come.

  Args:
    filename: File to write the same lines to.
  """

  def __init__(self, filename: str):
    self.failed = 0
    self._filename = filename
    open(filename, 'w').close()

  def check(self, name: str, passed: Any, detail: str = '') -> None:
    """Note the result of a check."""
    self.failed += not passed
    self.tell(f'{"PASS" if passed else "FAIL"} {name} {detail}'.rstrip())

  def tell(self, line: str) -> None:
    """Print and keep a line."""
    print(line, flush=True)
    with open(self._filename, 'a') as file_:
      file_.write(line + '\n')


class Watched:
  """Backend whose frames are kept."""

  def __init__(self, backend: backend_lib.Backend):
    self._backend = backend
    self.frames: list[backend_lib.Frame] = []

  def __getattr__(self, name):
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._backend, name)

  def reset(self, *args: Any) -> backend_lib.Frame:
    self.frames = [self._backend.reset(*args)]
    return self.frames[0]

  def tick(self, control: backend_lib.Control) -> backend_lib.Frame:
    self.frames.append(self._backend.tick(control))
    return self.frames[-1]


def define_config(args: argparse.Namespace, **changes: Any) -> dict[str, Any]:
  """Settings of the environment."""
  config = {
    'backend': args.backend,
    'host': args.host,
    'port': args.port,
    'x_res': args.size,
    'y_res': args.size,
    'scenarios': args.scenario,
    'seed': args.seed,
    'server_binary': args.launch or None,
  }
  if args.map:
    config['server_map' if args.backend == 'server' else 'map'] = args.map
  return {**config, **changes}


def open_env(
  args: argparse.Namespace, **changes: Any
) -> tuple[env_lib.CarlaEnv, Watched]:
  """Environment whose frames are kept."""
  config = define_config(args, **changes)
  watched: Any = Watched(choice.make(args.backend))
  return env_lib.CarlaEnv(config, watched), watched


def tell_versions(args: argparse.Namespace, report: Report) -> None:
  """Tell what runs where."""
  client = connect.connect(args.host, args.port, 10.0, False)
  report.tell(
    f'Server {client.get_server_version()}, package '
    f'{client.get_client_version()}, map {client.get_world().get_map().name}'
  )


def check_killed_client(args: argparse.Namespace, report: Report) -> None:
  """The process of the client is killed; the next one clears up."""
  env, watched = open_env(args, vehicles=5)
  try:
    env.reset()
    os.kill(watched.pid, signal.SIGKILL)
    info = env.step(np.zeros(2, np.float32))[3]
    report.check('a killed client ends the episode', 'step_error' in info)
    env.reset()
    info = env.step(np.zeros(2, np.float32))[3]
    report.check('its leftovers are removed', 'step_error' not in info)
  finally:
    env.close()


def check_turns(args: argparse.Namespace, report: Report) -> None:
  """Two environments on one server, or on one more that is started."""
  envs = []
  try:
    for seed in range(2):
      envs.append(open_env(args, seed=seed)[0])
    infos = []
    for env in envs + envs:
      env.reset()
      infos.append(env.step(np.zeros(2, np.float32))[3])
    report.check('turns', not any('step_error' in x for x in infos))
  finally:
    for env in envs:
      env.close()


def check_side_by_side(args: argparse.Namespace, report: Report) -> None:
  """Several environments, on servers of their own, at once."""
  envs = []
  try:
    for index in range(args.num_envs):
      config = define_config(args, seed=index)
      envs.append(Async(functools.partial(env_lib.CarlaEnv, config), 'process'))
    for env in envs:
      env.reset()
    for _ in range(10):
      for promise in [
        x.step(np.array([1, 0], np.float32), False) for x in envs
      ]:
        promise()
    images = {x.render().tobytes() for x in envs}
    report.check('side by side', len(images) == len(envs), f'{len(envs)}')
  finally:
    for env in envs:
      env.close()


def check_recovery(
  args: argparse.Namespace, report: Report, server: launch.Server
) -> None:
  """The server dies in an episode; the next episode runs again."""
  env, _ = open_env(args)
  try:
    env.reset()
    os.killpg(server.pid, signal.SIGKILL)
    _, reward, done, info = env.step(np.zeros(2, np.float32))
    report.check(
      'a lost server ends the episode', done and 'step_error' in info
    )
    env.reset()
    info = env.step(np.zeros(2, np.float32))[3]
    report.check('the next episode runs', 'step_error' not in info)
  finally:
    env.close()


def check_left_alone(args: argparse.Namespace, report: Report) -> None:
  """A second client finds a server that ticks by itself."""
  client = connect.connect(args.host, args.port, 10.0, False)
  world = client.get_world()
  roles = [x.attributes.get('role_name', '') for x in world.get_actors()]
  left = [x for x in roles if x.startswith(actors.TAG)]
  report.check('nothing is left', not left, f'{len(left)} actors')
  free = not world.get_settings().synchronous_mode
  report.check('the server is asynchronous again', free)
  try:
    world.wait_for_tick(10.0)
    report.check('the server ticks', True)
  except RuntimeError as error:
    report.check('the server ticks', False, str(error))

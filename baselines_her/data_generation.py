"""Record demonstrations of FetchPickAndPlace with a scripted controller.

Example:

  her-record --out data_fetch_random_100.npz
"""

import argparse
import sys
from typing import Any

import numpy as np

from agents.run import entry, errors, files, stopping
from baselines_her import demonstrations, envs

_ENV = 'FetchPickAndPlace-v1'
_GAIN = 6.0
_OPEN, _CLOSE = 0.05, -0.005


class Controller:
  """Proportional controller in four stages.

  The gripper moves 3 cm above the object while opening, down to the object,
  where it closes, then to the goal, and stays there.
  """

  def __init__(self) -> None:
    self._stage = 0
    self._last_error: np.ndarray | None = None

  def act(self, obs: dict[str, np.ndarray]) -> np.ndarray:
    """Return the action [4] for a dict observation of the environment."""
    grip_to_object = obs['observation'][6:9]
    object_to_goal = obs['desired_goal'] - obs['observation'][3:6]
    above = grip_to_object + [0, 0, 0.03]
    # As in the original, the first stage tests the error of the step before,
    # so it lasts one step longer than necessary.
    tested = above if self._last_error is None else self._last_error
    self._last_error = above
    stages = [
      (above, tested, 0.005, _OPEN),
      (grip_to_object, grip_to_object, 0.005, _CLOSE),
      (object_to_goal, object_to_goal, 0.01, _CLOSE),
    ]
    while self._stage < len(stages):
      error, tested, tolerance, fingers = stages[self._stage]
      if np.linalg.norm(tested) >= tolerance:
        return np.append(_GAIN * error, fingers)
      self._stage += 1
    return np.array([0, 0, 0, _CLOSE])


def record_episode(env: Any) -> tuple[list, list, list]:
  """Play one episode with the controller.

  Args:
    env: Environment of `baselines_her.envs`.

  Returns:
    Tuple of lists: T + 1 observations, T actions, T infos.
  """
  controller = Controller()
  obs, acs, infos, done = [env.reset()], [], [], False
  while not done:
    action = controller.act(obs[-1])
    observ, _, done, info = env.step(action)
    obs.append(observ)
    acs.append(action)
    infos.append({'is_success': info['is_success']})
  return obs, acs, infos


def main(args: argparse.Namespace) -> None:
  """Record and store all episodes.

  Args:
    args: Namespace of `parse_args`.
  """
  env = envs.make(_ENV)
  env.seed(args.seed)
  episodes = []
  for number in range(1, args.num_episodes + 1):
    stopping.check(stopping.START_OVER)
    episodes.append(record_episode(env))
    if number % 10 == 0 or number == args.num_episodes:
      print(f'Recorded {number} of {args.num_episodes}.', flush=True)
  env.close()
  demonstrations.save(args.out, *zip(*episodes))
  rate = np.mean([infos[-1]['is_success'] for _, _, infos in episodes])
  print(f'Wrote {args.out}; {rate:.0%} of the episodes end in success.')


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line.

  Raises:
    UsageError: If a value is not allowed, or the file is not writable.
  """
  parser = entry.Parser(prog='her-record', description=__doc__)
  add = parser.add_argument
  add('--out', default='data_fetch_random_100.npz', help='.npz file to write')
  text = 'episodes to record'
  add('--num_episodes', type='positive', default=100, help=text)
  add('--seed', type='seed', default=0, help='random seed')
  args = parser.parse_args(argv)
  if not args.out.endswith('.npz'):
    raise errors.UsageError(
      f'Flag --out is {args.out!r}; use a name that ends in .npz.'
    )
  files.check_creatable_file(args.out)
  return args


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""

  def work() -> None:
    args = parse_args(argv)
    with stopping.handle_signals('Stopping'):
      main(args)

  return entry.run(work)


if __name__ == '__main__':
  sys.exit(run())

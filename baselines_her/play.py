"""Play and evaluate a trained policy.

Example:

  her-play logs/reach

Opens a window, or records a video in the folder of the run if there is no
display. Pickled policies can run arbitrary code; use only files you trust.
"""

import argparse
import functools
import itertools
import os
import sys
from typing import Any

import numpy as np

from agents.envs import probe, video
from agents.envs import window as window_lib
from agents.run import entry, errors, files, messages, references, stopping
from baselines_her import (
  envs,
  logger,
  policies,
  rollout,
  trained,
  vec_env,
  video_recorder,
)

_EPISODES_IN_FILE = 5


def show(
  policy: Any,
  episodes: int | None = None,
  seed: int | None = None,
  filename: str = 'play.mp4',
  render: bool = True,
  main_network: bool = False,
  window: bool | None = None,
) -> rollout.RolloutWorker:
  """Play a policy in a window or, without a display, record a video.

  Prints the return of each episode like the original, `episode_rew=`, and ends
  early if the user asks to stop.

  Args:
    policy: `DDPG` agent.
    episodes: Number of episodes, 0 for no limit; by default no limit in a
      window and a few in a video.
    seed: Seed of the environment.
    filename: Path of the video.
    render: Whether to show anything. Environments without pictures are played
      without, with a sentence.
    main_network: Whether to ignore the setting `test_with_polyak`, as the
      original's `--play` does.
    window: Whether to open a window; by default if there is a display.

  Returns:
    Worker with the statistics.
  """
  env_id, limit = policy.info['env_name'], policy.T
  window = window_lib.has_display() if window is None else window
  window &= render
  if render and (problem := find_problem(env_id, window, limit)):
    print(f'Playing without pictures: {problem}', flush=True)
    render = window = False
  if episodes is None:
    episodes = 0 if window else _EPISODES_IN_FILE
  if render:
    env = make_viewed_env(env_id, seed, window, filename, time_limit=limit)
  else:
    env = vec_env.make_vec_env(env_id, 'robotics', 1, seed, time_limit=limit)
  path = None
  try:
    worker = rollout.make_worker(policy, env, logger, exploit=True)
    worker.use_target_net &= not main_network
    for _ in itertools.count() if episodes == 0 else range(episodes):
      worker.generate_rollouts()
      print(f'episode_rew={worker.returns[0]}', flush=True)
      if stopping.requested():
        break
    path = getattr(env, 'finish', lambda: None)()
  finally:
    env.close()
  if path:
    print(f'Wrote {path}.', flush=True)
  return worker


def find_problem(
  env: Any, window: bool, limit: int | None = None
) -> str | None:
  """Return why an environment cannot be shown, None if it can.

  Args:
    env: Value that `envs.make` accepts.
    window: Whether to open a window instead of recording a video.
    limit: Steps per episode; by default those of the id.
  """
  mode = 'human' if window else 'rgb_array'
  make = functools.partial(envs.make, env, mode, limit)
  return probe.find_problem(make, (lambda env: {}) if window else None)


def make_viewed_env(
  env_id: str,
  seed: int | None,
  window: bool,
  filename: str,
  **options: Any,
) -> Any:
  """Create an environment in a separate process, shown or recorded.

  Args:
    env_id: Id of the environment.
    seed: Seed of the environment, or None.
    window: Whether to open a window instead of recording a video.
    filename: Path of the video; with a slash at the end, a folder for several
      videos.
    **options: Other arguments of `vec_env.make_vec_env`.

  Raises:
    UsageError: If the folder of the video is not writable.
  """
  folder, name = os.path.split(files.expand(filename))
  if not window:
    # Now, not only after the episodes.
    if name:
      files.check_creatable_file(filename)
    else:
      files.check_creatable(folder)
  mode = 'human' if window else 'rgb_array'
  env = vec_env.make_vec_env(
    env_id, 'robotics', 1, seed, render=mode, **options
  )
  if window:
    return env
  return video_recorder.VecVideoRecorder(
    env, folder, lambda step: True, np.inf, name or None
  )


def main(args: argparse.Namespace) -> None:
  """Evaluate a policy and print the table of the results.

  Args:
    args: Namespace of `parse_args`.

  Raises:
    UsageError: If the policy cannot be read.
  """
  from baselines_her import tf_util

  tf_util.set_global_seeds(args.seed)
  with trained.load(args.policy_file, trust=args.trust) as agent:
    worker = show(
      agent.policy,
      args.n_test_rollouts,
      args.seed,
      args.video or os.path.join(agent.logdir, 'play.mp4'),
      args.render,
      window=False if args.video else None,
    )
  stopping.check(stopping.START_OVER)
  logger.logkvs(dict(worker.logs('test')))
  logger.dumpkvs()


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = entry.Parser(prog='her-play', description=__doc__)
  add = parser.add_argument
  add('policy_file', help='folder of a run, or file of a policy')
  add('--seed', type='seed', default=0, help='random seed')
  add('--n_test_rollouts', type='positive', default=10, help='episodes to play')
  text = '0 evaluates without a window or video'
  add('--render', type=int, default=1, help=text)
  text = (
    'file of a video, instead of a window (without a display play.mp4 in the '
    'folder of the run)'
  )
  add('--video', default=None, help=text)
  add('--trust', action='append', default=[], help=references.HELP)
  args = parser.parse_args(argv)
  if args.video and not args.render:
    raise errors.UsageError(
      f'Flag --video is {args.video}, but --render=0 shows nothing; omit one '
      'of them.'
    )
  if args.video:
    video.check_ending(args.video)
  # Before TensorFlow is imported.
  policies.find(args.policy_file)
  return args


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""

  def work() -> None:
    args = parse_args(argv)
    messages.set_up_logging()
    with stopping.handle_signals('Stopping'):
      main(args)

  return entry.run(work)


if __name__ == '__main__':
  sys.exit(run())

"""Play episodes with a trained PPO agent, and write videos of them.

Example:

  python -m agents.visualize_ppo --logdir=~/logdir --outdir=~/videos

Prints the score of each episode. The folder of the run is enough, wherever it
has been moved to.
"""

import functools
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from agents import runs
from agents.envs import adapters
from agents.run import entry
from agents.run import errors
from agents.run import files
from agents.run import flags
from agents.run import log
from agents.run import references
from agents.run import schema
from agents.run import stopping
from agents.run.schema import setting
from agents.tools import graph_errors


class Flags(schema.Settings):
  """Declaration of the flags."""

  logdir: str | None = setting(
    None, 'Folder of the run, or one with a single run.'
  )
  outdir: str | None = setting(
    None, 'Folder for videos, default videos in the run.'
  )
  checkpoint: str | None = setting(
    None, 'Such as model.ckpt-48000; the newest one.'
  )
  num_agents: schema.Positive = setting(
    1, 'Number of environments that play at once.'
  )
  num_episodes: schema.Positive = setting(5, 'Number of episodes.')
  env_processes: bool = setting(
    True, 'Step environments in processes of their own.'
  )
  trust: list[str] | None = setting(None, references.HELP)


def visualize(
  logdir: str,
  outdir: str,
  num_agents: int,
  num_episodes: int,
  checkpoint: str | None = None,
  env_processes: bool = True,
  trust: references.Trust = references.NOTHING,
) -> list[str]:
  """Play episodes with the mean actions of a policy, and write videos.

  Args:
    logdir: Folder of the run.
    outdir: Folder for the videos and `episodes.jsonl`.
    num_agents: Number of environments that play at once.
    num_episodes: Number of episodes.
    checkpoint: Name of a checkpoint; the newest one by default.
    env_processes: Whether to step environments in processes of their own.
    trust: `agents.run.references.Trust` in what the run may name.

  Returns:
    Paths of the videos, one per episode; fewer if the user asks to stop.

  Raises:
    UsageError: If there is no run or no checkpoint.
  """
  outdir = os.path.expanduser(outdir)
  episodes = play(
    logdir, outdir, num_agents, num_episodes, checkpoint, env_processes, trust
  )
  return [os.path.join(outdir, x['video']) for x in episodes]


def play(
  logdir: str,
  outdir: str,
  num_agents: int,
  num_episodes: int,
  checkpoint: str | None = None,
  env_processes: bool = True,
  trust: references.Trust = references.NOTHING,
) -> list[dict]:
  """Do what `visualize` does, for callers that want the scores, too.

  Args:
    logdir: See `visualize`; also the other arguments.

  Returns:
    List of dicts with `video` (a name), `return` and `length` of the episodes.

  Raises:
    UsageError: If there is no run or no checkpoint.
  """
  from agents import utility
  from agents.tools.tf1 import tf

  logdir, config = runs.load(logdir, trust)
  _check_checkpoint(logdir, checkpoint)
  per_agent = math.ceil(num_episodes / num_agents)
  with config.unlocked:
    config.num_agents = num_agents
    config.num_episodes = per_agent
  tf.reset_default_graph()
  with tf.device('/cpu:0'), graph_errors.unwrapped():
    batch_env = utility.define_batch_env(
      [
        functools.partial(_create_environment, config, outdir, number)
        for number in range(1, num_agents + 1)
      ],
      num_agents,
      env_processes,
    )
    try:
      graph = utility.define_simulation_graph(
        batch_env, config.algorithm, config
      )
      loop = _define_loop(
        graph, per_agent * num_agents * (config.max_length + 1)
      )
      return _play(
        loop, find_variables(graph), logdir, outdir, checkpoint, num_episodes
      )
    finally:
      batch_env.close()


def main(argv: Sequence[str] | None = None) -> None:
  """Play as the command line says.

  Args:
    argv: List of arguments; those of the process by default.

  Raises:
    UsageError: If something is wrong with the arguments.
    StopRequested: If the user asks to stop.
  """
  args = flags.parse('python -m agents.visualize_ppo', __doc__, Flags, argv)
  if not args.logdir:
    raise errors.UsageError(
      'You must specify a logdir: give --logdir with the folder of a run.'
    )
  trust = references.parse(args.trust)
  logdir, config = runs.load(args.logdir, trust)
  _check_checkpoint(logdir, args.checkpoint)
  opengl = isinstance(config.env, str) and adapters.renders_with_opengl(
    config.env
  )
  if opengl and not args.env_processes:
    raise errors.UsageError(
      f'{config.env} renders with OpenGL, which crashes in the process of '
      'TensorFlow; leave --noenv_processes away.'
    )
  outdir = os.path.expanduser(args.outdir or os.path.join(logdir, 'videos'))
  files.check_writable(outdir)
  with stopping.handle_signals():
    scores = []
    for episode in play(
      logdir,
      outdir,
      args.num_agents,
      args.num_episodes,
      args.checkpoint,
      args.env_processes,
      trust,
    ):
      scores.append(episode['return'])
      print(
        f'Score {episode["return"]:.2f}, {episode["length"]} steps, '
        f'{os.path.join(outdir, episode["video"])}',
        flush=True,
      )
    if scores:
      mean = sum(scores) / len(scores)
      print(f'Mean score {mean:.2f} of {len(scores)} episodes.')
    stopping.check()


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(argv))


def _create_environment(config, outdir, number=1):
  """Environment with the wrappers of the original that records videos."""
  from agents import environments
  from agents.tools import wrappers

  env = environments.make(config.env, 'rgb_array')
  env = wrappers.LimitDuration(env, config.max_length)
  env = wrappers.RecordEpisodes(
    env, outdir, f'agent{number}-episode', config.num_episodes
  )
  env = wrappers.RangeNormalize(env)
  env = wrappers.ClipAction(env)
  return wrappers.CacheSpaces(wrappers.ConvertTo32Bit(env))


def _define_loop(graph, eval_steps):
  """Loop of one evaluation phase that stores nothing."""
  from agents import tools

  loop = tools.Loop(
    None,
    graph.step,
    graph.should_log,
    graph.do_report,
    graph.force_reset,
  )
  loop.add_phase(
    'eval',
    graph.done,
    graph.score,
    graph.summary,
    eval_steps,
    report_every=eval_steps,
    log_every=None,
    checkpoint_every=None,
    feed={graph.is_training: False},
  )
  return loop


def find_variables(graph: Any) -> list:
  """Find the variables to restore for playing.

  The others may have other names or shapes, such as the slots of an optimiser.
  The step of the training would end the loop before it begins.

  Args:
    graph: Object of `agents.utility.define_simulation_graph`.
  """
  from agents.tools.tf1 import tf

  # Own algorithms need not tell what only training reads.
  unread = list(getattr(graph.algo, 'training_variables', ()))
  names = {x.name for x in [graph.step, *unread]}
  return [
    x
    for x in tf.global_variables()
    if x.name not in names and '_temporary' not in x.name
  ]


def _play(loop, variables, logdir, outdir, checkpoint, num_episodes):
  """Run the loop until enough episodes are over; returns their dicts."""
  from agents import utility
  from agents.run import saver
  from agents.tools.tf1 import tf

  report = os.path.join(outdir, 'episodes.jsonl')
  episodes: list[dict[str, Any]] = []

  def read():
    """Return what other processes have appended."""
    return log.read_json(report) if os.path.exists(report) else []

  earlier = len(read())

  def finished():
    episodes[:] = read()[earlier:]
    return len(episodes) >= num_episodes or stopping.requested()

  loop.should_stop = finished
  with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    utility.initialize_variables(
      sess, saver.Saver(variables), logdir, checkpoint, resume=True
    )
    for _ in loop.run(sess, None):
      pass
  return episodes[:num_episodes]


def _check_checkpoint(logdir, checkpoint):
  if checkpoint:
    path = os.path.join(logdir, checkpoint + '.index')
    if not os.path.exists(path):
      raise errors.UsageError(
        f'There is no checkpoint {checkpoint} in {logdir}.'
      )
  elif not runs.last_step(logdir):
    raise errors.UsageError(
      f'There is no checkpoint in {logdir} yet. One is written every minute '
      'of training and at its end.'
    )


if __name__ == '__main__':
  sys.exit(run())

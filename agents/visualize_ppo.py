"""Play episodes with a trained PPO agent and record videos.

Example:

  python -m agents.visualize_ppo --logdir=~/logdir --outdir=~/videos

Prints the return of each episode. Needs only the folder of the run, which may
have been moved.
"""

import functools
import math
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from agents import runs, utility
from agents.envs import adapters, window
from agents.run import (
  entry,
  errors,
  files,
  flags,
  log,
  references,
  schema,
  stopping,
)
from agents.run.schema import setting
from agents.tools import graph_errors

# Variables that only training needs, and means of the scores.
_NOT_PLAYED = r'_temporary|^(mean_score|mean_length|streaming_mean(_\d+)?)/'


class Flags(schema.Settings):
  """Declaration of the flags."""

  logdir: str | None = setting(
    None, 'Folder of the run, or a folder that contains a single run.'
  )
  outdir: str | None = setting(
    None, 'Folder for the videos. By default, videos in the folder of the run.'
  )
  checkpoint: str | None = setting(
    None,
    'Checkpoint, such as model.ckpt-48000 or best. By default, the newest.',
  )
  num_agents: schema.Positive = setting(
    1, 'Number of environments to step in parallel.'
  )
  num_episodes: schema.Positive = setting(5, 'Number of episodes to play.')
  env_processes: bool = setting(
    True, 'Step the environments in separate processes.'
  )
  seed: int | None = setting(
    None, 'Random seed of the environments and actions.'
  )
  render: bool = setting(
    False, 'Also show the episodes in windows, one per environment.'
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
  seed: int | None = None,
  render: bool = False,
) -> list[dict[str, Any]]:
  """Play episodes with the mean actions of a policy, and write videos.

  Args:
    logdir: Folder of the run.
    outdir: Folder for the videos and `episodes.jsonl`.
    num_agents: Number of environments that play at once.
    num_episodes: Number of episodes.
    checkpoint: Name of a checkpoint, or `best`; the newest one by default.
    env_processes: Whether to step environments in processes of their own.
    trust: `agents.run.references.Trust` in what the run may name.
    seed: For environments and actions; the first of several environments gets
      this one, the second the next, and so on.
    render: Whether to show the episodes in windows, too, at their own speed.

  Returns:
    List of dicts with `video` (a path), `return` and `length`, one per
    episode; fewer if the user asks to stop.

  Raises:
    UsageError: If there is no run or no checkpoint, or nowhere to show it.
  """
  from agents.tools.tf1 import tf

  if render:
    window.check()
  outdir = os.path.expanduser(outdir)
  logdir, config = runs.load(logdir, trust)
  _check_checkpoint(logdir, checkpoint)
  per_agent = math.ceil(num_episodes / num_agents)
  with config.unlocked:
    config.update(num_agents=num_agents, num_episodes=per_agent, seed=seed)
  constructors = [
    functools.partial(_create_environment, config, outdir, number, render)
    for number in range(1, num_agents + 1)
  ]
  tf.reset_default_graph()
  tf.set_random_seed(seed)
  with tf.device('/cpu:0'), graph_errors.unwrapped():
    env = utility.define_batch_env(constructors, num_agents, env_processes)
    try:
      graph = utility.define_simulation_graph(env, config.algorithm, config)
      steps = per_agent * num_agents * (config.max_length + 1)
      loop = _define_loop(graph, steps)
      variables = find_variables(graph)
      return _play(loop, variables, logdir, outdir, checkpoint, num_episodes)
    finally:
      env.close()


def main(_: Any) -> None:
  """Play as `tf.app.flags.FLAGS` say; to be called by `tf.app.run`.

  Raises:
    UsageError: If something is wrong with the flags.
    StopRequested: If the user asks to stop.
  """
  from agents.tools.tf1 import tf

  FLAGS = flags.read(tf.app.flags.FLAGS, Flags)
  logdir, config = _find_run(FLAGS)
  opengl = isinstance(config.env, str) and adapters.renders_with_opengl(
    config.env
  )
  if opengl and not FLAGS.env_processes:
    raise errors.UsageError(
      f'{config.env} renders with OpenGL, which crashes in the process of '
      'TensorFlow; leave --noenv_processes away.'
    )
  outdir = os.path.expanduser(FLAGS.outdir or os.path.join(logdir, 'videos'))
  files.check_writable(outdir)
  with stopping.handle_signals():
    scores = []
    for episode in visualize(
      logdir,
      outdir,
      FLAGS.num_agents,
      FLAGS.num_episodes,
      FLAGS.checkpoint,
      FLAGS.env_processes,
      references.parse(FLAGS.trust),
      FLAGS.seed,
      FLAGS.render,
    ):
      scores.append(episode['return'])
      print(
        f'Return {episode["return"]:.2f}, {episode["length"]} environment '
        f'steps, {episode["video"]}',
        flush=True,
      )
    if scores:
      mean = sum(scores) / len(scores)
      print(f'Mean return {mean:.2f} of {len(scores)} episodes.')
    stopping.check()


def _find_run(FLAGS):
  """Folder and configuration of the run that the flags stand for."""
  if not FLAGS.logdir:
    raise errors.UsageError(
      'You must specify a logdir: give --logdir with the folder of a run.'
    )
  if FLAGS.render:
    window.check()
  logdir, config = runs.load(FLAGS.logdir, references.parse(FLAGS.trust))
  _check_checkpoint(logdir, FLAGS.checkpoint)
  return logdir, config


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code.

  Args:
    argv: List of arguments; those of the process by default.
  """
  name, text = 'python -m agents.visualize_ppo', __doc__ or ''
  return entry.run(
    lambda: flags.run(name, text, Flags, main, argv, (), _find_run)
  )


def _create_environment(config, outdir, number=1, render=False):
  """Environment with the wrappers of the original that records videos."""
  from agents.envs import continuous
  from agents.tools import wrappers

  env = continuous.make(config.env, 'rgb_array')
  if config.seed is not None:
    env.seed(config.seed + number - 1)
  env = wrappers.LimitDuration(env, config.max_length)
  env = wrappers.RecordEpisodes(
    env, outdir, f'agent{number}-episode', config.num_episodes, render
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
  The step of the training would end the loop before it begins. Saved agents
  hold no means of scores.

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
    if x.name not in names and not re.search(_NOT_PLAYED, x.name)
  ]


def _play(loop, variables, logdir, outdir, checkpoint, num_episodes):
  """Run the loop until enough episodes are over; returns their dicts."""
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
  return [
    {**x, 'video': os.path.join(outdir, x['video'])}
    for x in episodes[:num_episodes]
  ]


def _check_checkpoint(logdir, checkpoint):
  if checkpoint:
    path = utility.latest_checkpoint(logdir, checkpoint)
    if not path or not os.path.exists(path + '.index'):
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

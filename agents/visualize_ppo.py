"""Play episodes with a trained PPO agent and record videos.

Example:

  ppo-visualize --logdir=~/logdir --outdir=~/videos

Prints the return of each episode. Needs only the log directory of the run,
which may have been moved.
"""

import functools
import itertools
import math
import os
import sys
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents import tools, trained
from agents.envs import batch_env, batches, recorder, registry, video, window
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
from agents.tools import continuous, wrappers
from agents.tools.lazy_tf import tf

FLAGS = tf.app.flags.FLAGS


def define_flags(flag_values: Any = FLAGS) -> None:
  """Define the flags of `ppo-visualize`."""
  into = {'flag_values': flag_values}
  tf.app.flags.DEFINE_string(
    'logdir',
    None,
    'Log directory of the run, or a folder with a single run.',
    **into,
  )
  tf.app.flags.DEFINE_string(
    'outdir',
    None,
    'Folder for the videos. By default, videos in the log directory.',
    **into,
  )
  tf.app.flags.DEFINE_string(
    'checkpoint',
    None,
    'Checkpoint, such as model.ckpt-48000 or best. By default, the newest.',
    **into,
  )
  tf.app.flags.DEFINE_integer(
    'num_agents', 1, 'Number of environments to step in parallel.', **into
  )
  tf.app.flags.DEFINE_integer(
    'num_episodes', 5, 'Number of episodes to play.', **into
  )
  tf.app.flags.DEFINE_boolean(
    'env_processes',
    True,
    'Step the environments in separate processes.',
    **into,
  )
  tf.app.flags.DEFINE_integer(
    'seed', None, 'Random seed of the environments.', **into
  )
  tf.app.flags.DEFINE_boolean(
    'render',
    False,
    'Also show the episodes in windows, one per environment.',
    **into,
  )
  tf.app.flags.DEFINE_multi_string('trust', None, references.HELP, **into)
  for name in ('num_agents', 'num_episodes'):
    flags.limit(name, schema.Positive, **into)
  flags.limit('seed', schema.Seed, **into)


def visualize(
  logdir: str,
  outdir: str | None,
  num_agents: int,
  num_episodes: int,
  checkpoint: str | None = None,
  env_processes: bool = True,
  trust: references.Trusted = None,
  seed: int | None = None,
  render: bool = False,
) -> list[dict[str, Any]]:
  """Play episodes with the mean actions of a policy, and write videos.

  Args:
    logdir: Log directory of the run.
    outdir: Folder for the videos and `episodes.jsonl`; `videos` in the log
      directory by default.
    num_agents: Number of environments to play at once.
    num_episodes: Number of episodes.
    checkpoint: Name of a checkpoint, or `best`; the newest one by default.
    env_processes: Whether to step environments in separate processes.
    trust: Your modules that the run may import: a name or a list of names.
    seed: Seed of the environments; environment i uses this plus i.
    render: Whether to also show the episodes in windows, in real time.

  Returns:
    List of dicts with `video` (a path), `return` and `length`, one per
    episode; fewer if the user asks to stop.

  Raises:
    UsageError: If there is no run or no checkpoint, or videos cannot be shown
      or written.
  """
  if render and num_agents > 1 and not env_processes:
    raise errors.UsageError(
      f'{num_agents} environments in one process cannot have windows of their '
      'own; omit --noenv_processes, or give --num_agents=1.'
    )
  if render:
    window.check()
  with trained.load(logdir, checkpoint, trust) as agent:
    config = agent.config
    print(f'Playing {config.logdir} with {agent.checkpoint}.', flush=True)
    if registry.renders_with_opengl(config.env) and not env_processes:
      raise errors.UsageError(
        f'{config.env} renders with OpenGL, which crashes in a process with '
        'TensorFlow; omit --noenv_processes.'
      )
    outdir = files.expand(outdir or os.path.join(config.logdir, 'videos'))
    files.check_writable(outdir)
    per_agent = math.ceil(num_episodes / num_agents)
    ending = video.preferred_ending()
    constructors = [
      functools.partial(
        _record,
        config.env,
        config.env_settings,
        config.max_length,
        None if seed is None else seed + index,
        [
          os.path.join(outdir, f'agent{index + 1}-episode-{number + 1}{ending}')
          for number in range(per_agent)
        ],
        f'agent{index + 1}' if render else None,
      )
      for index in range(num_agents)
    ]
    # A process has one window.
    workers = num_agents if render else None
    env = batch_env.VectorEnv(constructors, workers if env_processes else 0)
    episodes: list[dict[str, Any]] = []
    try:
      for episode in itertools.islice(_play(agent, env), num_episodes):
        episodes.append(episode)
        name = os.path.basename(episode['video'])
        line = {'checkpoint': agent.checkpoint, **episode, 'video': name}
        log.append_json(os.path.join(outdir, 'episodes.jsonl'), line)
    finally:
      env.close()
  return episodes


def _record(env, settings, max_length, seed, paths, title=None):
  """Environment of the training that records videos."""
  created = continuous.make(env, 'rgb_array', seed, settings)
  created = wrappers.LimitDuration(created, max_length)
  return recorder.RecordEpisodes(created, paths, title)


def _create_environment(config, outdir):
  """Environment of a configuration that records, wrapped as in the original.

  This and `_define_loop` are for programs of users; `visualize` needs no graph
  of episodes.
  """
  os.makedirs(outdir, exist_ok=True)
  ending = video.preferred_ending()
  # Environments in several processes must not write the same file.
  names = (f'episode-{uuid.uuid4().hex}{ending}' for _ in itertools.count())
  paths = (os.path.join(outdir, name) for name in names)
  env = _record(config.env, config.env_settings, config.max_length, None, paths)
  env = wrappers.ClipAction(wrappers.RangeNormalize(env))
  return wrappers.CacheSpaces(wrappers.ConvertTo32Bit(env))


def _define_loop(graph, eval_steps):
  """Loop of one evaluation that writes no summaries."""
  loop = tools.Loop(
    None, graph.step, graph.should_log, graph.do_report, graph.force_reset
  )
  loop.add_phase(
    'eval',
    graph.done,
    graph.score,
    graph.summary,
    eval_steps,
    report_every=eval_steps,
    feed={graph.is_training: False},
  )
  return loop


def _play(agent, env):
  """Yield the record of each episode until the user asks to stop."""
  observations, states, starts = env.each('reset'), None, None
  while not stopping.requested():
    batch = batches.stack(observations, agent.observation_space)
    actions, states = agent.predict(batch, states, starts, True)
    steps = env.each('step', actions)
    observations, _, starts, infos = map(list, zip(*steps))
    for index in np.nonzero(starts)[0].tolist():
      # Environments may use this name, too.
      episode = infos[index].get('episode')
      if isinstance(episode, dict) and 'video' in episode:
        yield episode
      observations[index] = env[index].reset()


def main(_: Any) -> None:
  """Play according to `tf.app.flags.FLAGS`; called by `tf.app.run`.

  Raises:
    UsageError: If a flag is not valid.
    StopRequested: If the user asks to stop.
  """
  given = flags.read(define_flags, FLAGS).flag_values_dict()
  if not given['logdir']:
    raise errors.UsageError(
      'Flag --logdir is missing; give the log directory of a run.'
    )
  with stopping.handle_signals():
    episodes = visualize(**given)
    for episode in episodes:
      print(
        f'Return {episode["return"]:.2f}, {episode["length"]} environment '
        f'steps, {episode["video"]}',
        flush=True,
      )
    if episodes:
      mean = sum(x['return'] for x in episodes) / len(episodes)
      print(f'Mean return {mean:.2f} of {len(episodes)} episodes.')
    stopping.check(stopping.START_OVER)


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code.

  Args:
    argv: List of arguments; those of the process by default.
  """

  def start():
    with flags.parsed('ppo-visualize', __doc__, define_flags, argv) as words:
      tf.app.run(main, words)

  return entry.run(start)


if __name__ == '__main__':
  sys.exit(run())

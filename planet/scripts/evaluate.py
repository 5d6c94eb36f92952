"""Evaluate a trained PlaNet agent.

Example:

  planet-evaluate --logdir ~/logdir --episodes 10 --video

Prints the return of each episode, the mean and the standard deviation, and the
metrics of environments that have some, which the run keeps in
evaluations.jsonl. --video also writes a contact sheet, a PNG next to the video.
"""

import argparse
import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.envs import guard, video
from agents.run import (
  entry,
  errors,
  files,
  folder,
  log,
  progress,
  references,
  stopping,
)
from agents.tools.wrappers import STEPS_OF_ACTION
from planet.scripts import renamed, tasks
from planet.tools.attr_dict import AttrDict

if TYPE_CHECKING:
  from planet.trained import Restored

_SHEET_ROWS = 10


def main(args: Any) -> None:
  """Play the episodes, print the returns, and write video and contact sheet.

  Args:
    args: Namespace of `parse_args`.

  Raises:
    UsageError: If there is no run or no checkpoint, or the video cannot be
      written.
  """
  # Before TensorFlow is imported.
  folder.find_single(args.logdir)
  from planet import trained

  restored = trained.restore(
    args.logdir, args.checkpoint, args.params, args.seed, args.trust
  )
  filename = _choose_video(args.video, restored)
  for sentence in renamed.explain(args.params, [renamed.TASK]):
    print(sentence)
  print(f'Playing with {restored.path}.')
  scores, videos, scaled = [], [], ''
  metrics: dict[str, list] = {}
  # Frames of all tasks need one size.
  overview = bool(filename) and tasks.are_alike(restored.config.tasks)
  try:
    for episode in play(restored, args.episodes, overview):
      if episode.metrics and 'unscaled return' in episode.metrics:
        scaled = ' (scaled)'
      print(
        f'Episode {episode.number} of {episode.task}: '
        f'return {episode.score:.1f}{scaled}, '
        f'{episode.env_steps} environment steps.{_describe(episode.metrics)}',
        flush=True,
      )
      if episode.metrics:
        metrics.setdefault(episode.task, []).append(episode.metrics)
      scores.append(episode.score)
      if filename:
        videos.append(annotate(episode))
  finally:
    if scores:
      print(
        f'Mean return {np.mean(scores):.1f}{scaled}, standard deviation '
        f'{np.std(scores):.1f}, {len(scores)} episodes.'
      )
    if metrics:
      _report(metrics, restored)
    if filename and videos:
      frames = itertools.chain.from_iterable(videos)
      video.write_video(filename, frames, args.fps)
      sheet = os.path.splitext(filename)[0] + '.png'
      video.write_png(sheet, video.contact_sheet(videos[:_SHEET_ROWS]))
      print(f'Wrote {filename} and {sheet}.')


def play(
  restored: 'Restored', episodes: int, overview: bool = False
) -> Iterator[Any]:
  """Play episodes of all tasks of a run.

  Args:
    restored: Run, see `planet.trained.restore`.
    episodes: Number of episodes per task.
    overview: Whether to keep pictures from above, if an environment has them.

  Yields:
    Results of `play_once`, with the `number` of the episode, starting at 1, the
    `action_repeat` of its task, and the `metrics` of an environment that
    declares its settings, a dict or None.
  """
  from planet.training import playing

  path, config, shapes = restored
  with contextlib.closing(progress.Progress()) as bar:
    for name, simulation in config.test_collects.items():
      task = simulation.task
      with (
        playing.PlaNet(path, config, shapes, name) as agent,
        contextlib.closing(agent.make_training_env()) as env,
      ):
        for number in range(1, episodes + 1):
          bar.start_phase(f'Episode {number}', task.max_length, 0, 0)
          repeat = task.action_repeat
          episode = play_once(agent, env, bar, overview, repeat, number=number)
          more = {'metrics': env.metrics if _has_metrics(task, env) else None}
          if config.observation == 'both':
            more['observations'] = agent.split_images(episode.observations)
          yield AttrDict({**episode, **more})


def play_once(
  agent: Any,
  env: Any,
  bar: progress.Progress,
  overview: bool = False,
  action_repeat: int = 1,
  **facts: Any,
) -> Any:
  """Play and record one episode.

  Starts over if a step fails, that is, if its info contains `step_error`.

  Args:
    agent: Agent.
    env: Training environment, with the interface of this project.
    bar: Progress display.
    overview: Whether to keep the `overview` of the environment, if it has one.
    action_repeat: Environment steps per action.
    **facts: Further entries of the result.

  Returns:
    AttrDict of `task`, `score`, `rewards` float32 [time], `actions` float32
    [time, size], `observations` [time, ...], each after the action with the
    same index, `maps`, uint8 [time, height, width, 3] or None, `captions`, the
    texts in the infos, `action_repeat`, and `env_steps`, the number of
    environment steps, less for an action that the end of the episode cuts.

  Raises:
    StopRequested: If the user asks to stop.
  """
  steps: list[tuple] | None = None
  while steps is None:
    steps = _try_episode(agent, env, bar, overview, action_repeat)
  observations, actions, rewards, maps, captions, counts = zip(*steps)
  return AttrDict(
    task=agent.task.name,
    score=sum(map(float, rewards)),
    rewards=np.stack(rewards),
    actions=np.stack(actions),
    observations=np.stack(observations),
    maps=None if maps[-1] is None else np.stack(maps),
    captions=captions,
    action_repeat=action_repeat,
    env_steps=sum(counts),
    **facts,
  )


def _try_episode(agent, env, bar, overview, action_repeat):
  """Return what each step of an episode shows, None if one fails."""
  agent.reset()
  observ, done = env.reset(), False
  steps: list[tuple] = []
  while not done:
    stopping.check(stopping.START_OVER)
    action, _ = agent.predict(observ, deterministic=True)
    observ, reward, done, info = env.step(action)
    if guard.has_failed(info):
      return None
    above = getattr(env, 'overview', None) if overview else None
    caption = info.get('caption')
    count = info.get(STEPS_OF_ACTION, action_repeat)
    steps.append((observ, action, np.float32(reward), above, caption, count))
    bar.update(1, len(steps))
  return steps


def _has_metrics(task, env):
  # Environments of users may call other things by this name.
  return bool(task.declared) and hasattr(env, 'metrics')


def _describe(metrics):
  """Return metrics as text, '' if there are none."""
  parts = (
    f'{name} {"-" if value is None else f"{value:.4g}"}'
    for name, value in (metrics or {}).items()
  )
  return f' {", ".join(parts)}.' if metrics else ''


def _report(metrics, restored):
  """Print and store the metrics of all episodes, by task."""
  logdir, checkpoint = os.path.split(restored.path)
  for task in restored.config.tasks:
    episodes = metrics.get(task.name)
    if episodes:
      together = task.declared.summarize(episodes)
      print(f'All episodes of {task.name}:{_describe(together)}')
      row = {'checkpoint': checkpoint, 'task': task.name, 'all': together}
      path = os.path.join(logdir, 'evaluations.jsonl')
      log.append_json(path, {**row, 'episodes': episodes})


def annotate(episode: Any) -> np.ndarray:
  """Enlarge the frames of an episode and print step and return below.

  Args:
    episode: AttrDict with `observations` uint8 [time, height, width, channels],
      `rewards` [time], `number` and `action_repeat`. `maps` uint8 [time,
      height, width, 3], if given, appear beside the frames, with rewards
      below, and `captions` [time], if given, in another line.

  Returns:
    uint8 array [time, larger height, larger width, 3], of the same size for all
    maps.
  """
  results = []
  maps, texts = episode.get('maps'), episode.get('captions') or []
  returns = np.cumsum(episode.rewards)
  for index, frame in enumerate(video.to_rgb(episode.observations)):
    frame = video.resize(frame)
    step = (index + 1) * episode.action_repeat
    lines = [
      f'episode {episode.number}  step {step}  return {returns[index]:.1f}'
    ]
    if maps is not None:
      # Maps of different towns need one size.
      side = max(len(frame), *maps[index].shape[:2])
      above = _center(maps[index], side, side)
      frame = _center(frame, side, frame.shape[1])
      frame = np.concatenate([frame, above], 1)
      lines[0] += f'  reward {episode.rewards[index]:.2f}'
    if any(texts):
      lines.append(str(texts[index] or ''))
    for line in lines:
      frame = video.caption(frame, line)
    results.append(frame)
  return np.stack(results)


def _center(image, *size):
  """Pad the image to [height, width] by repeating its edges."""
  missing = np.subtract(size, image.shape[:2])
  pads = [(x // 2, x - x // 2) for x in missing]
  return np.pad(image, (*pads, (0, 0)), mode='edge')


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  from planet.scripts import train

  parser = entry.Parser(prog='planet-evaluate', description=__doc__)
  add = parser.add_argument
  add('--logdir', required=True, help='folder of the run or experiment')
  add('--episodes', type='positive', default=10, help='episodes per task')
  text = 'write a video (.mp4 or .gif); default: in videos/ of the run'
  add('--video', nargs='?', const='', metavar='FILE', help=text)
  add('--fps', type='rate', default=20, help='frames per second of the video')
  text = 'checkpoint, such as model.ckpt-1000 or best; default: the newest'
  add('--checkpoint', default=None, help=text)
  text = 'seed of environments and planner'
  add('--seed', type='seed', default=None, help=text)
  text = 'parameters of the planner or environment as a YAML mapping'
  add('--params', default='{}', help=text)
  add('--trust', action='append', metavar='MODULE', help=references.HELP)
  args = parser.parse_args(argv)
  args.params = train.parse_params(args.params)
  return args


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""

  def work():
    args = parse_args(argv)
    with stopping.handle_signals('Stopping'):
      main(args)

  return entry.run(work)


def _choose_video(given, restored):
  """Return the path of the video, by default in the run; None for no video."""
  if given is None:
    return None
  if restored.config.observation == 'vector':
    raise errors.UsageError(
      'This run was trained on vectors and has no images to show; evaluate it '
      'without --video.'
    )
  logdir, name = os.path.split(restored.path)
  filename = files.expand(given) or os.path.join(
    logdir, 'videos', name + video.preferred_ending()
  )
  video.check_ending(filename)
  files.check_creatable_file(filename)
  return filename


if __name__ == '__main__':
  sys.exit(run())

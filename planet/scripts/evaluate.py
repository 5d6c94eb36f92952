"""Evaluate a trained PlaNet agent.

Example:

  planet-evaluate --logdir ~/logdir --episodes 10 --video

Prints the return of each episode, the mean and the standard deviation. --video
also writes a contact sheet, a PNG next to the video.
"""

import argparse
import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from agents.envs import video
from agents.run import (
  entry,
  errors,
  files,
  folder,
  progress,
  references,
  stopping,
)

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
  from planet.scripts import renamed, tasks

  trust = references.parse(args.trust)
  restored = trained.restore(
    args.logdir, args.checkpoint, args.params, args.seed, trust
  )
  path, config, _ = restored
  filename = _choose_video(args.video, path, config)
  for sentence in renamed.explain(args.params, [renamed.TASK]):
    print(sentence)
  print(f'Playing with {path}.')
  scores, videos = [], []
  # Frames of all tasks need one size.
  overview = bool(filename) and tasks.are_alike(config.tasks)
  try:
    for episode in play(restored, args.episodes, overview):
      steps = len(episode.rewards) * episode.action_repeat
      print(
        f'Episode {episode.number} of {episode.task}: '
        f'return {episode.score:.1f}, {steps} environment steps.',
        flush=True,
      )
      scores.append(episode.score)
      if filename:
        videos.append(annotate(episode))
  finally:
    if scores:
      print(
        f'Mean return {np.mean(scores):.1f}, standard deviation '
        f'{np.std(scores):.1f}, {len(scores)} episodes.'
      )
    if filename and videos:
      frames = itertools.chain.from_iterable(videos)
      video.write_video(filename, frames, args.fps)
      sheet = os.path.splitext(filename)[0] + '.png'
      video.write_png(sheet, video.contact_sheet(videos[:_SHEET_ROWS]))
      print(f'Wrote {filename} and {sheet}.')


def play(
  restored: tuple[Any, ...], episodes: int, overview: bool = False
) -> Iterator[Any]:
  """Play episodes of all tasks of a run.

  Args:
    restored: Result of `planet.trained.restore`.
    episodes: Number of episodes per task.
    overview: Whether to keep pictures from above, if an environment has them.

  Yields:
    Results of `play_once`, with the `number` of the episode, starting at 1, and
    the `action_repeat` of its task.
  """
  from planet.training import playing

  path, config, shapes = restored
  with contextlib.closing(progress.Progress()) as bar:
    for name, simulation in config.test_collects.items():
      task = simulation.task
      with (
        playing.PlaNet(path, config, shapes, name) as agent,
        contextlib.closing(agent._make_env()) as env,
      ):
        for number in range(1, episodes + 1):
          bar.start_phase(f'Episode {number}', task.max_length, 0, 0)
          episode = play_once(agent, env, bar, overview)
          episode.number, episode.action_repeat = number, task.action_repeat
          yield episode


def play_once(
  agent: Any, env: Any, bar: progress.Progress, overview: bool = False
) -> Any:
  """Play and record one episode.

  Starts over if a step fails, that is, if its info contains `step_error`.

  Args:
    agent: Agent.
    env: Training environment, with the interface of this project.
    bar: Progress display.
    overview: Whether to keep the `overview` of the environment, if it has one.

  Returns:
    AttrDict of `task`, `score`, `rewards` float32 [time], `actions` float32
    [time, size], `observations` [time, ...], each after the action with the
    same index, `maps`, uint8 [time, height, width, 3] or None, and `captions`,
    the texts in the infos.

  Raises:
    StopRequested: If the user asks to stop.
  """
  from planet.tools.attr_dict import AttrDict

  agent.reset()
  observ, done = env.reset(), False
  steps: list[tuple] = []
  while not done:
    stopping.check()
    action, _ = agent.predict(observ, deterministic=True)
    observ, reward, done, info = env.step(action)
    if info.get('step_error'):
      return play_once(agent, env, bar, overview)
    above = getattr(env, 'overview', None) if overview else None
    caption = info.get('caption')
    steps.append((observ, action, np.float32(reward), above, caption))
    bar.update(1, len(steps))
  observations, actions, rewards, maps, captions = zip(*steps)
  return AttrDict(
    task=agent.task.name,
    score=sum(map(float, rewards)),
    rewards=np.stack(rewards),
    actions=np.stack(actions),
    observations=np.stack(observations),
    maps=None if above is None else np.stack(maps),
    captions=captions,
    _unlocked=True,
  )


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
      lines.append(texts[index] or '')
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
  from planet.scripts import parameters, train

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
  args.params = parameters.check(train.parse_params(args.params))
  return args


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""

  def work():
    args = parse_args(argv)
    with stopping.handle_signals('Stopping; press Ctrl-C again to exit.'):
      main(args)

  return entry.run(work)


def _choose_video(given, checkpoint_path, config):
  """Return the path of the video, by default in the run; None for no video."""
  if given is None:
    return None
  if config.observation != 'image':
    raise errors.UsageError(
      'This run was trained on vectors and has no images to show; evaluate it '
      'without --video.'
    )
  logdir, name = os.path.split(checkpoint_path)
  filename = os.path.expanduser(given) or os.path.join(
    logdir, 'videos', name + video.preferred_ending()
  )
  video.check_ending(filename)
  files.check_creatable(os.path.dirname(os.path.abspath(filename)))
  return filename


if __name__ == '__main__':
  sys.exit(run())

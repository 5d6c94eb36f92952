"""Collect random episodes before training and planned ones during it."""

import collections
import datetime
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agents.envs.external import Async
from agents.tools.tf1 import tf
from planet import control
from planet.envs import constructors
from planet.envs.seeding import derive_seed, seeded_constructor
from planet.tools import compiled, loaders
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind
from planet.training import episode_folder
from planet.training.ranks import Ranks

if TYPE_CHECKING:
  from planet.scripts.configs import Config


def collect_initial_episodes(
  config: AttrDict, ranks: Ranks | None = None
) -> None:
  """Play random episodes until every task has its initial episodes.

  Existing episodes count; the first collection of a folder claims them first.
  Renames those of them that are damaged.

  Args:
    config: AttrDict with `random_collects`, `isolate_envs` and `seed`.
    ranks: Ranks that share the work; only this process by default.
  """
  ranks = ranks or Ranks()
  items = sorted(config.random_collects.items())
  needed: collections.Counter[str] = collections.Counter()
  for _, params in items:
    needed[params.save_episode_dir] += params.num_episodes
  watches = {folder: loaders.Watch(folder) for folder in needed}
  for watch in watches.values():
    watch.find_new()
  # Count once, before any rank plays.
  found = None
  if ranks.is_first:
    found = {x: episode_folder.count(x, most) for x, most in needed.items()}
  existing, began = ranks.comm.bcast((found, datetime.datetime.now()))
  first_rank = 0
  for name, params in items:
    folder = params.save_episode_dir
    reused = min(existing[folder], params.num_episodes)
    existing[folder] -= reused
    missing = params.num_episodes - reused
    if not missing:
      continue
    if ranks.is_first:
      print(f'Collecting {missing} initial episodes ({name}).')
    first, count = ranks.share(missing, first_rank)
    first_rank += missing
    seed = derive_seed(config.get('seed'), name, reused + first)
    ranks.run(
      functools.partial(_play_randomly, config, params, count, seed, began)
    )
    for filename in watches[folder].find_new():
      episode_folder.log_recorded(filename)


def _play_randomly(config, params, count, seed, began):
  """Play some of the initial episodes of a task."""
  if not count:
    return
  control.random_episodes(
    functools.partial(
      isolated_env, params.task.env_ctor, config.isolate_envs, seed
    ),
    count,
    params.save_episode_dir,
    params.task.action_repeat,
    began,
    seed,
  )


class Episodes:
  """Episodes that a collection plays with the planner, as operations.

  Args:
    config: Configuration of the run.
    graph: AttrDict of the model.
    cleanups: List to which functions to call at the end are added.
    gif_summary: Whether to add an animation to the summaries.

  Attributes:
    summaries: String tensors of the simulations so far.
    scores: Mean returns of the simulations so far, float32 tensors.
  """

  def __init__(
    self,
    config: 'Config | AttrDict',
    graph: AttrDict,
    cleanups: list[Callable],
    gif_summary: bool = False,
  ) -> None:
    self._config = config
    self._graph = graph
    self._cleanups = cleanups
    self._gif_summary = gif_summary
    self.summaries: list[tf.Tensor] = []
    self.scores: list[tf.Tensor] = []

  def play_if(
    self, due: tf.Tensor, name: str, simulation: AttrDict, scope: str
  ) -> None:
    """Define an operation that plays the episodes of a simulation if due.

    Simulations run in parallel. Without isolation, which may mean a single
    environment, each waits for the one before.

    Args:
      due: Bool tensor.
      name: Name of the simulation.
      simulation: See `planet.scripts.configs`.
      scope: Name scope of both branches.
    """
    if self.summaries and self._config.isolate_envs == 'none':
      with tf.control_dependencies(self.summaries):
        due = tf.identity(due)
    summary, score = tf.cond(
      due,
      lambda: simulate_episodes(
        self._config,
        simulation,
        self._graph,
        self._cleanups,
        expensive_summaries=False,
        gif_summary=self._gif_summary,
        name=name,
      ),
      lambda: (tf.constant(''), tf.constant(0.0)),
      name=scope,
    )
    self.summaries.append(summary)
    self.scores.append(score)


def simulate_episodes(
  config: 'Config | AttrDict',
  params: AttrDict,
  graph: AttrDict,
  cleanups: list[Callable],
  expensive_summaries: bool,
  gif_summary: bool,
  name: str,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Define an operation that plays an episode with the planner.

  With the arguments of the original.

  Args:
    config: Configuration of the run.
    params: AttrDict of the simulation, see `planet.scripts.configs`.
    graph: AttrDict of the model.
    cleanups: List to which functions to call at the end are added.
    expensive_summaries: Whether to add histograms and an image strip.
    gif_summary: Whether to add an animation.
    name: Name of the simulation.

  Returns:
    Tuple of a summary and the mean return.
  """
  summary, return_, cleanup = control.simulate(
    graph.step,
    recording_constructor(config, params),
    params.task.max_length,
    params.num_agents,
    agent_config(config, params, graph, name),
    config.isolate_envs,
    expensive_summaries,
    gif_summary,
    name=name,
  )
  cleanups.append(cleanup)
  return summary, return_


def agent_config(
  config: 'Config | AttrDict', params: AttrDict, graph: AttrDict, name: str
) -> AttrDict:
  """Define the configuration of `MPCAgent` for a simulation."""
  seed = derive_seed(config.get('seed'), name, config.get('first_step'))
  if seed is not None:
    # The seed belongs to the first environment on this rank.
    seed += params.get('first_agent', 0)
  planner = bind(params.planner, graph=graph)
  return AttrDict(
    cell=graph.cell,
    encoder=graph.encoder,
    planner=compiled.planner(planner) if config.get('xla') else planner,
    objective=bind(params.objective, graph=graph),
    exploration=params.exploration,
    preprocess_fn=graph.get('preprocess', config.preprocess_fn),
    observation=config.observation,
    warm_start=params.horizon if params.warm_start else None,
    seed=seed,
  )


def recording_constructor(
  config: 'Config | AttrDict', params: AttrDict
) -> Callable:
  """Return the constructor of the environments of a simulation."""
  return functools.partial(
    constructors.recording_env,
    params.task.env_ctor,
    params.save_episode_dir,
    tuple(config.observation_keys),
    params.task.action_repeat,
    config.get('began'),
  )


def isolated_env(
  env_ctor: Callable, isolate_envs: str, seed: int | None = None
) -> Any:
  """Create a seeded environment, optionally in its own thread or process.

  Args:
    env_ctor: Function without arguments that returns an environment.
    isolate_envs: `none`, `thread` or `process`.
    seed: Seed of the environment and of its action space.
  """
  env_ctor = functools.partial(seeded_constructor, env_ctor, seed)
  if isolate_envs == 'none':
    return env_ctor()
  env = Async(env_ctor, isolate_envs)
  if seed is not None:
    # Actions are sampled in this process.
    env.action_space.seed(seed)
  return env

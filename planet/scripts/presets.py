"""Presets: parameters that `--config` sets and `--params` overrides."""

from typing import Any

from agents.run import errors

PRESETS: dict[str, dict[str, Any]] = {
  # The settings of the original, almost those of the paper.
  'default': {},
  # Tiny networks and short phases, to see whether a change runs.
  'debug': dict(
    action_repeat=50,
    num_seed_episodes=1,
    train_steps=10,
    test_steps=10,
    max_steps=500,
    train_collects=[dict(after=10, every=10)],
    test_collects=[dict(after=10, every=10)],
    model_size=10,
    state_size=5,
    num_layers=1,
    num_units=10,
    batch_shape=[5, 10],
    loader_every=5,
    planner_amount=5,
    planner_topk=2,
    planner_iterations=2,
    checkpoint_every=100,
  ),
  # For two cores; not the settings of the original. Its network is in NETWORKS.
  'cpu': dict(
    tasks=['cartpole_balance'],
    batch_shape=[8, 32],
    model_size=128,
    num_units=200,
    num_layers=2,
    loader_every=100,
    train_steps=3840,
    test_steps=8,
    # Play two episodes in parallel, so that both cores plan.
    collect_every=1280,
    train_collects=[dict(name='main'), dict(name='second')],
    checkpoint_every=80,
    # Twice the paper's, because the pole falls slowly.
    planner_horizon=24,
    planner_amount=150,
    planner_topk=15,
    planner_iterations=4,
    max_steps=200000,
  ),
  # Learns to drive offline on two cores; not the settings of the original.
  'carla_cpu': dict(
    tasks=['carla'],
    env=dict(
      image_size=32,
      backend='offline',
      map='loop',
      vehicles=0,
      pedestrians=0,
      weather=0,
      # Slow enough to stay on the road for a while.
      random_throttle=[-0.1, 0.5],
      # Leaving the road costs 15 to 30 times as much as driving earns.
      reward_scale=0.2,
    ),
    action_repeat=2,
    # A single image does not show the speed.
    state_diagnostics=True,
    gradient_heads=['image', 'reward', 'state'],
    free_nats=1.0,
    batch_shape=[12, 20],
    model_size=128,
    num_units=200,
    num_layers=2,
    num_seed_episodes=10,
    loader_every=12,
    train_steps=1440,
    test_steps=12,
    collect_every=180,
    checkpoint_every=12,
    train_action_noise=0.2,
    planner_horizon=10,
    planner_amount=150,
    planner_topk=15,
    planner_iterations=4,
    # Sixteen epochs.
    max_steps=23232,
  ),
  # Learns to drive on a CARLA server, with the model of the paper on a GPU.
  'carla_server': dict(
    tasks=['carla'],
    env=dict(
      backend='server',
      map='Town02',
      max_length=1000,
      # The autopilot collects the first episodes; the range counts without it.
      expert='autopilot',
      random_throttle=[-0.2, 1.0],
      # As in carla_cpu.
      reward_scale=0.2,
    ),
    action_repeat=2,
    state_diagnostics=True,
    gradient_heads=['image', 'reward', 'state'],
    num_seed_episodes=10,
  ),
}

# `parameters.choose_defaults` adds what depends on the task. Episodes of tasks
# with the setting `max_length` are short, others have 1000 steps.
SHORT_EPISODES: dict[str, dict[str, Any]] = {'debug': dict(action_repeat=1)}
# Done within a minute with an environment of one's own.
OWN_ENVIRONMENTS: dict[str, dict[str, Any]] = {'debug': dict(max_steps=100)}

# Narrow networks by image size, where available.
NETWORKS = {
  'cpu': {64: 'conv_small'},
  'carla_cpu': {32: 'conv_32_small', 64: 'conv_small'},
}


def find(name: str) -> dict[str, Any]:
  """Return the parameters of a preset.

  Raises:
    UsageError: If it is unknown.
  """
  if name not in PRESETS:
    raise errors.UsageError(
      f'Configuration {name!r} is unknown. {errors.suggest(name, PRESETS)} '
      'Own ones are functions, module:function, see docs/parts.md.'
    )
  return PRESETS[name]

"""HER: deep deterministic policy gradients with hindsight relabelling."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'DDPG': 'baselines_her.ddpg:DDPG',
    'learn': 'baselines_her.her:learn',
    'make_sample_her_transitions': (
      'baselines_her.her_sampler:make_sample_her_transitions'
    ),
    'ReplayBuffer': 'baselines_her.replay_buffer:ReplayBuffer',
    'RolloutWorker': 'baselines_her.rollout:RolloutWorker',
  },
)

"""HER: deep deterministic policy gradients with hindsight relabelling."""

import os

from agents.tools import lazy

# Products of single rows gain nothing from threads, which get into each
# other's way. Counts if NumPy is not loaded yet.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

lazy.export(
  __name__,
  {
    'DDPG': 'baselines_her.ddpg:DDPG',
    'evaluate': 'agents.evaluation:evaluate',
    'load': 'baselines_her.trained:load',
    'learn': 'baselines_her.her:learn',
    'make_sample_her_transitions': (
      'baselines_her.her_sampler:make_sample_her_transitions'
    ),
    'ReplayBuffer': 'baselines_her.replay_buffer:ReplayBuffer',
    'RolloutWorker': 'baselines_her.rollout:RolloutWorker',
    'train': 'baselines_her.library:train',
  },
)

from agents.evaluation import evaluate as evaluate
from baselines_her.ddpg import DDPG as DDPG
from baselines_her.her import learn as learn
from baselines_her.her_sampler import (
  make_sample_her_transitions as make_sample_her_transitions,
)
from baselines_her.library import train as train
from baselines_her.replay_buffer import ReplayBuffer as ReplayBuffer
from baselines_her.rollout import RolloutWorker as RolloutWorker
from baselines_her.trained import load as load

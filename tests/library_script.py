"""What a user does in one process: systems, after and beside each other.

Called with an empty folder and the names of the systems. It leaves trainings
open; their work has to be saved when it ends, by itself.
"""

import importlib
import pathlib
import sys

import gymnasium
import numpy as np

import agents
import baselines_her
import planet
from agents import networks
from baselines_her import actor_critic
from planet.control import planning


# Parts that only this program knows.
def policy(*args, **kwargs):
  return networks.feed_forward_gaussian(*args, **kwargs)


class Networks(actor_critic.ActorCritic):
  pass


def plan(*args, **kwargs):
  return planning.cross_entropy_method(*args, **kwargs)


PPO = dict(
  network=policy,
  num_agents=2,
  update_every=2,
  eval_episodes=2,
  max_length=20,
  update_epochs=2,
  policy_layers=[8],
  value_layers=[8],
)
HER = dict(
  network=Networks,
  n_cycles=1,
  n_batches=2,
  batch_size=16,
  hidden=8,
  n_test_rollouts=1,
)
PLANET = dict(
  planner=plan,
  train_steps=4,
  test_steps=4,
  batch_shape=[2, 3],
  action_repeat=40,
  image_size=32,
  planner_iterations=1,
  planner_horizon=2,
  model_size=8,
  num_layers=1,
)
# The same order of arguments everywhere: environment, folder, steps.
SYSTEMS = {
  agents: ('Pendulum-v1', 120, dict(params=PPO)),
  baselines_her: ('FetchReach-v1', 200, dict(params=HER)),
  planet: ('Pendulum-v1', 3200, dict(config='debug', params=PLANET)),
}
KEYS = {'logdir', 'epoch', 'environment_steps', 'episodes', 'updates', 'return'}
KEYS |= {'test_return', 'seconds'}


def train(system, folder, seed=0, steps=None):
  env, usual, options = SYSTEMS[system]
  return system.train(env, str(folder), steps or usual, seed=seed, **options)


def numbers(records):
  """Records without what differs between two runs of the same training."""
  ignored = 'logdir', 'seconds'
  return [{k: x[k] for k in x if k not in ignored} for x in records]


def check(system, folder):
  """Leave, continue, load, predict and evaluate; return the records."""
  records = []
  for record in train(system, folder):
    records.append(record)
    break
  records += train(system, folder)
  assert [x['epoch'] for x in records] == list(range(1, len(records) + 1))
  assert len(records) > 1 and KEYS <= {k for x in records for k in x}, records
  assert len({x['logdir'] for x in records}) == 1
  assert records[-1]['environment_steps'] <= SYSTEMS[system][1]
  assert list(train(system, folder)) == [], 'nothing to do'

  with system.load(records[0]['logdir'], trust='__main__') as agent:
    env = agent.make_env()
    observation, info = env.reset(seed=1)
    assert isinstance(env, gymnasium.Env) and isinstance(info, dict)
    action, _ = agent.predict(observation, deterministic=True)
    assert agent.action_space.contains(action)
    _, reward, terminated, truncated, _ = env.step(action)
    assert np.isfinite(reward) and not terminated and not truncated
    batch = [observation] * 3
    if isinstance(observation, dict):
      batch = {k: np.stack([x[k] for x in batch]) for k in observation}
    actions, states = agent.predict(
      np.stack(batch) if isinstance(batch, list) else batch,
      episode_start=np.ones(3, bool),
      deterministic=True,
    )
    assert np.shape(actions) == (3, *agent.action_space.shape)
    result = system.evaluate(agent, episodes=1, seed=0)
    same = system.evaluate(agent, env, episodes=1, seed=0)
    assert len(result.returns) == 1 and np.isfinite(same.mean)
    env.close()
  return records


def main():
  base = pathlib.Path(sys.argv[1])
  systems = [importlib.import_module(x) for x in sys.argv[2:]]
  alone = {x: check(x, base / x.__name__) for x in systems}
  # Beside each other, and with another seed of the same system.
  others = [train(x, base / f'{x.__name__}-other', seed=1) for x in systems]
  beside = {x: train(x, base / f'{x.__name__}-beside') for x in systems}
  first = {x: next(beside[x]) for x in systems}
  for system, training in zip(systems, others):
    assert numbers([first[system]]) == numbers(alone[system][:1]), system
    assert numbers([first[system]]) != numbers([next(training)]), system
  print('The end.')


if __name__ == '__main__':
  main()

"""Environment and actions of the recording in `planet/wrappers`."""

from tests import golden, scripted_envs

DATA = golden.load('planet/wrappers')


def make(**kwargs):
  """Scripted environment with the recorded rewards and action bounds."""
  settings = dict(
    length=int(DATA['in/episode_length']),
    rewards=DATA['in/rewards'],
    low=DATA['in/action_low'],
    high=DATA['in/action_high'],
  )
  return scripted_envs.ScriptedEnv(**{**settings, **kwargs})


def play(env, actions=DATA['in/actions']):
  """Step until done; returns observations, rewards and done flags."""
  observs, rewards, dones = [env.reset()], [], []
  for action in actions:
    observ, reward, done, _ = env.step(action)
    observs.append(observ)
    rewards.append(reward)
    dones.append(done)
    if done:
      break
  return observs, rewards, dones

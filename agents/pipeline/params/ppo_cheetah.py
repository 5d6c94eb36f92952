"""PPO on PyBullet's half cheetah, with the settings of `agents.configs`."""

from agents.pipeline.params import ppo_pendulum

cpanel = ppo_pendulum.cpanel.copy()
cpanel.update(number_epochs=1000, epoch_size=1, config='pybullet_cheetah')
gen_params = ppo_pendulum.gen_params

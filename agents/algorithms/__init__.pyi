from agents.algorithms.ppo import PPO as PPO

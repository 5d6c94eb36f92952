"""Log files of returns and lengths of episodes, under baselines' name."""

from agents.envs.episode_log import Monitor, begin_anew

__all__ = ['Monitor', 'begin_anew']

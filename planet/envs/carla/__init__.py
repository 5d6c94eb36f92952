"""Driving in CARLA, with or without a server.

An environment like any other: it imports nothing of PlaNet, which has a row of
`TABLE` and presets for it.

- `settings`, `env_config`: settings of users, choice of the world; those of
  `CarlaEnv`.
- `task_env`, `env`: `Driving-v0` and drivers of first episodes; `CarlaEnv`,
  which plays episodes.
- `scenarios`, `trips`, `planner`: contents of an episode, starts and goals,
  routes and commands. The original scenarios list positions by spawn points of
  CARLA 0.8; types of routes replace them.
- `rewards`, `termination`, `measure`, `score`: rewards, ends of episodes,
  measurements, the score of CARLA's leaderboard.
- `sensors`, `birdseye`: cameras, depth scales, class colors; the
  picture from above.
- `lanes`, `roads`, `places`: lanes, maps, types of locations.
- `backend`: interface of a world. `offline` is one in Python. `server` talks to
  CARLA: `isolated` (process of the client), `world`, `actors`, `sensors`;
  `connect` (finds and reserves servers), `launch`, `guard` (ends them).
- `policies`, `episode_log`, `smoke`: scripted drivers, reports, smoke test.
"""

import gymnasium

gymnasium.register('Driving-v0', 'planet.envs.carla.task_env:Driving')

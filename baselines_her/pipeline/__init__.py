"""HER in the pipeline of `agents.pipeline`: adapters without mathematics."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'HERAgent': 'baselines_her.pipeline.agent:HERAgent',
    'HERExplorer': 'baselines_her.pipeline.explorer:HERExplorer',
    'HERMemory': 'baselines_her.pipeline.memory:HERMemory',
  },
)

"""HER in the pipeline of `agents.pipeline`: adapters without algorithms."""

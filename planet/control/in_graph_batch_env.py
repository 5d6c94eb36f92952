"""Batch of environments in the graph, where PlaNet has it."""

from agents.tools.in_graph_batch_env import InGraphBatchEnv as InGraphBatchEnv

"""Streaming mean, where PlaNet has it."""

from agents.tools.streaming_mean import StreamingMean as StreamingMean

"""A server of CARLA's wire protocol, which the real client connects to.

It stands in for CARLA 0.9.16, which cannot run here. It keeps actors, ticks,
moves cars along, and sends what sensors would; it renders nothing and knows no
physics. Requires `msgpack`. See `handle.Server` for its use in tests.
"""

"""World of a CARLA server: find or start it, and drive one vehicle there."""

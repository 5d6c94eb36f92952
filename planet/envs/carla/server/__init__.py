"""Backend on a CARLA server: find or start one and drive one vehicle."""

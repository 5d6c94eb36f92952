"""Programs that use all systems."""

"""What surrounds every run: folders, settings, signals, logs."""

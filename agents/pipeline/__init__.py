"""Sessions, runners, explorers, memories and agents: one run pipeline."""

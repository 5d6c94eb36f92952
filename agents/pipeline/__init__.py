"""Pipeline of sessions, runners, explorers, memories and agents."""

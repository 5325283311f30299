"""A tiny policy that is trained through a server, on a task where the cheat pays without Proctor."""

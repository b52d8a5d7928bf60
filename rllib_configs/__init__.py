"""How RLlib sees the world: configs, modules, runners, learners; learning within one task."""

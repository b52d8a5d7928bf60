"""The nouns that every other package speaks of: jobs, clusters, schedules, seeds, errors."""

"""A policy beside a live site, or in charge of its queue: what it reads, decides and does."""

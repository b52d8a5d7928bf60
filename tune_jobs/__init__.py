"""Commands, sweeps, tracking, figures and benchmarks: what a user of metasched starts."""

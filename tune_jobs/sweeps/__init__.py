"""Sweeps: many runs on Ray Tune, over objectives and hyperparameters.

definition      what a sweep is: YAML, typed
spaces          the values that settings may take
searched        what searches work on: options, a sweep as they see it, points
searches        random, grid, asha, pbt, optuna: what each allows and needs
points          which trials there are: settings, seeds, whole configs
folder          what is on disk
records         what trials report, written down, and what a resumed sweep goes on with
trial           the training of one trial, in a process of its own; writes nothing
schedulers      who is stopped early (ASHA), who copies whom (PBT)
searchers       who says what to try next (Optuna)
callback        takes what trials report, and writes it down
progress_table  the live table on the terminal
sweeping        starts it all, and stops it
results         the table, the best config
launching       the command
"""

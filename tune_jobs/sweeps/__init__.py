"""Sweeps: many runs on Ray Tune, over objectives and hyperparameters.

definition      what a sweep is: YAML, typed
searches        random, grid, asha, pbt, optuna: what each allows and what Ray Tune runs it with
searched        what of a sweep they read
per_task        searches over several tasks: a bracket and a study of each
population      pbt that goes on where a sweep is resumed or a trial fails
points          which trials there are: settings, seeds, whole configs, CPUs
folder          what is on disk, and what a resumed sweep goes on with
trial           the training of one trial, in a process of its own; writes nothing
callback        takes what trials report, and writes it down
progress_table  the table on the terminal
tuning          one go of Ray Tune, and what it does not outlive by itself
sweeping        starts it all, and stops it
results         the table, the best config
launching       the command
"""

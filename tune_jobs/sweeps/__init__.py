"""Sweeps: many runs on Ray Tune, over objectives and hyperparameters.

definition  what a sweep is: YAML, typed
spaces      the values that a setting may take
points      which trials there are: settings, seeds, whole configs
folder      what is on disk, and what of it a resumed sweep goes on with
trial       the training of one trial, in a process of its own; writes nothing
schedulers  who is stopped early (ASHA), who copies whom (PBT)
searchers   who says what to try next (Optuna)
desk        takes what trials report, and writes it down
sweeping    starts it all, and stops it
results     the table, the best config
"""

"""Job logs of Slurm: exports of ``sacct --parsable2``, and what ``jobcomp/filetxt`` writes."""

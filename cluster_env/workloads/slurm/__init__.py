"""Job logs of Slurm: exports of ``sacct --parsable2``, and what ``jobcomp/filetxt`` writes."""

from cluster_env.workloads.slurm.reading import JOBCOMP, SACCT, looks_like, read_slurm_jobs

__all__ = ["JOBCOMP", "SACCT", "looks_like", "read_slurm_jobs"]

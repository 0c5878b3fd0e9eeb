"""The base of every controller: informers, a work queue, a writer, a lease, metrics. Knows neither Slurm nor node sets."""

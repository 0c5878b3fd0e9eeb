"""What a cluster becomes: the text of Slurm's files and their peers, a topic a file, made from the models alone."""

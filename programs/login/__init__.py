"""A login node: sshd, sackd, the limits of each user, and what sessions show of the cluster."""

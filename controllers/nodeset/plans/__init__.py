"""What to do for a node set, a part a file. Pure: no clock, network or memory. `plan` puts them together, `writes` carries them out."""

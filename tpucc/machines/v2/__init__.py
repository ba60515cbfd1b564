"""TPU v2's core (Norrie et al., IEEE Micro 2021): its tables, each in a file, and the machine of these tables; and how long work takes its
units, without instructions."""

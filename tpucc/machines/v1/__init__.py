"""The machine of the TPU paper (Jouppi et al., ISCA 2017): its memories, units, instructions, functions and formats."""

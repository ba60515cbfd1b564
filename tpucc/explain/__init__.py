"""A timed program in sentences and tables: where time and accuracy are lost, how two programs differ, sweeps, the tables of the paper."""

; Fails `puzzle 1: move a row`: it moves row 0.
    read_host_memory host=x.0 ub=0 rows=1
    write_host_memory ub=0 host=y.0 rows=1
    halt

    read_host_memory host=x.0+{{row}} ub=0 rows=1
    write_host_memory ub=0 host=y.0 rows=1
    halt

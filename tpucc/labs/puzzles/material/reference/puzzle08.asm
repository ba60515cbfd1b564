    read_weights tile=0
    read_weights tile=1
    read_host_memory host=x.0 ub=0 rows=4
    set_configuration block=0
    synchronize engine=matrix wait=host
    matrix_multiply ub=0 acc=0 rows=4, switch
    read_weights tile=2
    matrix_multiply ub=0 acc=4 rows=4, switch
    matrix_multiply ub=0 acc=8 rows=4, switch
    synchronize engine=activation wait=matrix
    activate acc=0 ub=4 inner=12
    synchronize engine=host wait=activation
    write_host_memory ub=4 host=y.0 rows=12
    halt

    read_weights tile=0
    read_weights tile=1
    read_host_memory host=x.0 ub=0 rows={{window}}
    set_configuration block=0
    synchronize engine=matrix wait=host
    convolve ub=0 ub_stride={{stride}} acc=0 inner=4, switch
    read_weights tile=2
    convolve ub=1 ub_stride={{stride}} acc=0 inner=4, switch, accumulate
    convolve ub=2 ub_stride={{stride}} acc=0 inner=4, switch, accumulate
    synchronize engine=activation wait=matrix
    activate acc=0 ub=0 inner=4
    synchronize engine=host wait=activation
    write_host_memory ub=0 host=y.0 rows=4
    halt

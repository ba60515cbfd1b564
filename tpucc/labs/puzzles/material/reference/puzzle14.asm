    read_host_memory host=x.0 ub=0 rows=2
    set_configuration block=0
    synchronize engine=activation wait=host
    vector function={{function}} a=0 a_stride=0 b=1 b_stride=0 ub=2 inner=6
    synchronize engine=host wait=activation
    write_host_memory ub=2 host=y.0 rows=6
    halt

    read_host_memory host=a.0 ub=0 rows=2
    set_configuration block=0
    synchronize engine=activation wait=host
    vector function={{function}} a=0 b=1 ub=0 inner=1
    synchronize engine=host wait=activation
    write_host_memory ub=0 host=spare rows=1
    read_host_memory host=c.0 ub=0 rows=2
    synchronize engine=activation wait=host
    vector function={{function}} a=0 b=1 ub=0 inner=1
    synchronize engine=host wait=activation
    read_host_memory host=spare ub=1 rows=1
    synchronize engine=activation wait=host
    vector function=multiply a=0 b=1 ub=0 inner=1
    synchronize engine=host wait=activation
    write_host_memory ub=0 host=y.0 rows=1
    halt

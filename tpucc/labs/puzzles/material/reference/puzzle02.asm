    read_host_memory host=a.0 ub=0 rows={{rows2}}
    set_configuration block=0
    synchronize engine=activation wait=host
    vector function={{function}} a=0 b={{rows}} ub=0 inner={{rows}}
    synchronize engine=host wait=activation
    write_host_memory ub=0 host=y.0 rows={{rows}}
    halt

; dx = dz @ turned w, dw = turned x @ dz, with dz = dy where y > 0. x comes and is transposed while dx is computed; dx leaves
; while dw is.
{{gradient.stays}}
.resident t.0   start={{gradient.free}}  rows={{gradient.depth}}
.resident t.1   start={{gradient.second}}  rows={{gradient.depth}}
.expression 0 "select(a > 0.0, b, 0.0)"

    load hbm=0 y=0 rows={{gradient.start[x.0]}}
    synchronize engine=vector wait=memory
    synchronize engine=weights wait=memory
    vector function=of_ab expression=0 a=y.0 b=dy.0 y=dy.0 inner={{gradient.two_rows}}

    load hbm=x.0 y=x.0 rows={{gradient.two_rows}}
    synchronize engine=lanes wait=memory

    synchronize engine=matrix wait=vector
    push_weights a=w.0 rows=128 lanes=128, turned
    matrix_multiply a=dy.0 y=dx.0 rows={{gradient.rows}}, switch
    push_weights a=w.1 rows=128 lanes={{gradient.last_columns}}, turned
    matrix_multiply a=dy.1 y=dx.0 rows={{gradient.rows}}, switch, accumulate
    push_weights a=w.0+128 rows={{gradient.last_depth}} lanes=128, turned
    matrix_multiply a=dy.0 y=dx.1 rows={{gradient.rows}}, switch
    push_weights a=w.1+128 rows={{gradient.last_depth}} lanes={{gradient.last_columns}}, turned
    matrix_multiply a=dy.1 y=dx.1 rows={{gradient.rows}}, switch, accumulate
    synchronize engine=memory wait=matrix
    store a=dx.0 hbm=dx.0 rows={{gradient.two_rows}}

    transpose a=x.0 rows=128 y=t.0 lanes=128
    transpose a=x.1 rows=128 y=t.0+128 lanes={{gradient.last_depth}}
    synchronize engine=weights wait=vector
    synchronize engine=matrix wait=lanes
    transpose a=x.0+128 rows={{gradient.last_rows}} y=t.1 lanes=128
    transpose a=x.1+128 rows={{gradient.last_rows}} y=t.1+128 lanes={{gradient.last_depth}}
    push_weights a=dy.0 rows=128 lanes=128
    matrix_multiply a=t.0 y=dw.0 rows={{gradient.depth}}, switch
    synchronize engine=matrix wait=lanes
    push_weights a=dy.0+128 rows={{gradient.last_rows}} lanes=128
    matrix_multiply a=t.1 y=dw.0 rows={{gradient.depth}}, switch, accumulate
    push_weights a=dy.1 rows=128 lanes={{gradient.last_columns}}
    matrix_multiply a=t.0 y=dw.1 rows={{gradient.depth}}, switch
    push_weights a=dy.1+128 rows={{gradient.last_rows}} lanes={{gradient.last_columns}}
    matrix_multiply a=t.1 y=dw.1 rows={{gradient.depth}}, switch, accumulate
    synchronize engine=memory wait=matrix
    store a=dw.0 hbm=dw.0 rows={{gradient.two_depths}}
    halt

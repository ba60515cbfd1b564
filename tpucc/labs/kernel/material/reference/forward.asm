; y = relu(x @ w + b). All but the last pass of x comes in one transfer; that one, while the passes before it are multiplied.
{{forward.stays}}
.expression 0 "max(a + b, 0.0)"

    load hbm=0 y=0 rows={{forward.start[x.2]}}
    synchronize engine=weights wait=memory
    synchronize engine=matrix wait=memory
    synchronize engine=vector wait=memory
    load hbm=x.2 y=x.2 rows={{forward.rows}}

    push_weights a=w.0 rows=128 lanes=128
    matrix_multiply a=x.0 y=y.0 rows={{forward.rows}}, switch
    push_weights a=w.0+128 rows=128 lanes=128
    matrix_multiply a=x.1 y=y.0 rows={{forward.rows}}, switch, accumulate
    push_weights a=w.0+256 rows={{forward.last_depth}} lanes=128
    synchronize engine=matrix wait=memory
    matrix_multiply a=x.2 y=y.0 rows={{forward.rows}}, switch, accumulate
    synchronize engine=vector wait=matrix
    vector function=of_ab expression=0 a=y.0 b=b.0 b_stride=0 y=y.0 inner={{forward.rows}}
    synchronize engine=memory wait=vector
    store a=y.0 hbm=y.0 rows={{forward.rows}}

    push_weights a=w.1 rows=128 lanes={{forward.last_columns}}
    matrix_multiply a=x.0 y=y.1 rows={{forward.rows}}, switch
    push_weights a=w.1+128 rows=128 lanes={{forward.last_columns}}
    matrix_multiply a=x.1 y=y.1 rows={{forward.rows}}, switch, accumulate
    push_weights a=w.1+256 rows={{forward.last_depth}} lanes={{forward.last_columns}}
    matrix_multiply a=x.2 y=y.1 rows={{forward.rows}}, switch, accumulate
    synchronize engine=vector wait=matrix
    vector function=of_ab expression=0 a=y.1 b=b.1 b_stride=0 y=y.1 inner={{forward.rows}}
    synchronize engine=memory wait=vector
    store a=y.1 hbm=y.1 rows={{forward.rows}}
    halt

"""Training as passes: from the graph of a loss to the graph of one step, (state, examples) -> (loss, state).

Each pass is one file, and each graph between them is an ordinary operator graph, which prints, reads back and has its picture:

1. `states`: weights that are trained become states.
2. `divide-examples`: the graph of the whole batch becomes that of one part of it, for several cores or microbatches.
3. `batch-statistics`: batch normalisation uses the mean and variance of its batch, and moves the averages that inference uses.
4. `draw-dropout`: dropout becomes a product with a mask of random numbers.
5. `logits`: the cross entropy of a softmax becomes one operator.
6. `differentiate`: the gradient of the loss with respect to each state, by the operators' rules.
7. `all-reduce`: the mean over the parts of the batch.
8. `optimizer`: each state after the step.

The outputs are named after nodes: `loss`; `gradient NODE` between 6 and 8; `next NODE` for the state NODE after the step.
"""

"""The front end: from the source text of a model to its operator graph.

Reading a source makes its syntax tree. `layout` turns newlines and blanks into tokens, and lark's parser, made of the grammar `model.lark`,
calls a method of `build` for each rule. The tree's nodes are in `ast`: what was written, and where. Where the parser stops, `scan` looks at
the statement around that place, `syntax_errors` says what is wrong, and `parse` goes on with the next statement.

Elaborating the tree makes the graph. `elaborate` runs the model's statements: a static value is computed at once (`static`), an operator
on tensors becomes a node (`apply`), a loop is unrolled (`statements`), and a `def` is inlined at each call (`calls`). The origin of a node
has the span of its expression and the spans of the calls that led there.

An error is a `Problem`, raised where it is found and reported where evaluation can go on. From there the value is `POISON`, and what needs
the value raises `Unknown`, without a second message. So one run reports every independent error once.
"""

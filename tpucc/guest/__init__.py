"""The sandbox: code of the user's runs in a child process, which is asked and answers.

Passes and stages of files, submissions of labs and the playground's server use this one mechanism:

- `child.py` starts the process, asks it, waits no longer than a call may take, and ends it. What happened is a value or a
  `plugins.failures.Failed`, which says it in words.
- `start.py` and `serving.py` are the child's side: a loop that loads files and calls their functions.
- `values.py` has what crosses the border. Arguments go as pickles, from us to the child. Answers come as MessagePack, and are counted
  before any value is made: nothing that a child says is executed here.
- `limits.py` bounds time, memory, files and processes, and has the kernel refuse what no limit bounds.
- `jails.py` hides the grader's files from a child, where somebody else's code runs. Code of the user's own needs none.
- `files.py` makes passes and stages of Python files; `inside.py` is what the child does for them.
"""

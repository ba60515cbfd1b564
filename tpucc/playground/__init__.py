"""The playground's work: requests of a page as JSON, and answers as JSON.

`requests` says what may be asked. `engine` answers, and knows of no page; `making` compiles for it, and `comparing` compares. In the page
it runs in Pyodide, in a worker of the browser. `server` hands the same page out on the loopback interface and answers with this Python, in
a child process that can be ended (`child`).
"""

HEARD = b"+"
"""What a line of the child process begins with that is no answer, but a text that the visitor's code has printed."""

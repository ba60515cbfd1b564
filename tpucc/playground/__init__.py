"""The playground's work: requests of a page as JSON, and answers as JSON.

`engine` answers, and knows of no page. In the page it runs in Pyodide, in a worker of the browser. `server` hands the same page out on the
loopback interface and answers with this Python, in a child process that can be ended (`child`).
"""

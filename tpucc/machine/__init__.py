"""What a machine is: memories, units, a queue, instructions and formats, as values. Nothing here knows one machine."""

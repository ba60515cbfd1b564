"""Files of other tools: weight archives, traces."""

"""The passes: one a file, each a frozen dataclass from graph to graph. The order lives in the driver."""

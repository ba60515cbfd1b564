"""Work that is given out task by task: to this process, to others of this machine, or to a Dask cluster."""

"""Our figures beside those of the TPU paper (Jouppi et al., ISCA 2017): what `tpucc paper` prints."""

"""The version of tpucc, which files that tpucc writes name."""

VERSION = "0.27.0"

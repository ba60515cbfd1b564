"""Fails `defaults`: the defaults are those of another term."""


@dataclass(frozen=True)
class Attributes:
    by: int = {{by}} + 1
    axis: int = {{axis}}

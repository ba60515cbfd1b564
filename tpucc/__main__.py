"""The command line, as `tpucc` and as `python -m tpucc`: it imports nothing before an interrupt from the keyboard would be heard."""

import gc


def main() -> None:
    """Runs the command line and exits with its status."""
    try:
        gc.disable()  # importing makes what stays: looking through it finds nothing
        from tpucc.cli.main import main as run

        gc.enable()
        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()

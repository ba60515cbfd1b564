"""The command line, as `tpucc` and as `python -m tpucc`: it imports nothing before an interrupt from the keyboard would be heard."""


def main() -> None:
    """Runs the command line and exits with its status."""
    try:
        from tpucc.cli.main import main as run

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()

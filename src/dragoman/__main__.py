"""`python -m dragoman` is the `dragoman` command."""

from dragoman.cli.main import main

if __name__ == "__main__":
    main()

"""`python -m dragoman` is the `dragoman` command."""

from dragoman.cli.entry import main

if __name__ == "__main__":
    main()

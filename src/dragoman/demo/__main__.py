"""`python -m dragoman.demo`: runs the demo server over stdio."""

from dragoman.demo.server import demo_server

if __name__ == "__main__":
    demo_server().run_stdio()

"""Code that runs inside the sandboxed child process.

It loads a kernel file, runs its wrapper under guards, and sends raw bytes back to the judge.
"""

"""Parent's side of the sandbox: the rights of a child process, the protocol to it, and how it ends."""

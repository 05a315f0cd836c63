"""The contract for kernel files, read without executing them, and the overloads that they serve by derivation."""

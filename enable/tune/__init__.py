"""Make correct kernels faster, by a language model or over the settings that they declare (`enable tune`)."""

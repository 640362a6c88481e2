"""The `cpu` family: generated kernels for the host's CPU, with the same bits as `torch`."""

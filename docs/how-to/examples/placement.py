"""Prints the commands that start one process for each GPU near its memory."""

import sys

import waywiser

found = waywiser.open(sys.argv[1]).placement()
for gpu in found.gpus:
    start = f"CUDA_VISIBLE_DEVICES={gpu.gpu} python serve.py"
    if gpu.basis in ("measured", "system"):
        print(f"{start}  # with numactl --cpunodebind={gpu.node} --membind={gpu.node}")
    else:
        print(f"{start}  # any NUMA node: {gpu.basis}")
for rank in found.of("pair"):
    if rank.is_headline and rank.regime == "bandwidth":
        cost = rank.cost
        print(f"the worst pair of GPUs has {cost.loss:.1%} less bandwidth ({cost.outcome})")

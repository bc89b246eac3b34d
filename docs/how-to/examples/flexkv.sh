# Settings for FlexKV, made by waywiser 0.1.0 from a profile.
# Machine: 4 GPUs (NVIDIA H200), Intel(R) Xeon(R) Processor, driver 580.159.04.
# GB/s are 10^9 bytes per second. Intervals are of the median, with 95 % confidence.
# Use: source FILE before the engine starts. A key of the file in FLEXKV_CONFIG_PATH (use_ce_transfer_h2d) comes before a variable.
# A piece is a block of one layer: tokens per block x KV heads of the GPU x head size x bytes of an element.
# Assumed: Waywiser's kernel is as fast as FlexKV's.

# H2D: kernel: at pieces of 28 KiB it takes no longer than the other; the other takes at most 5.9 times as long as it.
#   37 x 28 KiB: kernel 33.7 GB/s, copy engine 8.91 GB/s
#   585 x 28 KiB: kernel 49.7 GB/s, copy engine 8.7 GB/s
#   2341 x 28 KiB: kernel 50.8 GB/s, copy engine 8.62 GB/s
export FLEXKV_USE_CE_TRANSFER_H2D=0

# D2H: kernel: at pieces of 28 KiB it takes no longer than the other; the other takes at most 5.4 times as long as it.
#   37 x 28 KiB: kernel 34.1 GB/s, copy engine 9.9 GB/s
#   585 x 28 KiB: kernel 50.9 GB/s, copy engine 10.26 GB/s
#   2341 x 28 KiB: kernel 51.9 GB/s, copy engine 9.53 GB/s
export FLEXKV_USE_CE_TRANSFER_D2H=0

# Left out: FLEXKV_TRANSFER_NUM_CTA_H2D: the number of multiprocessors was not varied.
# Left out: FLEXKV_TRANSFER_NUM_CTA_D2H: the number of multiprocessors was not varied.

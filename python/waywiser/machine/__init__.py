"""What the machine is, and what its links could do at best.

    capture -> machine -> bounds

`capture_live` and `load_capture` read, `machine_from` interprets, `bound` gives the peaks.
"""

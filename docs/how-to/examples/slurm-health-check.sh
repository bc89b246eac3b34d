#!/bin/sh
# Slurm's HealthCheckProgram: drains this node if its last night's check failed.
#
#     HealthCheckProgram=/usr/local/sbin/waywiser-health-check
#     HealthCheckInterval=300
#
# It reads the verdict that waywiser-night has written, and measures nothing. Resume the node by hand
# when it is repaired: scontrol update NodeName=NODE State=RESUME.
set -u
verdict=${WAYWISER_NIGHTS:-/var/lib/waywiser}/verdict
[ -r "$verdict" ] || exit 0 # no night yet: a node without a result is for alerts, not for this
read -r code line <"$verdict"
[ "$code" = 1 ] || exit 0
node=${SLURMD_NODENAME:-$(hostname -s)}
# A node that is drained or down already keeps its reason.
[ -z "$(sinfo --noheader --nodes "$node" --states drain,down --format %N)" ] || exit 0
exec scontrol update NodeName="$node" State=DRAIN Reason="waywiser: $line"

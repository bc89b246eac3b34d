#!/bin/sh
# Slurm's Prolog: starts no job on a node whose last night's check failed. Slurm then drains the node
# ("Prolog error") and puts the job back into the queue.
#
#     Prolog=/usr/local/sbin/waywiser-prolog
#
# It reads one file, measures nothing and asks Slurm nothing.
set -u
verdict=${WAYWISER_NIGHTS:-/var/lib/waywiser}/verdict
[ -r "$verdict" ] || exit 0
read -r code line <"$verdict"
[ "$code" = 1 ] || exit 0
echo "waywiser: $line" >&2
exit 1

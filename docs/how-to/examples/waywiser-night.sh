#!/bin/sh
# Surveys this node and checks it against its baselines.
#
#     waywiser-night --baseline   while the node is known to be healthy; three baselines are better
#     waywiser-night              each night; exit codes of waywiser check, 2 if there is no result
#
# WAYWISER is the command if it is not in PATH (of a clone: /path/to/waywiser/.venv/bin/waywiser),
# WAYWISER_NIGHTS is the folder of its profiles, WAYWISER_METRICS that of the textfile collector.
# WAYWISER_DATASET, if it is set, is the folder of the data set of all nodes, which they share.
set -u
waywiser=${WAYWISER:-waywiser}
metrics=${WAYWISER_METRICS:-/var/lib/node_exporter/textfile}
nights=${WAYWISER_NIGHTS:-/var/lib/waywiser}
mkdir -p "$nights" "$metrics" && cd "$nights" || exit 2

record() { # the new profile in the data set; without it the check goes on
    [ -z "${WAYWISER_DATASET:-}" ] && return
    "$waywiser" export . --format parquet -o "$WAYWISER_DATASET" >export.log 2>&1 && return
    echo "waywiser-night: not in the data set: $(tail -n 1 export.log)" >&2
}

end() { # with a code: of the survey and the check, 2 if there is no result
    {
        echo '# HELP waywiser_night_exit_code 0 healthy, 1 failed, 3 not decided, 2 no result.'
        echo '# TYPE waywiser_night_exit_code gauge'
        echo "waywiser_night_exit_code{host=\"$(hostname)\"} $1"
    } >"$metrics/waywiser_night.tmp"
    mv "$metrics/waywiser_night.tmp" "$metrics/waywiser_night.prom"
    # For Slurm: slurm-health-check.sh and slurm-prolog.sh read it. A night without a result clears no
    # failure.
    if [ "$1" != 2 ] || ! grep -q '^1 ' verdict 2>/dev/null; then
        echo "$1 $(head -n 1 check.log 2>/dev/null)" >verdict.tmp && mv verdict.tmp verdict
    fi
    exit "$1"
}

# Another night that is not over keeps its files.
exec 9>lock
flock -n 9 || {
    echo "waywiser-night: another one is running in $nights" >&2
    exit 2
}
kind=night
[ "${1:-}" = --baseline ] && kind=baseline
name=$(date +%F-%H%M%S).wwp
rm -f "$metrics/waywiser.prom" survey-*.wwp check.log # of another night, and what was interrupted
"$waywiser" survey --preset check -o "survey-$name" >survey.log 2>&1
code=$?
if [ $code -ne 0 ]; then
    cat survey.log >&2
    [ $code -eq 1 ] || end 2
    # A GPU does not answer: that is a failed node.
    echo "FAILED $(hostname): $(sed -n 's/^waywiser: error: //p' survey.log)" >check.log
    end 1
fi
if [ "$kind" = baseline ]; then
    # check keeps no baseline of a node that is slow, or was used by others meanwhile.
    XDG_DATA_HOME=$PWD/kept "$waywiser" check "survey-$name" --within 0 --keep >check.log 2>&1
    if [ -z "$(find kept -name '*.wwp' -newer "survey-$name" 2>/dev/null)" ]; then
        mv "survey-$name" "night-$name"
        tail -n 1 check.log >&2
        end 2
    fi
    mv "survey-$name" "baseline-$name" || end 2
    record
    end 0
fi
mv "survey-$name" "night-$name" || end 2
record

set --
for baseline in baseline-*.wwp; do
    [ -e "$baseline" ] && set -- "$@" --baseline "$baseline"
done
if [ $# -eq 0 ]; then
    echo "waywiser-night: no baseline in $nights: run waywiser-night --baseline" >&2
    end 2
fi
"$waywiser" check "night-$name" "$@" --prometheus "$metrics/waywiser.prom" >check.log
code=$?
cat check.log
case $code in
0) end 0 ;;
1) end 1 ;;
3) end 3 ;;
*) end 2 ;;
esac

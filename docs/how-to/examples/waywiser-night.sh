#!/bin/sh
# Surveys this node and checks it against its baseline.
#
#     waywiser-night --baseline   while the node is known to be healthy; three baselines are better
#     waywiser-night              each night; exit codes of waywiser check, 2 if the survey failed
#
# WAYWISER_NIGHTS is the folder of its profiles, WAYWISER_METRICS that of the textfile collector.
set -u
metrics=${WAYWISER_METRICS:-/var/lib/node_exporter/textfile}
nights=${WAYWISER_NIGHTS:-/var/lib/waywiser}
mkdir -p "$nights" "$metrics" && cd "$nights" || exit 2
kind=night
[ "${1:-}" = --baseline ] && kind=baseline
new=$kind-$(date +%F-%H%M%S).wwp

waywiser survey --preset check -o "$new" >survey.log 2>&1
code=$?
{
    echo '# HELP waywiser_survey_exit_code Exit code of the last survey; 0 if it was made.'
    echo '# TYPE waywiser_survey_exit_code gauge'
    echo "waywiser_survey_exit_code{host=\"$(hostname)\"} $code"
} >"$metrics/waywiser_survey.tmp"
mv "$metrics/waywiser_survey.tmp" "$metrics/waywiser_survey.prom"
if [ "$code" -ne 0 ]; then
    rm -f "$metrics/waywiser.prom" # it is about another night
    cat survey.log >&2
    exit 2
fi
[ "$kind" = baseline ] && exit 0

set --
for baseline in baseline-*.wwp; do
    [ -e "$baseline" ] && set -- "$@" --baseline "$baseline"
done
if [ $# -eq 0 ]; then
    echo "waywiser-night: no baseline in $nights: run waywiser-night --baseline" >&2
    exit 2
fi
waywiser check "$new" "$@" --prometheus "$metrics/waywiser.prom"

#!/bin/sh
# Carries out between hosts, as root, what a table of scenarios/cases says; one that was interrupted goes on where it stopped.
#   validate/host_replay/campaign.sh [all-reduces|steps]
# all-reduces: sums by every schedule; ten minutes. steps: training by every plan, and the other collectives; twenty
# minutes. Leaves every repetition in validate/measurements/DAY-host.json or DAY-host-steps.json, the medians in the table
# (so that `foretrain validate` shows them), where rows that other programs carried out stay as they are, and the pictures
# in reports/gallery. FORETRAIN names the program. The machine should have nothing else to do.
set -eu
cd "$(dirname "$0")/../.."
foretrain=${FORETRAIN:-build/foretrain}
day=${DAY:-$(date -u +%F)}
case ${1:-all-reduces} in
all-reduces) measurements=validate/measurements/$day-host.json table=replay ;;
steps) measurements=validate/measurements/$day-host-steps.json table=steps ;;
*) echo "$0: $1 is neither all-reduces nor steps" >&2; exit 2 ;;
esac
cases=scenarios/cases/cases_host_$table.csv
mkdir -p validate/measurements
status=0
"$foretrain" replay --cases "$cases" -o "$measurements" --table "$cases" --bar 10 || status=$?
[ $status -le 1 ] || exit $status
if [ $table = steps ]; then
  pictures=reports/gallery/host-dualpipe.svg
  "$foretrain" plot replay "$measurements" --run own-pipeline4-dualpipe-gpt-200 --streams compute --until 400ms -o $pictures
else
  pictures=reports/gallery/host-replay.svg
  "$foretrain" plot cases "$cases" --where group=host-scaling --x workload.collective.ranks --panel workload.collective.size \
    --curve workload.collective.algorithm,workload.collective.placement,workload.collective.servers -o $pictures
fi
echo "left: $measurements $cases $pictures"
exit $status

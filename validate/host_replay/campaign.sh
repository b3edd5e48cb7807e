#!/bin/sh
# Carries out between hosts, as root, what a table beside this file says; one that was interrupted goes on where it stopped.
#   validate/host_replay/campaign.sh [all-reduces|steps]
# all-reduces: sums by every schedule, and what single messages cost; ten minutes. steps: training by every
# plan, and the other collectives; twenty minutes. Leaves every repetition in validate/measurements/DAY-host.json or
# DAY-host-steps.json, the medians in scenarios/cases (so that `foretrain validate` shows them), and the pictures in
# reports/gallery. FORETRAIN names the program. The machine should have nothing else to do.
set -eu
cd "$(dirname "$0")/../.."
foretrain=${FORETRAIN:-build/foretrain}
day=${DAY:-$(date -u +%F)}
case ${1:-all-reduces} in
all-reduces) measurements=validate/measurements/$day-host.json table=replay cases=campaign more=--probe ;;
steps) measurements=validate/measurements/$day-host-steps.json table=steps cases=steps more= ;;
*) echo "$0: $1 is neither all-reduces nor steps" >&2; exit 2 ;;
esac
table=scenarios/cases/cases_host_$table.csv
mkdir -p validate/measurements
status=0
"$foretrain" replay --cases validate/host_replay/$cases.csv -o "$measurements" --table "$table" --bar 10 $more || status=$?
[ $status -le 1 ] || exit $status
if [ $cases = steps ]; then
  pictures=reports/gallery/host-dualpipe.svg
  "$foretrain" plot replay "$measurements" --run own-pipeline4-dualpipe-gpt-200 --streams compute --until 400ms -o $pictures
else
  pictures=reports/gallery/host-replay.svg
  "$foretrain" plot cases "$table" --where group=host-scaling --x workload.collective.ranks --panel workload.collective.size \
    --curve workload.collective.algorithm,workload.collective.placement,workload.collective.servers -o $pictures
fi
echo "left: $measurements $table $pictures"
exit $status

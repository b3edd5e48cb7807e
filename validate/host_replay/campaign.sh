#!/bin/sh
# Measures every case of campaign.csv on this machine, as root, in less than ten minutes; one that was interrupted goes on
# where it stopped. Leaves every repetition in validate/measurements/DAY-host.json, the medians in
# scenarios/cases/cases_host_replay.csv (so that `foretrain validate` shows them), and the picture in reports/gallery.
# FORETRAIN names the program. The machine should have nothing else to do.
set -eu
cd "$(dirname "$0")/../.."
foretrain=${FORETRAIN:-build/foretrain}
day=${DAY:-$(date -u +%F)}
measurements=validate/measurements/$day-host.json
table=scenarios/cases/cases_host_replay.csv
mkdir -p validate/measurements
status=0
"$foretrain" replay --cases validate/host_replay/campaign.csv -o "$measurements" --table $table --probe --bar 10 || status=$?
[ $status -le 1 ] || exit $status
"$foretrain" plot replay "$measurements" -o reports/gallery/host-replay.svg
echo "left: $measurements $table reports/gallery/host-replay.svg"
exit $status

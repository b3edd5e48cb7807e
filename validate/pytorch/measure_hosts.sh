#!/bin/sh
# Measures PyTorch on this machine's processor, as root: single operators, then steps of training between hosts made of
# it. Takes at most 45 minutes; interrupted it goes on where it was. Leaves every repetition in
# validate/measurements/DAY-host-operators.json and DAY-host-training.json (and some steps' timelines), the medians in
# scenarios/cases/cases_host_training.csv, pictures in reports/gallery, and prints the figures of the processor that
# follow from the operators (scenarios/hardware/gpus/host-core.yaml holds those of ours) and how far predictions are off.
# PYTHON names the interpreter that has PyTorch, FORETRAIN the program. The machine should have nothing else to do.
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-/usr/bin/python3}
foretrain=${FORETRAIN:-build/foretrain}
day=${DAY:-$(date -u +%F)}
kept=validate/measurements/$day-host
table=scenarios/cases/cases_host_training.csv
mkdir -p validate/measurements
"$python" validate/pytorch/host_operators.py -o "$kept-operators.json"
status=0
"$python" validate/pytorch/host_steps.py -o "$kept-training.json" --operators "$kept-operators.json" --table $table \
  --minutes "${MINUTES:-40}" || status=$?
[ $status -le 1 ] || exit $status
"$foretrain" validate --cases $table -o reports/gallery/host-training.svg
"$python" validate/pytorch/host_report.py $table --foretrain "$foretrain"
FORETRAIN=$foretrain validate/pytorch/plot_hosts.sh || echo "too little was measured for all pictures" >&2
echo "left: $kept-operators.json $kept-training.json $table"
exit $status

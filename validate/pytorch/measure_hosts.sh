#!/bin/sh
# Measures PyTorch on this machine's processor, as root: single operators, then steps between hosts made of it.
#   validate/pytorch/measure_hosts.sh [training|parallel|vision|lifetime]
# training: data parallel and servers, with the PyTorch that is here (1.13 and newer). parallel: a transformer divided in
# every way, with Debian 13's PyTorch 2.6 (debian13.sh). vision: vision–language models with it. lifetime: whole trainings
# with it that are saved to a file server and go on after workers have died. Takes at most MINUTES (20) and some two more;
# called again, it goes on where it was.
# Leaves every repetition in validate/measurements/DAY-host-operators.json (with PyTorch 2.6 in
# DAY-host-parallel-operators.json) and DAY-host-PART.json (and timelines), the medians in cases_host_PART.csv, pictures
# in reports/gallery, and prints the figures of the processor that follow from the operators
# (scenarios/hardware/gpus/host-core*.yaml holds those of ours) and how far predictions are off. OPERATORS names another
# file of operators: that of the day from which the figures in scenarios/hardware are, to which shares of a core then
# refer. PYTHON names the interpreter that has PyTorch, FORETRAIN the program. The machine should have nothing else to do.
set -eu
cd "$(dirname "$0")/../.."
part=${1:-training}
python=${PYTHON:-/usr/bin/python3}
foretrain=${FORETRAIN:-build/foretrain}
day=${DAY:-$(date -u +%F)}
kept=validate/measurements/$day-host
table=scenarios/cases/cases_host_$part.csv
case $part in
training) within="" measures=host_steps.py operators=$kept-operators.json ;;
parallel) within=validate/pytorch/debian13.sh measures="host_steps.py --parallel" operators=$kept-parallel-operators.json ;;
vision) within=validate/pytorch/debian13.sh measures="host_steps.py --vision" operators=$kept-parallel-operators.json ;;
lifetime) within=validate/pytorch/debian13.sh measures="host_steps.py --lifetime" operators=$kept-parallel-operators.json ;;
*) echo "$0: $part is neither training, parallel, vision nor lifetime" >&2; exit 2 ;;
esac
operators=${OPERATORS:-$operators}
mkdir -p validate/measurements
$within "$python" validate/pytorch/host_operators.py -o "$operators"
status=0
$within "$python" validate/pytorch/$measures -o "$kept-$part.json" --operators "$operators" \
  --table "$table" --minutes "${MINUTES:-20}" || status=$?
[ $status -le 1 ] || exit $status
"$foretrain" validate --cases "$table" -o "reports/gallery/host-$part.svg"
if [ $part != lifetime ]; then
  "$foretrain" validate --cases "$table" --anchor 1  # the first of each model known
  "$python" validate/pytorch/host_report.py "$table" --foretrain "$foretrain"
fi
if [ $part = training ]; then
  FORETRAIN=$foretrain validate/pytorch/plot_hosts.sh || echo "too little was measured for all pictures" >&2
fi
echo "left: $operators $kept-$part.json $table"
exit $status

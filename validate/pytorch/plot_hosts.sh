#!/bin/sh
# The pictures of training between hosts: predicted lines through measured points, and a measured step beside its
# timeline.
set -eu
cd "$(dirname "$0")/../.."
foretrain=${FORETRAIN:-build/foretrain}
folder=${1:-reports/gallery}
table=scenarios/cases/cases_host_training.csv
speed=cluster.network.nic_bandwidth
mkdir -p "$folder"
# Data parallel training by 2 to 4 workers on half a core each.
"$foretrain" plot cases $table --x plan.data --panel replay.model --curve $speed --where replay.way=ring \
  --where replay.core=0.5 --where "replay.model=lenet|resnet-18|gpt-small" -o "$folder/hosts-data-parallel.svg"
# Ring and server over the speed of the network.
"$foretrain" plot cases $table --x $speed --panel replay.model --curve replay.way,plan.data \
  --where "replay.way=ring|server" --where replay.core=1.0 --where "replay.model=mlp-wide|lenet|gpt-small" \
  -o "$folder/hosts-network-speed.svg"
# Parameter servers, and a measured step beside its timeline.
"$foretrain" plot cases $table --x $speed --panel replay.model --curve replay.way,plan.data \
  --where "replay.way=server|2 servers|server on every worker|asynchronous server" --where replay.core=0.5 \
  --where "replay.model=mlp-wide|lenet|gpt-small" -o "$folder/hosts-servers.svg"
for trace in validate/measurements/*-host-training-timeline-gpt-small-*.json; do
  "$foretrain" plot timeline data-parallel-hosts --beside "$trace" \
    --set workload.train.model='{ preset: gpt2, layers: 4, hidden: 256, heads: 4, vocabulary: 4096, sequence: 128 }' \
    --set workload.train.micro_batch=8 --set cluster.nodes=2 -o "$folder/hosts-timeline.svg"
done

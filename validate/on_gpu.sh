#!/bin/sh
# Measures a GPU machine and replays scenarios on it: validate/on_gpu.sh [PART...] [--quick] [-o DIR] [--minutes N]
# [--no-pytorch] [--dry-run]. Parts, by default the first five one after the other:
#   check    within a minute: what is missing here, and what would fail
#   steps    PyTorch's training steps, on one GPU
#   replay   the graphs of validate/cuda/graphs with real kernels
#   measure  kernels, memory, copies, launches
#   multi    several GPUs: NCCL, copies between GPUs, compute beside it, how much the GPUs differ
# These need PyTorch alone, and take the minutes that are given here:
#   finetune      6  LoRA, QLoRA, activation checkpointing, torch.compile, losses, CPU offload; memory at its peak
#   operators     2  layer norm, RMSNorm, softmax, cross-entropy, Adam
#   networks      2  convolution networks by memory layout and number format
#   copies        1  copies between host and GPU, and Adam on the CPU
#   block_scaled  1  GEMMs in MXFP8 and NVFP4, if the GPU has them
#   visit            check and these five: a quarter of an hour of a GPU
# A part that is named ends after N minutes (10) and is packed into one file, DIR-PART.tar, whole or not; run again, it
# goes on where it was. --dry-run runs those five as tiny cases on the CPU. PYTHON names the Python that has PyTorch.
# Needs CUDA 12 or newer, CMake 3.25 and a C++20 compiler; no network, no other library. cuDNN, NCCL
# and PyTorch are used where they are. Leaves one folder of JSON, which foretrain reads anywhere: any part of it will do.
# Measurements for comparison come first: PyTorch's steps, then replays, then what constants are fitted to.
# Exit status: 0 all was measured, 1 some was not (listed), 2 nothing could be, 130 interrupted.
set -u
cd "$(dirname "$0")/.."

quick="" output="" pytorch=yes minutes="" parts="" dry_run=""
for_pytorch="finetune operators networks copies block_scaled"
python=${PYTHON:-python3}
usage() {
  echo "usage: validate/on_gpu.sh [check|steps|replay|measure|multi|visit|$(echo "$for_pytorch" | tr ' ' '|')]... [--quick] \
[-o DIR] [--minutes N] [--no-pytorch] [--dry-run]" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    check | steps | replay | measure | multi | finetune | operators | networks | copies | block_scaled) parts="$parts $1" ;;
    visit) parts="$parts check $for_pytorch" ;;
    --dry-run) dry_run=--dry-run ;;
    --quick) quick=--quick ;;
    -o) [ $# -ge 2 ] || usage; output=$2; shift ;;
    --minutes)
      [ $# -ge 2 ] || usage
      case $2 in '' | 0 | *[!0-9]*) usage ;; esac
      minutes=$2; shift ;;
    --no-pytorch) pytorch="" ;;
    *) usage ;;
  esac
  shift
done
[ -z "$dry_run" ] || parts=${parts:-$for_pytorch}
compiles=yes  # whether foretrain-gpu is needed
case " $parts " in *" finetune "* | *" operators "* | *" networks "* | *" copies "* | *" block_scaled "*) compiles="" ;; esac
case " $parts " in *" steps "* | *" replay "* | *" measure "* | *" multi "*) compiles=yes ;; esac
[ -z "$dry_run" ] || [ -z "$compiles" ] || usage
build=build-gpu
output=${output:-$build/measurements$quick$dry_run}  # a point measured quickly would stand in a full run's folder for good
gpu=$build/foretrain-gpu
worst=0

stop() { printf 'on_gpu.sh: %s\n' "$1" >&2; exit 2; }
say() { printf '\n== %s\n' "$1" >&2; }
# pack PART PATTERN...: all that the part has left until now, with the machine's description, as one file.
pack() {
  name=$1; shift
  files=$(cd "$output" 2>/dev/null && for pattern in machine.json "$@"; do ls -d $pattern 2>/dev/null; done)
  [ -n "$files" ] || return 0
  # shellcheck disable=SC2086  # names of files without blanks
  (cd "$output" && tar -cf pack.partial $files) && mv "$output/pack.partial" "$output-$name.tar" &&
    echo "on_gpu.sh: $output-$name.tar" >&2
}
pack_part() {
  case $1 in
    finetune | networks) pack "$1" "$1.jsonl" "cases_$1.csv" 'kernels-*.json' 'memory-*.json' ;;
    operators | block_scaled) pack "$1" "cases_$1.csv" ;;
    copies) pack copies cases_copies.csv cpu_adam.jsonl ;;
    steps) pack steps steps.jsonl cases_pytorch.csv 'kernels-*.json' ;;
    replay) pack replay 'replay-*.json' ;;
    measure) pack measure launch.jsonl memory.jsonl copy.jsonl gemm.jsonl convolution.jsonl attention.jsonl \
      streaming.jsonl ;;
    multi) pack multi peer.jsonl collective.jsonl devices.jsonl overlap.jsonl ;;
  esac
}
part="" deadline=""
interrupted() {
  [ -z "$part" ] || pack_part "$part"
  echo "on_gpu.sh: interrupted; $output keeps what was measured, run again to go on" >&2
  exit 130
}
trap interrupted INT TERM
# older HAVE LEAST: whether version HAVE is older than LEAST; of anything that is no version, no.
older() {
  case $1 in [0-9]*) ;; *) return 1 ;; esac
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" != "$2" ]
}
# limited COMMAND...: within what is left of the part's time, by an interruption, as a user's, and ten seconds later by
# force. Without a deadline as long as it takes.
limited() {
  [ -n "$deadline" ] || { "$@"; return; }
  left=$((deadline - $(date +%s)))
  [ "$left" -ge 1 ] || return 124
  timeout --foreground -s INT -k 10 "$left" "$@"
}

# Equipment, before anything takes time.
nvcc=${CUDACXX:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
has_pytorch() { [ -n "$pytorch" ] && "$python" -c 'import torch' 2>/dev/null; }
require_tools() {
  [ -z "$dry_run" ] || return 0
  if ! command -v nvidia-smi >/dev/null && { command -v rocm-smi || command -v amd-smi; } >/dev/null; then
    stop "an AMD GPU: not measured yet. It would take the kernels by hipcc, and hipBLASLt, MIOpen, RCCL and AMD SMI in the \
place of cuBLASLt, cuDNN, NCCL and NVML. PyTorch's steps can be timed as they are: validate/pytorch/train_steps.py -o DIR"
  fi
  command -v nvidia-smi >/dev/null || stop "no nvidia-smi: this machine has no NVIDIA driver; run this where the GPU is"
  nvidia-smi --query-gpu=compute_cap --format=csv,noheader >/dev/null || stop "nvidia-smi finds no usable GPU: see above"
  command -v timeout >/dev/null || stop "no timeout (coreutils), by which parts end in time"
  command -v tar >/dev/null || stop "no tar, by which parts are packed"
  [ -z "$compiles" ] || require_compilers
}
require_compilers() {
  [ -n "$nvcc" ] || stop "no nvcc: install the CUDA toolkit (12 or newer), or set CUDACXX to its nvcc"
  cmake_remedy="pip install cmake, or a newer one from cmake.org, is enough"
  command -v cmake >/dev/null || stop "no cmake: CMake 3.25 or newer is needed; $cmake_remedy"
  version=$(cmake --version | sed -n 's/^cmake version //p')
  older "$version" 3.25 && stop "CMake $version: 3.25 or newer is needed; $cmake_remedy"
  version=$("${CXX:-c++}" -dumpfullversion 2>/dev/null)
  older "$version" 11 && ! "${CXX:-c++}" --version | grep -qi clang &&
    stop "GCC $version: 11 or newer is needed; install g++-11 and run CXX=g++-11 CUDAHOSTCXX=g++-11 $0"
}

configure() {
  cmake -S validate/cuda -B "$build" -DCMAKE_CUDA_COMPILER="$nvcc" -U FORETRAIN_CUDA_ARCHITECTURES \
    ${FORETRAIN_CUDA_ARCHITECTURES:+"-DFORETRAIN_CUDA_ARCHITECTURES=$FORETRAIN_CUDA_ARCHITECTURES"}
}
built=""
build_program() {
  [ -z "$built" ] || return 0
  # A compiler of CUDA takes up to 2 GB.
  jobs=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 2000000) }' /proc/meminfo)
  [ "$memory" -lt "$jobs" ] && jobs=$memory
  [ "$jobs" -ge 1 ] || jobs=1
  say "building for the GPUs of this machine, $jobs at a time"
  mkdir -p "$output" || stop "$output cannot be made; name another folder with -o"
  { configure && limited cmake --build "$build" --parallel "$jobs"; } >"$output/build.log" 2>&1 || {
    [ -n "$deadline" ] && [ "$(date +%s)" -ge "$deadline" ] && stop "the build took all the time: run again to go on"
    tail -n 20 "$output/build.log" >&2
    stop "the build failed; all of it is in $output/build.log"
  }
  [ -s "$output/machine.json" ] || "$gpu" probe >"$output/machine.json.partial" &&
    { [ -s "$output/machine.json" ] || mv "$output/machine.json.partial" "$output/machine.json"; }
  rm -f "$output/machine.json.partial"
  built=yes
}

# Each goes on where an earlier run was stopped. 1 means that some of it could not be measured, which it has said.
run() {
  say "$1"
  shift
  limited "$@"
  status=$?
  case $status in
    0) ;;
    124 | 137) echo "on_gpu.sh: its time is up: run again for what is left" >&2; worst=1 ;;
    130) [ -n "$deadline" ] && [ "$(date +%s)" -ge "$deadline" ] || interrupted; worst=1 ;;
    1) worst=1 ;;
    *) echo "on_gpu.sh: that part ended with status $status" >&2; [ "$1" = "$gpu" ] && [ "$2" = measure ] && exit 2; worst=1 ;;
  esac
}

# Missing prerequisites of a run, each a line; status 1 where one of the parts would fail.
check() {
  say "what is here"
  nvidia-smi --query-gpu=name,memory.total,driver_version,mig.mode.current,compute_mode --format=csv,noheader >&2
  others=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null | grep -c '[0-9]')
  [ "$others" = 0 ] || { echo "  $others processes use the GPU: end them, they spoil the numbers" >&2; worst=1; }
  free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1000000) }')
  [ "$free" -ge 5 ] || { echo "  $free GB of disk are free: 5 are needed" >&2; worst=1; }
  mkdir -p "$output" || stop "$output cannot be made; name another folder with -o"
  [ -z "$compiles" ] || configure >"$output/configure.log" 2>&1 ||
    { tail -n 5 "$output/configure.log" >&2; echo "  CMake fails: see $output/configure.log" >&2; worst=1; }
  for library in ${compiles:+CUDNN NCCL}; do
    grep -q "^${library}_LIBRARY.*NOTFOUND" "$build/CMakeCache.txt" 2>/dev/null &&
      echo "  no $library: its suites are left out; pip install nvidia-$(echo "$library" | tr 'A-Z' 'a-z')-cu13, or set ${library}_HOME" >&2
  done
  if has_pytorch; then
    "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' ||
      { echo "  PyTorch sees no GPU: see torch.version.cuda and the driver" >&2; worst=1; }
  else
    echo "  no PyTorch: steps are left out; pip install torch" >&2
  fi
  [ ! -x "$gpu" ] || limited "$gpu" probe >/dev/null || { echo "  foretrain-gpu finds no usable GPU: see above" >&2; worst=1; }
  [ "$worst" = 0 ] && echo "  all parts can run" >&2
}

do_part() {
  case " steps $for_pytorch " in *" $1 "*)
    if ! has_pytorch; then
      echo "on_gpu.sh: $1 left out ($python cannot import torch, or --no-pytorch)" >&2
      [ "$1" = steps ] || worst=1
      return
    fi ;;
  esac
  case $1 in
    check) [ -n "$dry_run" ] || check ;;
    finetune | networks)
      run "PyTorch's training steps: $1" "$python" validate/pytorch/train_steps.py --set "$1" --seconds 1 $dry_run -o "$output" ;;
    operators | copies | block_scaled)
      run "PyTorch's operators: $1" "$python" validate/pytorch/operators.py --set "$1" $dry_run -o "$output" ;;
    steps)
      build_program
      run "PyTorch's training steps" "$python" validate/pytorch/train_steps.py $quick -o "$output" ;;
    replay)
      build_program
      run "replays of training steps and small graphs" "$gpu" replay validate/cuda/graphs/*.graph $quick -o "$output" ;;
    measure)
      build_program
      run "kernels, memory, copies" "$gpu" measure $quick -o "$output" \
        --only launch,memory,copy,gemm,convolution,attention,streaming ;;
    multi)
      build_program
      run "several GPUs" "$gpu" measure $quick -o "$output" --only peer,collective,devices,overlap ;;
  esac
}

require_tools
if [ -z "$parts" ]; then
  for part in steps replay measure multi; do do_part "$part"; done
else
  for part in $parts; do
    limit=10
    case $part in finetune) limit=6 ;; operators | networks) limit=2 ;; copies | block_scaled) limit=1 ;; esac
    deadline=$(($(date +%s) + 60 * ${minutes:-$limit} - 15))  # what packing takes at most
    [ "$part" = check ] && deadline=$(($(date +%s) + 60))
    do_part "$part"
    deadline=""
    pack_part "$part"
  done
  [ -z "$dry_run" ] || echo "on_gpu.sh: left out without a GPU: CUDA graphs and events, fused kernels of torch.compile, \
kernel lists, memory history, pinned memory, bitsandbytes, DeepSpeed, Liger, MXFP8, NVFP4" >&2
  exit $worst
fi

say "done: $output"
cat >&2 <<END
Copy that folder to any machine with foretrain and run there
  foretrain calibrate --from DIR -o calibration.json --hardware this-machine.yaml
  foretrain replay --from DIR --cases validate/cuda/graphs/graphs.csv --set cluster.node=this-machine.yaml \\
    --calibration calibration.json
  foretrain validate --cases DIR/cases_pytorch.csv --calibration calibration.json
END
exit $worst

#!/bin/sh
# Measures a GPU machine and replays scenarios on it, in one go: validate/on_gpu.sh [--quick] [-o DIR] [--no-pytorch].
# Needs CUDA 12 or newer, CMake 3.25 and a C++20 compiler; no network, no other library. cuDNN, NCCL and PyTorch are
# used where they are. Leaves one folder of JSON, which foretrain reads anywhere; run again, it goes on where it was.
# What predictions are held against comes first: PyTorch's steps, then replays, then what constants are fitted to.
# Exit status: 0 all was measured, 1 some was not (listed), 2 nothing could be, 130 interrupted.
set -u
cd "$(dirname "$0")/.."

quick="" output="" pytorch=yes
usage() { echo "usage: validate/on_gpu.sh [--quick] [-o DIR] [--no-pytorch]" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=--quick ;;
    -o) [ $# -ge 2 ] || usage; output=$2; shift ;;
    --no-pytorch) pytorch="" ;;
    *) usage ;;
  esac
  shift
done
build=build-gpu
output=${output:-$build/measurements$quick}  # a point measured quickly would stand in a full run's folder for good

stop() { printf 'on_gpu.sh: %s\n' "$1" >&2; exit 2; }
say() { printf '\n== %s\n' "$1" >&2; }
interrupted() {
  echo "on_gpu.sh: interrupted; $output keeps what was measured, run again to go on" >&2
  exit 130
}
trap interrupted INT TERM
# older HAVE LEAST: whether version HAVE is older than LEAST; of anything that is no version, no.
older() {
  case $1 in [0-9]*) ;; *) return 1 ;; esac
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" != "$2" ]
}

# What is there, before anything takes time.
nvcc=${CUDACXX:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
[ -n "$nvcc" ] || stop "no nvcc: install the CUDA toolkit (12 or newer), or set CUDACXX to its nvcc"
cmake_remedy="pip install cmake, or a newer one from cmake.org, is enough"
command -v cmake >/dev/null || stop "no cmake: CMake 3.25 or newer is needed; $cmake_remedy"
version=$(cmake --version | sed -n 's/^cmake version //p')
older "$version" 3.25 && stop "CMake $version: 3.25 or newer is needed; $cmake_remedy"
version=$("${CXX:-c++}" -dumpfullversion 2>/dev/null)
older "$version" 11 && ! "${CXX:-c++}" --version | grep -qi clang &&
  stop "GCC $version: 11 or newer is needed; install g++-11 and run CXX=g++-11 CUDAHOSTCXX=g++-11 $0"
command -v nvidia-smi >/dev/null || stop "no nvidia-smi: this machine has no NVIDIA driver; run this where the GPU is"
nvidia-smi --query-gpu=compute_cap --format=csv,noheader >/dev/null || stop "nvidia-smi finds no usable GPU: see above"

# A compiler of CUDA takes up to 2 GB.
jobs=$(nproc)
memory=$(awk '/^MemAvailable/ { print int($2 / 2000000) }' /proc/meminfo)
[ "$memory" -lt "$jobs" ] && jobs=$memory
[ "$jobs" -ge 1 ] || jobs=1

say "building for the GPUs of this machine, $jobs at a time"
mkdir -p "$output" || stop "$output cannot be made; name another folder with -o"
{ cmake -S validate/cuda -B "$build" -DCMAKE_CUDA_COMPILER="$nvcc" -U FORETRAIN_CUDA_ARCHITECTURES \
    ${FORETRAIN_CUDA_ARCHITECTURES:+"-DFORETRAIN_CUDA_ARCHITECTURES=$FORETRAIN_CUDA_ARCHITECTURES"} &&
  cmake --build "$build" --parallel "$jobs"; } >"$output/build.log" 2>&1 ||
  { tail -n 20 "$output/build.log" >&2; stop "the build failed; all of it is in $output/build.log"; }
gpu=$build/foretrain-gpu

# Each part goes on where an earlier run was stopped. 1 means that some of it could not be measured, which it has said.
worst=0
part() {
  say "$1"
  shift
  "$@"
  status=$?
  case $status in
    0) ;;
    130) interrupted ;;
    1) worst=1 ;;
    *) echo "on_gpu.sh: that part ended with status $status" >&2; [ "$1" = "$gpu" ] && [ "$2" = measure ] && exit 2; worst=1 ;;
  esac
}
if [ -n "$pytorch" ] && python3 -c 'import torch' 2>/dev/null; then
  part "PyTorch's training steps" python3 validate/pytorch/train_steps.py ${quick:---trace} -o "$output"
else
  echo "on_gpu.sh: PyTorch left out (python3 cannot import torch, or --no-pytorch)" >&2
fi
part "replays of training steps and small graphs" "$gpu" replay validate/cuda/graphs/*.graph $quick -o "$output"
part "kernels, memory, copies, collectives" "$gpu" measure $quick -o "$output"

say "done: $output"
cat >&2 <<END
Copy that folder to any machine with foretrain and run there
  foretrain calibrate --from DIR -o calibration.json --hardware this-machine.yaml
  foretrain replay --from DIR --cases validate/cuda/graphs/graphs.csv --set cluster.node=this-machine.yaml \\
    --calibration calibration.json
  foretrain validate --cases DIR/cases_pytorch.csv --calibration calibration.json
END
exit $worst

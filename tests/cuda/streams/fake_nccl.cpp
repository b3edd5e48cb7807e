// NCCL's operations between GPUs of one process: each begins when all its ranks' streams have come to it.
#include <cstring>

#include "tests/cuda/streams/streams_state.hpp"

namespace {

/// Fp32 is all that these tests need; sums are added in order of ranks.
struct Call {
  enum class Kind { all_reduce, all_gather, reduce_scatter, broadcast, reduce, send, receive } kind;
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t count = 0;
  int peer = 0;  ///< or root
};

struct Clique;

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  std::uint64_t launched = 0;
};

namespace {

/// What one rank put on its stream in one group.
struct Part {
  streams::Stream* stream = nullptr;
  std::vector<Call> calls;
  bool there = false;
};

struct Clique {
  std::vector<ncclComm_t> members;
  std::map<std::uint64_t, std::vector<Part>> operations;  ///< by their number: every rank launches in the same order
  bool aborted = false;
};

using streams::state;

thread_local int depth = 0;
thread_local std::vector<std::pair<ncclComm_t, std::pair<cudaStream_t, Call>>> pending;

/// Carried out when the last rank's stream has come to it; the others' streams have waited.
void carry_out(std::vector<Part>& parts) {
  const std::size_t n = parts.size();
  const Call& first = parts[0].calls[0];
  const bool sums = first.kind == Call::Kind::all_reduce || first.kind == Call::Kind::reduce ||
                    first.kind == Call::Kind::reduce_scatter;
  if (sums) {
    const std::size_t all = first.kind == Call::Kind::reduce_scatter ? first.count * n : first.count;
    std::vector<float> sum(all, 0.0F);
    for (const Part& part : parts) {
      for (std::size_t i = 0; i < all; ++i) sum[i] += part.calls[0].from[i];
    }
    if (state().corrupts) sum[all - 1] += 1.0F;
    for (std::size_t r = 0; r < n; ++r) {
      if (first.kind == Call::Kind::reduce && static_cast<int>(r) != first.peer) continue;
      const float* source = first.kind == Call::Kind::reduce_scatter ? sum.data() + r * first.count : sum.data();
      std::memcpy(parts[r].calls[0].to, source, first.count * sizeof(float));
    }
    return;
  }
  for (std::size_t r = 0; r < n; ++r) {
    std::map<int, int> taken;  // per sender
    for (const Call& call : parts[r].calls) {
      if (call.kind == Call::Kind::broadcast) {
        std::memmove(call.to, parts[static_cast<std::size_t>(call.peer)].calls[0].from, call.count * sizeof(float));
      } else if (call.kind == Call::Kind::all_gather) {
        for (std::size_t q = 0; q < n; ++q) {
          std::memmove(call.to + q * call.count, parts[q].calls[0].from, call.count * sizeof(float));
        }
      } else if (call.kind == Call::Kind::receive) {
        int skip = taken[call.peer]++;
        for (const Call& sent : parts[static_cast<std::size_t>(call.peer)].calls) {
          if (sent.kind != Call::Kind::send || sent.peer != static_cast<int>(r) || skip-- > 0) continue;
          if (sent.count == call.count) std::memmove(call.to, sent.from, call.count * sizeof(float));
          break;
        }
      }
    }
  }
}

void launch_pending() {
  std::map<ncclComm_t, std::pair<cudaStream_t, std::vector<Call>>> by_rank;
  for (const auto& [comm, call] : pending) {
    by_rank[comm].first = call.first;
    by_rank[comm].second.push_back(call.second);
  }
  pending.clear();
  for (auto& [comm, call] : by_rank) {
    const std::shared_ptr<Clique> clique = comm->clique;
    const std::uint64_t number = comm->launched++;
    std::vector<Part>& parts = clique->operations[number];
    parts.resize(clique->members.size());
    const auto rank = static_cast<std::size_t>(comm->rank);
    auto* stream = reinterpret_cast<streams::Stream*>(call.first);
    parts[rank] = {stream, call.second, false};
    // Arriving is one piece of work, leaving another: all leave once the last has arrived.
    stream->queue.push_back({[] { return true; },
                             [clique, number, rank] {
                               std::vector<Part>& all = clique->operations[number];
                               all[rank].there = true;
                               for (const Part& part : all) {
                                 if (!part.there) return;
                               }
                               carry_out(all);
                             }});
    stream->queue.push_back({[clique, number] {
                               if (clique->aborted) return true;
                               for (const Part& part : clique->operations[number]) {
                                 if (!part.there) return false;
                               }
                               return true;
                             },
                             [] {}});
  }
}

ncclResult_t put(ncclComm_t comm, cudaStream_t stream, const Call& call, ncclDataType_t type) {
  if (type != ncclFloat32 || comm == nullptr) return ncclInvalidArgument;
  const std::lock_guard lock(state().mutex);
  pending.push_back({comm, {stream, call}});
  if (depth == 0) launch_pending();
  return ncclSuccess;
}

std::map<std::string, std::shared_ptr<Clique>>& cliques() {
  static std::map<std::string, std::shared_ptr<Clique>> all;
  return all;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t /*result*/) { return "an error"; }
const char* ncclGetLastError(ncclComm_t /*comm*/) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int number = 0;
  const std::lock_guard lock(state().mutex);
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "clique %d", ++number);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const std::lock_guard lock(state().mutex);
  std::shared_ptr<Clique>& clique = cliques()[id.internal];
  if (!clique) clique = std::make_shared<Clique>();
  clique->members.resize(static_cast<std::size_t>(ranks));
  *comm = new ncclComm{clique, rank, 0};
  clique->members[static_cast<std::size_t>(rank)] = *comm;
  ++state().communicators;
  return ncclSuccess;
}
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* /*devices*/) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  for (int i = 0; i < count; ++i) ncclCommInitRank(comms + i, count, id, i);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(state().mutex);
  --state().communicators;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(state().mutex);
  comm->clique->aborted = true;
  ++state().aborted;
  --state().communicators;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t /*comm*/, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  const std::lock_guard lock(state().mutex);
  if (--depth == 0) launch_pending();
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t /*op*/,
                           ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream, {Call::Kind::all_reduce, static_cast<const float*>(from), static_cast<float*>(to), count, 0},
             type);
}
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t /*op*/, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream, {Call::Kind::reduce, static_cast<const float*>(from), static_cast<float*>(to), count, root},
             type);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return put(comm, stream,
             {Call::Kind::broadcast, static_cast<const float*>(from), static_cast<float*>(to), count, root}, type);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t /*op*/,
                               ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream,
             {Call::Kind::reduce_scatter, static_cast<const float*>(from), static_cast<float*>(to), count, 0}, type);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return put(comm, stream, {Call::Kind::all_gather, static_cast<const float*>(from), static_cast<float*>(to), count, 0},
             type);
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return put(comm, stream, {Call::Kind::send, static_cast<const float*>(from), nullptr, count, peer}, type);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return put(comm, stream, {Call::Kind::receive, nullptr, static_cast<float*>(to), count, peer}, type);
}

}  // extern "C"

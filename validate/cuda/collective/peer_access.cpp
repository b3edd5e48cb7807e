#include "validate/cuda/collective/peer_access.hpp"

namespace foretrain::gpu {

namespace {

int attribute(cudaDeviceP2PAttr which, int from, int to) {
  int value = 0;
  GPU_CHECK(cudaDeviceGetP2PAttribute(&value, which, from, to));
  return value;
}

bool enable(int from, int to) {
  const OnDevice on(from);
  const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return false;
  }
  GPU_CHECK(status);
  return true;
}

}  // namespace

std::vector<PeerLink> peer_links() {
  const int count = visible_devices();
  std::vector<PeerLink> links;
  for (int first = 0; first < count; ++first) {
    for (int second = first + 1; second < count; ++second) {
      int there = 0;
      int back = 0;
      GPU_CHECK(cudaDeviceCanAccessPeer(&there, first, second));
      GPU_CHECK(cudaDeviceCanAccessPeer(&back, second, first));
      const bool access = there != 0 && back != 0;
      const int atomics = attribute(cudaDevP2PAttrNativeAtomicSupported, first, second);
      const int rank = attribute(cudaDevP2PAttrPerformanceRank, first, second);
      const std::string kind = !access ? "no peer access"
                                       : std::string("peer access, ") + (atomics != 0 ? "" : "no ") +
                                             "native atomics, rank " + std::to_string(rank);
      links.push_back({first, second, kind, access});
    }
  }
  return links;
}

PeerAccess::PeerAccess(int first, int second) : ways_{{first, second, false}, {second, first, false}} {
  for (Way& way : ways_) way.ours = enable(way.from, way.to);
}

PeerAccess::~PeerAccess() {
  int previous = 0;
  cudaGetDevice(&previous);
  for (const Way& way : ways_) {
    if (way.ours && cudaSetDevice(way.from) == cudaSuccess) cudaDeviceDisablePeerAccess(way.to);
  }
  cudaSetDevice(previous);
}

}  // namespace foretrain::gpu

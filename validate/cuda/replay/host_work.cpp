// What the host thread does.
#include <utility>
#include <vector>

#include "validate/cuda/replay/work.hpp"

namespace foretrain::gpu {

namespace {

class HostDoer final : public Doer {
 public:
  ~HostDoer() override { free_all(); }

  void see(const Piece& /*piece*/) override {}

  void do_on_host(const Piece& piece) override {
    const auto& work = std::get<HostWork>(piece.work);
    switch (work.action) {
      case HostWork::Action::sleep:
      case HostWork::Action::format:  // the text is a framework's: the host is busy for as long as it would be
        busy_until(now() + work.duration.value());
        break;
      case HostWork::Action::page_lock:
        if (work.size == Bytes(0.0)) break;
        GPU_CHECK(cudaHostAlloc(&locked_.emplace_back(nullptr), to_size(work.size), cudaHostAllocPortable));
        break;
      case HostWork::Action::dispatch:     // the launches behind it are the real ones
      case HostWork::Action::launch:       // and so is their way to the device
      case HostWork::Action::wait:         // the event has been waited for
      case HostWork::Action::synchronize:  // the events of all that was launched, too
        break;
    }
  }

  void end_step() override { free_all(); }

 private:
  void free_all() {
    for (void* data : std::exchange(locked_, {})) cudaFreeHost(data);
  }

  std::vector<void*> locked_;  ///< page-locked memory of this step
};

}  // namespace

template <>
std::unique_ptr<Doer> make_doer<HostWork>(const replay::Graph&, const ReplayStreams&) {
  return std::make_unique<HostDoer>();
}

}  // namespace foretrain::gpu

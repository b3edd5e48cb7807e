// What the host thread does.
#include <utility>
#include <vector>

#include "validate/cuda/replay/work.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

class HostDoer final : public Doer {
 public:
  void see(const Piece& /*piece*/) override {}

  void do_on_host(const Piece& piece) override {
    const auto& work = std::get<HostWork>(piece.work);
    switch (work.action) {
      case HostWork::Action::sleep:
      case HostWork::Action::format: {  // the text is a framework's: the host is busy for as long as it would be
        const double end = now() + work.duration.value();
        while (now() < end) {
        }
        break;
      }
      case HostWork::Action::page_lock: {
        void* data = nullptr;
        if (work.size == Bytes(0.0)) break;
        GPU_CHECK(cudaHostAlloc(&data, to_size(work.size), cudaHostAllocPortable));
        locked_.push_back(data);
        break;
      }
      case HostWork::Action::dispatch:     // the launches behind it are the real ones
      case HostWork::Action::launch:       // and so is their way to the device
      case HostWork::Action::wait:         // the event has been waited for
      case HostWork::Action::synchronize:  // the events of all that was launched, too
        break;
    }
  }

  void end_step() override {
    for (void* data : std::exchange(locked_, {})) GPU_CHECK(cudaFreeHost(data));
  }

 private:
  std::vector<void*> locked_;  ///< page-locked memory of this step
};

}  // namespace

template <>
std::unique_ptr<Doer> make_doer<HostWork>(const replay::Graph&, const ReplayStreams&) {
  return std::make_unique<HostDoer>();
}

}  // namespace foretrain::gpu

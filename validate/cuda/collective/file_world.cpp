#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

namespace {

namespace fs = std::filesystem;

constexpr useconds_t polling_us = 50;

class FileWorld final : public World {
 public:
  FileWorld(const Launched& launched, fs::path folder, double timeout)
      : World(launched.rank, launched.size), folder_(std::move(folder)), timeout_(timeout) {}

  std::vector<std::string> gather(const std::string& text) override {
    leave(text);
    std::vector<std::string> texts;
    for (int other = 0; other < size(); ++other) texts.push_back(other == rank() ? text : said_by(other));
    // All have begun the call before this one: nobody reads of those before it any more.
    std::error_code ignored;
    if (call_ > 0) fs::remove(file_of(rank(), call_ - 1), ignored);
    ++call_;
    return texts;
  }

  [[nodiscard]] std::string transport() const override { return "files"; }

 private:
  [[nodiscard]] fs::path file_of(int rank, long call) const {
    return folder_ / (std::to_string(call) + "." + std::to_string(rank));
  }

  /// The file has its name only when it is whole.
  void leave(const std::string& text) const {
    const fs::path file = file_of(rank(), call_), begun = fs::path(file).concat(".begun");
    std::ofstream out(begun, std::ios::binary);
    out << text;
    out.close();
    std::error_code error;
    if (out) fs::rename(begun, file, error);
    if (!out || error) throw WorldError("cannot write " + file.string() + ", where the processes meet: is it full?");
  }

  [[nodiscard]] std::string said_by(int other) const {
    const fs::path file = file_of(other, call_);
    for (const double deadline = now() + timeout_; !fs::exists(file); usleep(polling_us)) {
      throw_if_interrupted();
      if (now() < deadline) continue;
      throw WorldError("the process of rank " + std::to_string(other) + " did not answer within " +
                       std::to_string(static_cast<int>(timeout_)) + " s");
    }
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
  double timeout_;
  long call_ = 0;
};

}  // namespace

std::unique_ptr<World> make_file_world(const Launched& launched, const std::string& folder, double timeout) {
  return std::make_unique<FileWorld>(launched, folder, timeout);
}

}  // namespace foretrain::gpu

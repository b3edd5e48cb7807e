#include "validate/cuda/math/streaming.hpp"

#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::int64_t word_bytes = 16;

class StreamingRunner final : public OperatorRunner {
 public:
  StreamingRunner(const OperatorSpec& spec, const RunnerSetting& setting) : traffic_(traffic_of(spec)) {
    const std::int64_t read = traffic_.read / word_bytes, written = traffic_.written / word_bytes;
    // Output of the operator before comes first: one tensor of an elementwise operator, all of a reduction's.
    const bool one_of_several = traffic_.pattern == "elementwise" && written > 0 && written < read;
    const std::int64_t first = one_of_several ? written : read;
    words_ = {first, read - first, written};
    const bool follows = traffic_.pattern == "elementwise" || traffic_.pattern == "reduction";
    const auto bytes_of = [](std::int64_t words) { return static_cast<std::size_t>(words * word_bytes); };
    take(setting, {{bytes_of(first), Format::int8, follows ? Use::handed : Use::read},
                   {bytes_of(read - first), Format::int8, Use::read},
                   {bytes_of(written), Format::int8, Use::written}});
  }

  void launch(cudaStream_t stream, int turn) override {
    const OperandSet& set = operands(turn);
    stream_words({set[0], set[1], set[2]}, words_, traffic_.gathered(), stream);
  }

 private:
  Traffic traffic_;
  StreamingWords words_;
};

}  // namespace

std::unique_ptr<OperatorRunner> make_streaming(const OperatorSpec& spec, const RunnerSetting& setting) {
  return std::make_unique<StreamingRunner>(spec, setting);
}

}  // namespace foretrain::gpu

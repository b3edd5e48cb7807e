// A config.json is refused with its place, or is a model.
#include <unistd.h>

#include "model/base/files.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "tests/fuzz/harness.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 0);
  static const std::string path = "/dev/shm/foretrain-fuzz-" + std::to_string(getpid()) + ".json";
  write_file(path, fuzz::text_of(data, size));
  fuzz::accepted([&] {
    const YamlNode node = parse_yaml("{ hf: " + path + " }", "fuzz.yaml");
    (void)read_model(Field(node, "model"));
  });
  return 0;
}

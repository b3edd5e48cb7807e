// Runs the built foretrain-gpu on the libraries that stand in for CUDA (tests/cuda/fake).
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "model/base/process.hpp"
#include "tests/base/temporary_folder.hpp"

namespace foretrain::test {

/// `settings`: what the machine pretends to be, as tests/cuda/fake/settings.hpp says.
inline FilterResult run_gpu(const std::vector<std::string>& arguments, const std::string& settings = "",
                            const std::vector<std::string>& wrapper = {}) {
  std::vector<std::string> command = {"env", "LD_LIBRARY_PATH=" FORETRAIN_FAKE_LIBRARIES,
                                      "FORETRAIN_FAKE_GPU=" + settings};
  command.insert(command.end(), wrapper.begin(), wrapper.end());
  command.emplace_back(FORETRAIN_GPU_PROGRAM);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_filter(command, "");
}

/// A folder that measurements go to.
class MeasuredFolder {
 public:
  [[nodiscard]] std::string path() const { return (folder_.path() / "run").string(); }
  [[nodiscard]] std::string beside(const std::string& name) const { return (folder_.path() / name).string(); }
  /// `wrapper`: a program that runs foretrain-gpu. `more`: words at the end of the command line.
  [[nodiscard]] FilterResult measure(const std::string& only = "", const std::string& settings = "",
                                     const std::vector<std::string>& wrapper = {},
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"measure", "-o", path(), "--quick"};
    if (!only.empty()) words.insert(words.end(), {"--only", only});
    words.insert(words.end(), more.begin(), more.end());
    return run_gpu(words, settings, wrapper);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream(path() + "/" + name, std::ios::binary).rdbuf();
    return all.str();
  }
  /// Every line of a suite; throws where one is no JSON.
  [[nodiscard]] std::vector<nlohmann::json> records(const std::string& suite) const {
    std::vector<nlohmann::json> out;
    std::istringstream lines(text(suite + ".jsonl"));
    for (std::string line; std::getline(lines, line);) out.push_back(nlohmann::json::parse(line));
    return out;
  }
  /// Number of records with this status for each point of a suite.
  [[nodiscard]] std::map<std::string, int> count(const std::string& suite, const std::string& status) const {
    std::map<std::string, int> out;
    for (const nlohmann::json& record : records(suite)) {
      if (record["status"] == status) ++out[record["name"].get<std::string>()];
    }
    return out;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace foretrain::test

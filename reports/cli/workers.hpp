// Many predictions at once, in processes of their own: one that crashes takes no other along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/result.hpp"

namespace foretrain {

/// A prediction, or why there is none.
struct Outcome {
  std::optional<Result> result;
  std::string error;
  bool bad_input = false;  ///< the input is to blame for the error, not the prediction
};

/// Makes prediction number `index`; may throw.
using Predictor = std::function<Result(std::size_t index)>;

/// Result of a task: a text, or an error.
struct Reply {
  std::string text;  ///< the answer, or the error
  /// interrupted: by a signal, or for want of memory or processes; another time may do.
  enum class Kind : std::uint8_t { answer, bad_input, failure, interrupted } kind = Kind::failure;
};

/// Reply of an error, with its kind.
Reply reply_of(const std::exception& error);
/// Reply of a task, whatever it throws.
Reply reply_to(const std::function<std::string()>& task);

/// Returns the text of task `index`; may throw.
using TextTask = std::function<std::string(std::size_t index)>;

/// Tasks 0 … count − 1, shared out among `workers` forked processes in runs of neighbours, as these have most in
/// common; `observe` receives each reply as it comes in. Once `stop` says so, asked several times a second, the
/// workers are ended and no more replies come. There are fewer workers where the system refuses more; they die with
/// this process. Otherwise as predict_all.
void answer_all(std::size_t count, int workers, const TextTask& task,
                const std::function<void(std::size_t index, Reply reply)>& observe,
                const std::function<bool()>& stop = {});

/// Predictions 0 … count − 1, shared out among `workers` forked processes; results are in the order of their numbers,
/// whatever the workers; `advance` receives each as it comes in. Call it while this process has a single thread.
/// Timelines do not come back. Throws std::system_error when there can be no processes.
std::vector<Outcome> predict_all(std::size_t count, int workers, const Predictor& predictor,
                                 const std::function<void()>& advance = {});

/// One worker per processor that this process may use.
int default_workers();

}  // namespace foretrain

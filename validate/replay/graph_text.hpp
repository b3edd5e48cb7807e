// The file between foretrain and foretrain-gpu: lines of a keyword and key=value, values with blanks in quotation
// marks.
//
//   foretrain-graph 1
//   graph name=front-end-item-once scenario="…" hardware=h200-x1 fidelity=flows gpus=1 replicated=false capture=false
//         predicted=0.0123                                            (one line)
//   resource 0 kind=stream device=0 name=gpu0                         kind: stream | copies | host | path
//   block 0 category=compute predicted=1.2e-05 name="layer 1"         followed by what it does, in order.
//                                                                     Each kind's keys: model/base/work.hpp
//   kernel kind=matmul count=1 predicted=1.2e-05 name="linear 1" batch=1 m=64 n=64 k=64 precision=fp32
//   copy from=gpu0 to=cpu bytes=8 pinned=false
//   collective method=nccl bytes=25000000 ranks=2 servers=1 count=1
//   host action=dispatch seconds=7e-06 bytes=0 kernels=1 graph=false
//   task 0 block=0 resource=0 start=0 end=1.2e-05 after=0,1           `after` is left out where it waits for nothing
//   end lines=42                                                      of the whole file, this one included
//
// Resources, blocks and tasks are numbered from 0 in order. A line that begins with # is a comment.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "validate/replay/graph.hpp"

namespace foretrain::replay {

/// "file:line: what is wrong; what would be right".
class GraphFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The same graph gives the same bytes; numbers read back as they were.
std::string to_text(const Graph& graph);

/// Throws GraphFileError for whatever to_text() would not write: unknown or missing keys and words, numbers out of
/// range, references to what is not there, a task that waits for itself or a later one, a file that was cut off.
Graph parse_graph(std::string_view text, const std::string& file);

/// Throws GraphFileError where the file cannot be read, too.
Graph read_graph(const std::string& path);

/// A valid file name: letters and digits, and single dashes between them.
std::string file_name_of(std::string_view name);

}  // namespace foretrain::replay

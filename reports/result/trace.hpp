// An execution in the Trace Event Format that Perfetto and chrome://tracing open.
#pragma once

#include <string>
#include <vector>

#include "model/graph/timeline.hpp"

namespace foretrain {

/// A JSON document. Rank classes are processes, streams and threads are their threads. Tasks are complete events ("X",
/// microseconds) with micro-batch, bytes and algorithm. Flow arrows ("s", "f") join tasks that wait for a task on
/// another resource. The same entries give the same bytes. Source: Trace Event Format, "Complete Events" and "Flow
/// Events".
std::string to_trace(const std::string& title, const std::vector<TimelineEntry>& entries);

/// As gzip writes it (RFC 1952), without a time stamp: the same text gives the same bytes.
std::string gzip(const std::string& text);

}  // namespace foretrain

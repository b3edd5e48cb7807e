// Answers to what a server is asked (reports/serve/service.hpp), in a process of its own.
#pragma once

#include "reports/serve/http_server.hpp"

namespace foretrain {

/// The same bytes as `foretrain predict --json` prints, or why there are none. Scenarios name nothing but the
/// catalogue.
HttpAnswer answer_request(const HttpRequest& request);

}  // namespace foretrain

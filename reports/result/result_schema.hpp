// JSON Schema of a result's JSON.
#pragma once

#include <string>

namespace foretrain {

/// A schema (draft 7) of one result: what all kinds of work have, and any one kind's own.
std::string result_schema();

}  // namespace foretrain

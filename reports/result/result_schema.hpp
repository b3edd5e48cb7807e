// What a result's JSON holds, as JSON Schema, for those who read it by program.
#pragma once

#include <string>

namespace foretrain {

/// A schema (draft 7) of one result: what all kinds of work have, and any one kind's own.
std::string result_schema();

}  // namespace foretrain

// Numbers as people read them: never with an exponent where digits and commas do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foretrain {

/// So many significant digits: "7,720", "0.0123", "1.5"; an exponent below a ten-thousandth and from 10¹⁵ on.
std::string plain_number(double value, int digits = 3);

/// "7,720" for 7720: commas between the thousands of what begins as a whole number of four digits or more.
std::string grouped(std::string number);

/// "1 GPU", "8 GPUs", "7,720 GPUs".
std::string counted(std::int64_t count, std::string_view what);
/// With the verb that goes with one and with several: "1 case says", "6 cases say".
std::string counted(std::int64_t count, std::string_view what, std::string_view one, std::string_view several);

}  // namespace foretrain

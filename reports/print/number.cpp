#include "reports/print/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace foretrain {

std::string grouped(std::string number) {
  const std::size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  const bool whole = digits == number.size() || number[digits] == ' ' || number[digits] == '.';
  if (!whole || digits < 4) return number;
  for (std::size_t at = digits; at > 3;) number.insert(at -= 3, ",");
  return number;
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(std::to_string(count)), what, count == 1 ? "" : "s");
}

std::string counted(std::int64_t count, std::string_view what, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", counted(count, what), count == 1 ? one : several);
}

std::string plain_number(double value, int digits) {
  const std::string shortest = fmt::format("{:.{}g}", value, digits);
  const double size = std::abs(value);
  if (!(size < 1e15) || shortest.find("e+") == std::string::npos) return size < 1e15 ? grouped(shortest) : shortest;
  const std::string whole = grouped(fmt::format("{:.0f}", std::abs(std::strtod(shortest.c_str(), nullptr))));
  return value < 0.0 ? "-" + whole : whole;
}

}  // namespace foretrain

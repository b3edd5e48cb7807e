// Pictures by gnuplot: scripts in, SVG out.
#pragma once

#include <string>
#include <string_view>

namespace foretrain {

/// A text as a string of gnuplot's language. Nothing in it is interpreted; control characters become blanks, and bytes
/// that are no UTF-8 U+FFFD, as XML takes neither.
std::string gnuplot_string(std::string_view text);

/// What the script draws. The same script gives the same bytes. Throws UsageError when gnuplot is missing, and
/// std::runtime_error with its message when it rejects the script.
std::string run_gnuplot(const std::string& script);

}  // namespace foretrain

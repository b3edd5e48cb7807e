#include "reports/cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "model/base/text.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

constexpr std::string_view bold = "\033[1m", red = "\033[1;31m", plain = "\033[0m";

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Of the window, or as COLUMNS has it; 0 where neither says.
int window_width() {
  const std::string_view stated = variable("COLUMNS");
  int columns = 0;
  if (std::from_chars(stated.data(), stated.data() + stated.size(), columns).ec == std::errc() && columns > 0) {
    return columns;
  }
  winsize window{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

/// A locale that is stated decides. Where none is, a terminal may know ASCII alone; files are in UTF-8.
bool ascii_alone() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale(variable(name));
    if (locale.empty()) continue;
    return locale.find("UTF-8") == std::string::npos && locale.find("utf8") == std::string::npos &&
           locale.find("utf-8") == std::string::npos;
  }
  return isatty(STDOUT_FILENO) != 0;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 23> likenesses = {
    {{"─", "-"}, {"█", "#"}, {"▉", "#"}, {"▊", "#"},  {"▋", "#"},   {"▌", "#"},   {"▍", ":"}, {"▎", ":"},
     {"▏", ":"}, {"·", "|"}, {"×", "x"}, {"÷", "/"},  {"…", "..."}, {"→", "->"},  {"µ", "u"}, {"±", "+-"},
     {"–", "-"}, {"—", "-"}, {"²", "2"}, {"≤", "<="}, {"≥", ">="},  {"°", "deg"}, {"−", "-"}}};

/// Lines at the margin are headings; the first too, and what a plan that does not fit begins with is red.
std::string coloured(std::string_view page) {
  std::string text;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = std::min(page.find('\n', at), page.size());
    const std::string_view line = page.substr(at, end - at);
    const bool heading = !line.empty() && line.front() != ' ' && (at == 0 || page.substr(0, at).ends_with("\n\n"));
    const bool misfit = line.find("DOES NOT FIT") != std::string_view::npos;
    if (misfit || heading) {
      text += fmt::format("{}{}{}", misfit ? red : bold, line, plain);
    } else {
      text += line;
    }
    if (end < page.size()) text += '\n';
    at = end + 1;
  }
  return text;
}

/// Clears the line, and lets the signal end the program: shells call that 130.
extern "C" void clear_and_end(int number) {
  constexpr std::string_view clear = "\r\033[K";
  [[maybe_unused]] const auto ignored = write(STDERR_FILENO, clear.data(), clear.size());
  signal(number, SIG_DFL);
  raise(number);
}

/// The same words in ASCII: "|" for "·", "#" for bars, "-" for lines, "?" for what has no likeness.
std::string in_ascii(std::string_view text) {
  std::string ascii;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(character_length(text, at), 1);
    const std::string_view character = text.substr(at, length);
    const auto* const found =
        std::ranges::find(likenesses, character, &std::pair<std::string_view, std::string_view>::first);
    if (found != likenesses.end()) {
      ascii += found->second;
    } else {
      ascii += length == 1 ? character : "?";
    }
    at += length;
  }
  return ascii;
}

}  // namespace

bool has_colours(int descriptor) {
  return isatty(descriptor) != 0 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

void fit_pages_to_window() {
  if (isatty(STDOUT_FILENO) == 0) return;
  if (const int columns = window_width(); columns > 0) set_page_width(columns);
}

void print_page(std::string_view page) {
  std::string text = printable(page);
  if (ascii_alone()) text = in_ascii(text);
  if (has_colours(STDOUT_FILENO)) text = coloured(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // before messages on stderr
}

std::string wrapped_help(std::string_view help) {
  std::string text;
  for (const std::string& line : split(std::string(help), '\n')) {
    const std::size_t begin = line.find_first_not_of(' ');
    std::size_t column = begin == std::string::npos ? begin : line.find("  ", begin);
    if (column != std::string::npos) column = line.find_first_not_of(' ', column);
    if (column == std::string::npos) column = begin;
    if (column == std::string::npos || display_width(line) <= static_cast<std::size_t>(page_width())) {
      text += line + "\n";
      continue;
    }
    const int indent = static_cast<int>(display_width(std::string_view(line).substr(0, column)));
    text += line.substr(0, column) + wrap(line.substr(column), std::max(page_width() - indent, 20), indent) + "\n";
  }
  text.pop_back();
  return text;
}

StatusLine::StatusLine() : terminal_(isatty(STDERR_FILENO) != 0) {
  if (terminal_) signal(SIGINT, clear_and_end);
}

StatusLine::~StatusLine() {
  if (!terminal_) return;
  if (shown_) fmt::print(stderr, "\r\033[K");
  signal(SIGINT, SIG_DFL);
}

void StatusLine::show(const std::string& text) {
  if (!terminal_) return;
  shown_ = true;
  fmt::print(stderr, "\r{}\033[K", text);
}

}  // namespace foretrain

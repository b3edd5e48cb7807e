#include "reports/cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "model/base/text.hpp"
#include "model/base/utf8.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

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

/// Clears the line, and lets the signal end the program: shells call that 130.
extern "C" void clear_and_end(int number) {
  constexpr std::string_view clear = "\r\033[K";
  [[maybe_unused]] const auto ignored = write(STDERR_FILENO, clear.data(), clear.size());
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

void fit_pages_to_window() {
  if (isatty(STDOUT_FILENO) == 0) return;
  if (const int columns = window_width(); columns > 0) set_page_width(columns);
}

void print_page(std::string_view page) {
  const std::string text = printable(page);
  std::fwrite(text.data(), 1, text.size(), stdout);
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

#include "cmd/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "cmd/colours.h"
#include "cmd/printable.h"

namespace lookout::cmd {
namespace {

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kClearToEndOfLine = "\x1b[K";
constexpr const char* kClearBelow = "\x1b[J";

winsize size() {
  winsize out{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &out) != 0) return {};
  return out;
}

/// The length of the escape sequence (a colour, for example) at the start of the text, or 0.
std::size_t sequence_at(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (text[i] >= '@' && text[i] <= '~') return i + 1;
  }
  return text.size();
}

/// Cuts the line after `columns` columns. Escape sequences have no width; those after the cut are
/// kept.
std::string cut(const std::string& line, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  bool is_full = false;
  for (std::size_t i = 0; i < line.size();) {
    const std::string_view rest = std::string_view(line).substr(i);
    if (const std::size_t size = sequence_at(rest); size > 0) {
      out += rest.substr(0, size);
      i += size;
      continue;
    }
    const Character next = first_character(rest);
    is_full = is_full || used + next.columns > columns;
    if (!is_full) {
      out += rest.substr(0, next.bytes);
      used += next.columns;
    }
    i += next.bytes;
  }
  return out;
}

/// Unlike fmt::print(), does not throw if standard output is closed.
void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1 && has_cursor(); }

std::size_t terminal_rows() {
  const auto rows = size().ws_row;
  return rows == 0 ? 24 : rows;
}

std::size_t terminal_columns() {
  const auto columns = size().ws_col;
  return columns == 0 ? 80 : columns;
}

std::string fitted(const std::string& text, std::size_t rows, std::size_t columns) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  if (lines.size() > rows && rows > 0) {
    const std::size_t left_out = lines.size() - rows + 1;
    lines.resize(rows - 1);
    lines.push_back(fmt::format("... and {} more", left_out));
  }
  std::string out;
  for (const auto& line : lines) out += cut(line, columns) + "\n";
  return out;
}

LiveScreen::LiveScreen() { print(kEnter); }

LiveScreen::~LiveScreen() {
  print(kLeave);
  std::fflush(stdout);
}

void LiveScreen::show(const std::string& text) const {
  const std::string lines = fitted(text, terminal_rows() - 1, terminal_columns());
  std::string out = kHome;
  for (const char c : lines) {
    if (c == '\n') out += kClearToEndOfLine;
    out += c;
  }
  // In one write, to avoid flicker.
  print(out + kClearBelow);
  std::fflush(stdout);
}

}  // namespace lookout::cmd

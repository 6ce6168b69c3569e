#include "cmd/colours.h"

#include <cstdlib>
#include <string_view>

namespace lookout::cmd {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

bool use_colours() { return variable("NO_COLOR").empty(); }

bool has_cursor() {
  const std::string_view terminal = variable("TERM");
  return !terminal.empty() && terminal != "dumb";
}

}  // namespace lookout::cmd

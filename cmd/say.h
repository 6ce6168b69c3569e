// Messages on standard error.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace lookout::cmd {

/// Writes lines to standard error. Replaces control characters, as texts may come from servers and
/// files. Unlike fmt::print(), does not throw if standard error is closed. Thread-safe.
void say_text(std::string_view text);

/// The same, formatted.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_text(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lookout::cmd

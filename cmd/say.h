// Messages for people, on standard error.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace lookout::cmd {

/// Writes lines to standard error, without control characters in them: what they say may come from
/// servers and files. Unlike fmt::print(), this does not throw if nobody reads: a message never
/// decides how the program ends. From any thread.
void say_text(std::string_view text);

/// The same, formatted.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_text(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lookout::cmd

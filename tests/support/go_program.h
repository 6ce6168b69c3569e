// The Go programs that scripts/go-interop.sh builds.
#pragma once

#include <cstdlib>
#include <string>

namespace lookout::test {

/// The value of an environment variable; empty if there is none.
inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The path where the script puts `name`, unless the environment variable `named_by` overrides it.
inline std::string go_program(const char* named_by, const std::string& name) {
  if (auto named = variable(named_by); !named.empty()) return named;
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? variable("HOME") + "/.cache" : cache) + "/lookout/" + name;
}

}  // namespace lookout::test

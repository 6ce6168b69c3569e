// Environment variables during a test.
#pragma once

#include <stdlib.h>

#include <optional>
#include <string>

#include "lookout/base/pinned.h"

namespace lookout::test {

/// Sets a variable, or unsets it for nullptr, and restores it at the end.
class ScopedEnv : public base::Pinned {
 public:
  ScopedEnv(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = ::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  ScopedEnv(std::string name, const std::string& value)
      : ScopedEnv(std::move(name), value.c_str()) {}
  ~ScopedEnv() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(name_.c_str());
    } else {
      ::setenv(name_.c_str(), value, 1);
    }
  }

  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace lookout::test

// The base of every exception that Lookout throws.
#pragma once

#include <stdexcept>
#include <string>

namespace lookout {

/// The base class of Lookout's exceptions. The message says what failed and where, for a human
/// reader.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// An argument that breaks the contract of a function: a bug in the calling program.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

}  // namespace lookout

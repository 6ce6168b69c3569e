// The base of every exception that Lookout throws.
#pragma once

#include <stdexcept>
#include <string>

namespace lookout {

/// A failure that the caller must see. The message says what failed and where, in words for a
/// person.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// An argument that breaks the contract of a function: a mistake of the calling program.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

}  // namespace lookout

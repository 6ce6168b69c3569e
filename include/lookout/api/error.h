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

namespace api {

/// Bytes from outside that are not what they should be: malformed JSON, a timestamp that is none.
class DecodeError : public Error {
 public:
  using Error::Error;
};

}  // namespace api
}  // namespace lookout

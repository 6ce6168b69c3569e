// Transport failures.
#pragma once

#include <exception>
#include <string>

#include "lookout/api/error.h"

namespace lookout::rest {

/// The exchange with the server failed. (If the server answers, even with a refusal, the error is
/// api::StatusError.)
class TransportError : public Error {
 public:
  enum class Kind {
    kRefused,      ///< nothing listens on the port
    kUnreachable,  ///< no address, no route, or connect timeout
    kTls,          ///< the server's or the client's certificate was rejected
    kTimeout,      ///< the request's deadline passed
    kBroken,       ///< the connection broke, or the answer stopped in the middle
    kCancelled,    ///< the caller asked to stop, or the client was closed
    kProtocol,     ///< the answer is not valid HTTP or not a valid answer
    kOther
  };

  TransportError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// Predicates like those of client-go's utilnet, for any exception.
bool is_connection_refused(const std::exception& e);
bool is_cancelled(const std::exception& e);
/// True if a retry may succeed: refused, unreachable, timed out or broken.
bool is_transient(const std::exception& e);
/// True if the server has answered that it has no object of this name. Unlike api::is_not_found(),
/// false for a 404 that says nothing about the object: a proxy answered in the server's place, or
/// the server does not serve the resource.
bool is_object_missing(const std::exception& e);

}  // namespace lookout::rest

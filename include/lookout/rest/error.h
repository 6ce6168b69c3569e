// Failures below HTTP.
#pragma once

#include <exception>
#include <string>

#include "lookout/api/error.h"

namespace lookout::rest {

/// The exchange with the server did not come to its end. (A server that answers, even with a
/// refusal, is api::StatusError.)
class TransportError : public Error {
 public:
  enum class Kind {
    kRefused,      ///< nobody listens there
    kUnreachable,  ///< no address, no route, no connection within the time
    kTls,          ///< the other side is not who it should be, or does not take our certificate
    kTimeout,      ///< the request's deadline passed
    kBroken,       ///< the connection broke, or the answer stopped in the middle
    kCancelled,    ///< the caller asked to stop, or the client was closed
    kProtocol,     ///< the answer is no HTTP, or no answer to what was asked
    kOther
  };

  TransportError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// Predicates in the manner of client-go's utilnet, for any exception.
bool is_connection_refused(const std::exception& e);
bool is_cancelled(const std::exception& e);
/// The exchange may work when tried again: refused, unreachable, timed out or broken.
bool is_transient(const std::exception& e);

}  // namespace lookout::rest

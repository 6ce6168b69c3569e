// Reads the response of a call.
#pragma once

#include <memory>
#include <string>

#include "apiserver/grpc/channel.h"

namespace lookout::test {

/// All messages, framed, until the call ends.
inline Awaitable<std::string> read_all(std::shared_ptr<apiserver::grpc::Call> call) {
  std::string out;
  for (;;) {
    const std::string piece = co_await call->read();
    if (piece.empty()) break;
    out += piece;
  }
  co_return out;
}

}  // namespace lookout::test

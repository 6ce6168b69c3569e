// A scripted HTTP/2 server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lookout/base/pinned.h"
#include "tests/rest/certificates.h"

namespace lookout::test {

/// Listens on 127.0.0.1 with TLS and supports as much HTTP/2 as libcurl needs: it acknowledges
/// settings and pings, ignores the heads of requests, and passes each complete request to the
/// script.
class Http2Peer : public base::Pinned {
 public:
  /// One connection. Only for the script.
  class Connection {
   public:
    virtual ~Connection() = default;
    /// Sends the head and a part of the body; more follows.
    virtual void begin(std::uint32_t stream, const std::string& body) = 0;
    virtual void respond(std::uint32_t stream, const std::string& body) = 0;
    virtual void reset(std::uint32_t stream, std::uint32_t error) = 0;
    virtual void go_away(std::uint32_t last_stream) = 0;
    /// Ends the connection.
    virtual void close() = 0;
  };
  struct Request {
    int connection = 0;        // the number of the connection, from 0
    int number = 0;            // the number of the request
    std::uint32_t stream = 0;  // the number of the stream
    std::string body;
  };
  using Script = std::function<void(Connection&, const Request&)>;

  Http2Peer(const KeyPair& pair, Script script);
  ~Http2Peer();

  int port() const;

  static constexpr std::uint32_t kInternalError = 2;
  static constexpr std::uint32_t kRefusedStream = 7;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::test

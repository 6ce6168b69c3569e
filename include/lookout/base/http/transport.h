// Transport: the byte stream below HTTP, TCP with or without TLS.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lookout/base/http/message.h"

namespace lookout::http {

/// One connection. All calls run on its executor, with at most one read and one write at a time.
/// Operations throw boost::system::system_error when the connection breaks or is closed.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Awaitable<void> handshake() = 0;
  /// Waits for bytes and appends them to `input`; false at the end of the stream.
  virtual Awaitable<bool> read(std::string& input) = 0;
  /// Writes what can be written without waiting, and returns how many bytes that is: 0 if nothing,
  /// or if this kind of transport cannot do it.
  virtual std::size_t write_now(std::span<const boost::asio::const_buffer> /*buffers*/) {
    return 0;
  }
  virtual Awaitable<void> write(std::span<const boost::asio::const_buffer> buffers) = 0;
  /// Closes the stream in an orderly way after the last write.
  virtual Awaitable<void> shutdown() = 0;
  /// Closes immediately; pending operations fail.
  virtual void close() = 0;
  /// The client's certificate; empty if it sent none.
  virtual std::optional<PeerCertificate> peer() const { return std::nullopt; }
  virtual std::string client_address() const = 0;
};

/// Makes a server context from PEM files. With a `client_ca`, the server requests and verifies
/// client certificates but does not require them. Throws lookout::Error with the name of the file.
std::shared_ptr<boost::asio::ssl::context> make_tls_context(const std::string& cert_file,
                                                            const std::string& key_file,
                                                            const std::string& client_ca_file);

/// Makes a server context with a new self-signed certificate, which clients cannot verify.
std::shared_ptr<boost::asio::ssl::context> make_self_signed_context();

std::unique_ptr<Transport> make_plain_transport(boost::asio::ip::tcp::socket socket);
std::unique_ptr<Transport> make_tls_transport(boost::asio::ip::tcp::socket socket,
                                              std::shared_ptr<boost::asio::ssl::context> context);

}  // namespace lookout::http

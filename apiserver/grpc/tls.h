// TLS for HTTP/2 clients.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <string>

namespace lookout::apiserver::grpc {

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

/// A context that trusts the authorities in `ca` (PEM; empty: the system's) and presents a
/// certificate (PEM; empty: none). Throws lookout::Error if one of them cannot be used.
boost::asio::ssl::context make_client_context(const std::string& ca, const std::string& certificate,
                                              const std::string& key);

/// Call it before the handshake: the server's certificate must have `host`, a name or an address,
/// among its alternative names, as Go demands. Throws lookout::Error if that cannot be checked.
void expect_server(TlsStream& stream, const std::string& host);

/// Call it after the handshake: whether the server has chosen HTTP/2.
bool speaks_http2(TlsStream& stream);

}  // namespace lookout::apiserver::grpc

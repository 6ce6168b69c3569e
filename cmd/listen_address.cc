#include "cmd/listen_address.h"

#include <CLI/Error.hpp>
#include <boost/asio/ip/address.hpp>
#include <charconv>

#include "lookout/base/error.h"
#include "lookout/base/http/server.h"

namespace lookout::cmd {

std::string ListenAddress::text() const {
  const bool version6 = address.find(':') != std::string::npos;
  return (version6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

bool ListenAddress::is_loopback() const {
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(address, error);
  return !error && parsed.is_loopback();
}

bool ListenAddress::is_any() const {
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(address, error);
  return !error && parsed.is_unspecified();
}

ListenAddress parse_listen_address(const std::string& text, const std::string& option) {
  ListenAddress out;
  const std::size_t colon = text.rfind(':');
  const char* end = text.data() + text.size();
  const auto port = colon == std::string::npos
                        ? std::from_chars_result{end, std::errc::invalid_argument}
                        : std::from_chars(text.data() + colon + 1, end, out.port);
  if (port.ec != std::errc() || port.ptr != end) {
    throw CLI::ValidationError(option, "\"" + text + "\" is not an address such as 127.0.0.1:8001");
  }
  try {
    out.address = http::address_of_host(text.substr(0, colon));
  } catch (const Error& e) {
    throw CLI::ValidationError(option, e.what());
  }
  return out;
}

}  // namespace lookout::cmd

// The address on which a command listens.
#pragma once

#include <cstdint>
#include <string>

namespace lookout::cmd {

struct ListenAddress {
  std::string address;  // without brackets
  std::uint16_t port = 0;

  /// "127.0.0.1:8001", "[::1]:8001".
  std::string text() const;
  bool is_loopback() const;
  /// True if it means all addresses of the machine.
  bool is_any() const;
};

/// Parses "127.0.0.1:8001", "[::1]:8001", "localhost:8001", ":8001" (all addresses, IPv4 and IPv6).
/// Throws CLI::ValidationError, which names the option.
ListenAddress parse_listen_address(const std::string& text, const std::string& option = "--listen");

}  // namespace lookout::cmd

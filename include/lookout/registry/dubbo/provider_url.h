// ProviderUrl: the URL by which a dubbo provider announces itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lookout/base/attributes.h"

namespace lookout::registry::dubbo {

/// A provider as described by dubbo-go's common.URL.
///
///     ProviderUrl user{.host = "10.0.0.1", .port = 20000, .interface = "com.example.User"};
///     client.create(user.key(), "");
struct ProviderUrl {
  LOOKOUT_OPTION std::string protocol = "dubbo";
  LOOKOUT_OPTION std::string host = {};
  std::uint16_t port = 0;
  LOOKOUT_OPTION std::string interface = {};
  /// Empty: none. Consumers accept only this group and version.
  LOOKOUT_OPTION std::string group = {};
  LOOKOUT_OPTION std::string version = {};
  /// Empty: the interface.
  LOOKOUT_OPTION std::string path = {};
  /// All other parameters, unescaped: "methods", "weight", "timestamp", "pid", ...
  LOOKOUT_OPTION std::map<std::string, std::string> parameters = {};

  /// Parses the output of to_string(). The interface is the parameter of that name, as in dubbo-go,
  /// or else the path. Throws InvalidArgument, with the reason, for text that is not a URL, that
  /// has no host or port, or that is not UTF-8 without NUL bytes, before or after unescaping.
  static ProviderUrl parse(std::string_view text);

  /// "dubbo://10.0.0.1:20000/com.example.User?interface=com.example.User", with the parameters
  /// ordered by name and escaped as by Go's url.Values.Encode().
  std::string to_string() const;
  /// The key of its record: "/ROOT/INTERFACE/providers/URL", with the URL escaped as by Go's
  /// url.QueryEscape(). Throws InvalidArgument without an interface, host or port.
  std::string key(std::string_view root = "dubbo") const;
  /// Dubbo's name of the service: "GROUP/INTERFACE:VERSION". Contains the group and the version
  /// only if they are set; version 0.0.0 counts as none.
  std::string service() const;
  /// "PROTOCOL://HOST:PORT".
  std::string endpoint() const;

  friend bool operator==(const ProviderUrl&, const ProviderUrl&) = default;
};

}  // namespace lookout::registry::dubbo

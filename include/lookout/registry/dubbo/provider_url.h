// The URL by which a dubbo provider announces itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lookout/base/attributes.h"

namespace lookout::registry::dubbo {

/// A provider as dubbo-go's common.URL describes it.
///
///     ProviderUrl user{.host = "10.0.0.1", .port = 20000, .interface = "com.example.User"};
///     client.create(user.key(), "");
struct ProviderUrl {
  LOOKOUT_OPTION std::string protocol = "dubbo";
  LOOKOUT_OPTION std::string host = {};
  std::uint16_t port = 0;
  LOOKOUT_OPTION std::string interface = {};
  /// Empty: none. Consumers get on with exactly this group and version.
  LOOKOUT_OPTION std::string group = {};
  LOOKOUT_OPTION std::string version = {};
  /// Empty: the interface.
  LOOKOUT_OPTION std::string path = {};
  /// All other parameters, unescaped: "methods", "weight", "timestamp", "pid", ...
  LOOKOUT_OPTION std::map<std::string, std::string> parameters = {};

  /// Reads what to_string() writes. The interface is the parameter of that name, as in dubbo-go,
  /// else the path. Throws InvalidArgument, which says what is wrong, if it is no URL or has no
  /// host or port.
  static ProviderUrl parse(std::string_view text);

  /// "dubbo://10.0.0.1:20000/com.example.User?interface=com.example.User", with the parameters in
  /// the order of their names, escaped as Go's url.Values.Encode() does.
  std::string to_string() const;
  /// The key of its record: "/ROOT/INTERFACE/providers/URL" with the URL escaped as Go's
  /// url.QueryEscape() does. Throws InvalidArgument if it has no interface, host or port.
  std::string key(std::string_view root = "dubbo") const;
  /// The service as dubbo calls it: "GROUP/INTERFACE:VERSION". The group and the version only if
  /// there are any; a version 0.0.0 is none.
  std::string service() const;
  /// "PROTOCOL://HOST:PORT".
  std::string endpoint() const;

  friend bool operator==(const ProviderUrl&, const ProviderUrl&) = default;
};

}  // namespace lookout::registry::dubbo

// LoadRequest: a request to the load server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/load/objects.h"

namespace lookout::bench {

/// A load is a prefix of the API's path, so that any client can select a load by its server URL:
/// http://127.0.0.1:8080/load/count=20000,bytes=6200/api/v1/pods
struct Load {
  std::size_t count = 1000;  ///< objects
  std::size_t bytes = 6200;  ///< of JSON per object, for types with a variable size
  std::uint64_t events = 0;  ///< changes in a watch
  std::uint64_t rate = 0;    ///< events per second; 0: as fast as they are read
  std::uint64_t delay = 0;   ///< milliseconds before the first event
  bool json_only = false;    ///< encoding=json: JSON even if the client accepts protobuf

  /// Parses "count=20000,bytes=6200"; nullopt if it is malformed.
  static std::optional<Load> parse(std::string_view text);
  /// "/load/count=..."
  std::string path() const;
};

/// A request that the load server understands.
struct LoadRequest {
  Load load;
  const ObjectType* type = nullptr;
  std::string ns = {};  ///< empty: all namespaces
  bool watch = false;
  bool initial_events = false;
  std::size_t limit = 0;
  std::size_t offset = 0;  ///< the continue token
  bool protobuf = false;   ///< the client accepts it

  /// Parses "GET target" and the value of the Accept header. Empty if there is no such resource.
  static std::optional<LoadRequest> parse(std::string_view target, std::string_view accept);
};

}  // namespace lookout::bench

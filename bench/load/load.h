// LoadRequest: a request to the load server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/load/objects.h"

namespace lookout::bench {

/// A load is named in the path, before the path of the API, so that any client can ask for any load
/// by the URL of its server: http://127.0.0.1:8080/load/count=20000,bytes=6200/api/v1/pods
struct Load {
  std::size_t count = 1000;  ///< objects
  std::size_t bytes = 6200;  ///< of JSON each, where the type can be chosen so
  std::uint64_t events = 0;  ///< changes that a watch brings
  std::uint64_t rate = 0;    ///< of them a second; 0: as fast as they are read
  std::uint64_t delay = 0;   ///< milliseconds before the first of them
  bool json_only = false;    ///< encoding=json: protobuf is not spoken even to those who ask for it

  /// "count=20000,bytes=6200"; nothing if it is none.
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
  bool protobuf = false;   ///< the client asks for it

  /// Parses "GET target" and the value of the Accept header. Empty if there is no such resource.
  static std::optional<LoadRequest> parse(std::string_view target, std::string_view accept);
};

}  // namespace lookout::bench

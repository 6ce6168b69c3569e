// Limits that the codecs share.
#pragma once

#include <cstddef>

namespace lookout::api {

/// The nesting limit of recursive code: patches, mutable documents, and requests to the embedded
/// server. Deeper values are refused.
inline constexpr std::size_t kMaxDepth = 1000;

/// The nesting limit of objects that come from an API server or from etcd. It is kube-apiserver's
/// own limit (Go's encoding/json refuses more). It holds for all JSON, including JSON inside
/// protobuf; protobuf messages themselves may be nested kMaxDepth deep. The code that handles every
/// received object (parsers, flat form, to_json()) does not recurse.
inline constexpr std::size_t kMaxServedDepth = 10'000;

}  // namespace lookout::api

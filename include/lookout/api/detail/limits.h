// Limits that the codecs share.
#pragma once

#include <cstddef>

namespace lookout::api {

/// The nesting limit of code that recurses: patches, mutable documents, and requests to the
/// embedded server. Deeper values are refused.
inline constexpr std::size_t kMaxDepth = 1000;

/// The nesting limit of objects that an API server sends, or has written into etcd:
/// kube-apiserver's own (Go's encoding/json refuses more). It holds for JSON, also where protobuf
/// carries it; protobuf messages themselves may be nested kMaxDepth deep. The code that every
/// received object passes through (parsers, flat form, to_json()) does not recurse.
inline constexpr std::size_t kMaxServedDepth = 10'000;

}  // namespace lookout::api

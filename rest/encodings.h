// Encodings: the encoding to request for each resource.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "lookout/api/resource.h"
#include "lookout/api/stream_decoder.h"
#include "lookout/rest/content_type.h"
#include "lookout/rest/detail/http_transport.h"

namespace lookout::rest::detail {

/// The encoding of a request.
struct Encoding {
  bool protobuf = false;
  /// Objects with unknown fields are requested again in JSON.
  bool lossless = false;
};

/// Records the resources whose protobuf is unusable. Thread-safe.
class Encodings {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// How long protobuf is avoided after an object could not be decoded.
  static constexpr std::chrono::minutes kAvoided{10};

  Encoding wanted(ContentType type, const api::Resource& resource, bool metadata_only,
                  TimePoint now = std::chrono::steady_clock::now()) const;

  /// Requests the resource only in JSON from now on. `why` is for the log.
  void give_up_protobuf(const api::Resource& resource, std::string_view why);
  /// The same for kAvoided: one object could not be decoded, but later ones may.
  void avoid_protobuf(const api::Resource& resource, std::string_view why,
                      TimePoint now = std::chrono::steady_clock::now());

  /// Logs, once per resource, that fields are lost.
  void note_loss(const api::Resource& resource, const api::UnknownFields& fields);

 private:
  mutable std::mutex mutex_;
  std::set<std::string> json_only_;
  std::map<std::string, TimePoint> json_until_;
  std::set<std::string> lossy_;
};

/// The Accept header. `metadata_kind`: empty, or the kind of metadata-only responses.
std::string accept_header(bool protobuf, std::string_view metadata_kind);

bool is_protobuf(const HttpHead& head);

}  // namespace lookout::rest::detail

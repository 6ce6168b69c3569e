// Which encoding to ask for, resource by resource.
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

/// The encoding to request this time.
struct Encoding {
  bool protobuf = false;
  /// Objects that would lose something are asked for again, in JSON.
  bool lossless = false;
};

/// Remembers of which resources a server's protobuf is no good. Thread-safe.
class Encodings {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// For so long one object that cannot be decoded costs its resource protobuf.
  static constexpr std::chrono::minutes kAvoided{10};

  Encoding wanted(ContentType type, const api::Resource& resource, bool metadata_only,
                  TimePoint now = std::chrono::steady_clock::now()) const;

  /// Asks for no protobuf of the resource from now on. `why` is for the log.
  void give_up_protobuf(const api::Resource& resource, std::string_view why);
  /// The same for a while: an object could not be decoded, which the next ones can.
  void avoid_protobuf(const api::Resource& resource, std::string_view why,
                      TimePoint now = std::chrono::steady_clock::now());

  /// Says in the log, once for each resource, that fields are lost.
  void note_loss(const api::Resource& resource, const api::UnknownFields& fields);

 private:
  mutable std::mutex mutex_;
  std::set<std::string> json_only_;
  std::map<std::string, TimePoint> json_until_;
  std::set<std::string> lossy_;
};

/// The Accept header. `metadata_kind`: empty, or what carries the metadata alone.
std::string accept_header(bool protobuf, std::string_view metadata_kind);

bool is_protobuf(const HttpHead& head);

}  // namespace lookout::rest::detail

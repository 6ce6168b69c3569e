// Which encoding to ask for, resource by resource.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "lookout/api/resource.h"
#include "lookout/api/stream_decoder.h"
#include "lookout/rest/content_type.h"
#include "rest/http_transport.h"

namespace lookout::rest::detail {

/// What to ask for this time.
struct Encoding {
  bool protobuf = false;
  /// Objects that would lose something are asked for again, in JSON.
  bool lossless = false;
};

/// Remembers of which resources a server's protobuf is no good. Thread-safe.
class Encodings {
 public:
  Encoding wanted(ContentType type, const api::Resource& resource, bool metadata_only) const;

  /// Asks for no protobuf of the resource from now on. `why` is for the log.
  void give_up_protobuf(const api::Resource& resource, std::string_view why);

  /// Says in the log, once for each resource, that fields are lost.
  void note_loss(const api::Resource& resource, const api::UnknownFields& fields);

 private:
  mutable std::mutex mutex_;
  std::set<std::string> json_only_;
  std::set<std::string> lossy_;
};

/// The Accept header. `metadata_kind`: empty, or what carries the metadata alone.
std::string accept_header(bool protobuf, std::string_view metadata_kind);

bool is_protobuf(const HttpHead& head);

}  // namespace lookout::rest::detail

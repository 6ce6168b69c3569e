// JSON decoders for single objects, and incremental ones for list and watch bodies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/stream_decoder.h"
#include "lookout/api/watch.h"
#include "lookout/base/attributes.h"
#include "lookout/base/pinned.h"

namespace lookout::api {

/// Decodes single objects. Reusable (the buffers stay between calls), not thread-safe.
class JsonDecoder : public base::Pinned {
 public:
  explicit JsonDecoder(Projection projection = {});
  ~JsonDecoder();

  /// Sets the apiVersion and kind for objects that have none, such as the items of a typed list.
  void set_default_type(std::string api_version, std::string kind);

  /// Decodes one JSON object. Uses `json` as working space and destroys its content. Returns an
  /// empty handle if the text is malformed, is not an object, is nested deeper than 1000 levels, is
  /// not UTF-8, or contains a number far beyond the range of a double (1e400). error() then gives
  /// the reason and the byte offset.
  Object decode(std::string& json);
  const std::string& error() const LOOKOUT_LIFETIME_BOUND;
  /// "namespace/name" of the object that was refused last, if its metadata is readable; else empty.
  std::string refused_key() const;

  /// The nesting limit; 1000 by default. Recursive code needs more stack for deeper objects.
  void set_max_depth(std::size_t levels);

  /// For the stream decoders: decodes one watch event, `{"type":...,"object":{...}}`. Empty if it
  /// is malformed. Projections do not apply to errors and bookmarks.
  std::optional<WatchEvent> decode_event(std::string& json);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Decodes list bodies in JSON. As in kube-apiserver, items may be nested 10,000 levels deep; the
/// same limit holds for the objects of a watch.
class JsonListDecoder final : public ListDecoderOfEncoding {
 public:
  JsonListDecoder(StreamOptions options, OnItem on_item, OnMalformed on_malformed);
};

/// Decodes watch bodies in JSON: a sequence of objects.
class JsonWatchDecoder final : public DecoderOfEncoding<WatchDecoder> {
 public:
  JsonWatchDecoder(StreamOptions options, OnEvent on_event, OnMalformed on_malformed);
};

}  // namespace lookout::api

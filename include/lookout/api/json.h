// Decoding JSON: single objects, list bodies and watch bodies, the latter two as the bytes come in.
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

namespace lookout::api {

/// Decodes single objects. Reusable (the buffers stay between calls), not thread-safe.
class JsonDecoder {
 public:
  explicit JsonDecoder(Projection projection = {});
  ~JsonDecoder();
  JsonDecoder(const JsonDecoder&) = delete;
  JsonDecoder& operator=(const JsonDecoder&) = delete;

  /// Gives objects that come without apiVersion and kind these (as the items of a typed list do).
  void set_default_type(std::string api_version, std::string kind);

  /// Decodes one JSON object, using `json` as working space: its content is lost. Returns an empty
  /// handle when the text is malformed, is no object, is nested deeper than 1000 levels, is not
  /// UTF-8 or has a number far beyond the range of a double (1e400); error() then says why and at
  /// which byte.
  Object decode(std::string& json);
  const std::string& error() const LOOKOUT_LIFETIME_BOUND;
  /// "namespace/name" of what has just been refused, where its metadata can be read; else empty.
  std::string refused_key() const;

  /// The nesting limit; 1000 by default. Code that recurses over deeper objects needs stack for it.
  void set_max_depth(std::size_t levels);

  /// For the stream decoders: one watch event, `{"type":...,"object":{...}}`. Nothing when
  /// malformed. Errors and bookmarks are kept whole whatever the projection.
  std::optional<WatchEvent> decode_event(std::string& json);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// List bodies in JSON. Items may be nested as deeply as kube-apiserver lets them be, 10,000
/// levels; so may the objects of a watch.
class JsonListDecoder final : public ListDecoderOfEncoding {
 public:
  JsonListDecoder(StreamOptions options, OnItem on_item, OnMalformed on_malformed);
};

/// Watch bodies in JSON: one object after another.
class JsonWatchDecoder final : public DecoderOfEncoding<WatchDecoder> {
 public:
  JsonWatchDecoder(StreamOptions options, OnEvent on_event, OnMalformed on_malformed);
};

}  // namespace lookout::api

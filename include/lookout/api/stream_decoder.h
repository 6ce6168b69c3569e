// Incremental decoders of list and watch bodies: the interface of all encodings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/watch.h"
#include "lookout/base/attributes.h"

namespace lookout::api {

/// The default limit for a single object in a stream. An API server accepts requests up to 3 MB;
/// this limit leaves room for other servers and keeps a hostile one from exhausting memory.
inline constexpr std::size_t kDefaultMaxObjectBytes = 128u << 20;

/// An object in a stream that could not be decoded. The stream continues after it.
struct MalformedObject {
  std::string reason;  ///< why, and at which byte offset; never the content
  /// "namespace/name" or "name", if readable; else empty.
  std::string key;
  std::size_t bytes = 0;
};

struct StreamOptions {
  LOOKOUT_OPTION Projection projection = {};
  std::size_t max_object_bytes = kDefaultMaxObjectBytes;
  /// The requested type, for items that carry none.
  LOOKOUT_OPTION std::string api_version = {};
  LOOKOUT_OPTION std::string kind = {};
  /// For encodings that cannot represent fields unknown to this library's schema (protobuf): the
  /// stream ends with an error before an object that would lose data or cannot be decoded.
  bool lossless = false;
};

/// Fields that an object lost in decoding.
struct UnknownFields {
  std::size_t count = 0;
  std::string first = {};  ///< "field 99 of PodSpec"
};

/// Takes a body in pieces and delivers each object as soon as its last byte arrives. Holds at most
/// one object in memory, regardless of the pieces and the length of the body. Not thread-safe;
/// callbacks run inside feed().
class StreamDecoder {
 public:
  using OnMalformed = std::function<void(const MalformedObject&)>;

  virtual ~StreamDecoder() = default;

  /// Returns false if the body is invalid; error() then gives the reason, and further input is
  /// ignored.
  virtual bool feed(std::string_view bytes) = 0;
  /// Call at the end of the body. Returns true if the body is complete; otherwise error() says what
  /// is missing.
  virtual bool finish() = 0;
  virtual const std::string& error() const LOOKOUT_LIFETIME_BOUND = 0;

  /// The fields that all objects so far have lost. JSON loses none.
  virtual UnknownFields unknown_fields() const { return {}; }
  /// True if the stream ended because of StreamOptions::lossless.
  virtual bool would_lose() const { return false; }
};

/// Decodes a list body.
class ListDecoder : public StreamDecoder {
 public:
  using OnItem = std::function<void(Object)>;

  /// Metadata of the list itself; complete after finish().
  virtual std::string_view api_version() const LOOKOUT_LIFETIME_BOUND = 0;
  virtual std::string_view kind() const LOOKOUT_LIFETIME_BOUND = 0;
  virtual std::string_view resource_version() const LOOKOUT_LIFETIME_BOUND = 0;
  virtual std::string_view continue_token() const LOOKOUT_LIFETIME_BOUND = 0;
  virtual std::optional<std::int64_t> remaining_item_count() const = 0;
};

/// Decodes a watch body, a sequence of events. The body is complete unless it ends within an event.
class WatchDecoder : public StreamDecoder {
 public:
  using OnEvent = std::function<void(WatchEvent)>;
};

/// The base of the decoders for each encoding; delegates to an implementation.
template <class Decoder>
class DecoderOfEncoding : public Decoder {
 public:
  DecoderOfEncoding(const DecoderOfEncoding&) = delete;
  DecoderOfEncoding& operator=(const DecoderOfEncoding&) = delete;

  bool feed(std::string_view bytes) final { return work_->feed(bytes); }
  bool finish() final { return work_->finish(); }
  const std::string& error() const LOOKOUT_LIFETIME_BOUND final { return work_->error(); }
  UnknownFields unknown_fields() const final { return work_->unknown_fields(); }
  bool would_lose() const final { return work_->would_lose(); }

 protected:
  explicit DecoderOfEncoding(std::unique_ptr<Decoder> work) : work_(std::move(work)) {}
  const Decoder& work() const { return *work_; }

 private:
  const std::unique_ptr<Decoder> work_;
};

class ListDecoderOfEncoding : public DecoderOfEncoding<ListDecoder> {
 public:
  std::string_view api_version() const LOOKOUT_LIFETIME_BOUND final { return work().api_version(); }
  std::string_view kind() const LOOKOUT_LIFETIME_BOUND final { return work().kind(); }
  std::string_view resource_version() const LOOKOUT_LIFETIME_BOUND final {
    return work().resource_version();
  }
  std::string_view continue_token() const LOOKOUT_LIFETIME_BOUND final {
    return work().continue_token();
  }
  std::optional<std::int64_t> remaining_item_count() const final {
    return work().remaining_item_count();
  }

 protected:
  using DecoderOfEncoding::DecoderOfEncoding;
};

}  // namespace lookout::api

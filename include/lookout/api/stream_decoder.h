// List and watch bodies, decoded while they come in: what the encodings have in common.
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

/// The default limit for a single object in a stream. An API server takes requests up to 3 MB; this
/// leaves room for what other servers may do and keeps a hostile one from filling the memory.
inline constexpr std::size_t kDefaultMaxObjectBytes = 128u << 20;

/// An object in a stream that could not be decoded. The stream goes on behind it.
struct MalformedObject {
  std::string reason;  ///< why, and at which byte of the object; never its content
  /// "namespace/name", or "name", where that could be read; else empty.
  std::string key;
  std::size_t bytes = 0;
};

struct StreamOptions {
  LOOKOUT_OPTION Projection projection = {};
  std::size_t max_object_bytes = kDefaultMaxObjectBytes;
  /// The type that the caller asked for; given to items that come without one.
  LOOKOUT_OPTION std::string api_version = {};
  LOOKOUT_OPTION std::string kind = {};
  /// For encodings that cannot carry what the schema of this library does not know (protobuf): end
  /// the stream, by an error, before an object that would lose something or cannot be decoded.
  bool lossless = false;
};

/// Fields that an object had and that are lost.
struct UnknownFields {
  std::size_t count = 0;
  std::string first = {};  ///< "field 99 of PodSpec"
};

/// Takes a body piece by piece and hands out each object in it as soon as its last byte is there.
/// Holds at most one object, however the pieces are cut and however long the body is. Not
/// thread-safe; callbacks run inside feed().
class StreamDecoder {
 public:
  using OnMalformed = std::function<void(const MalformedObject&)>;

  virtual ~StreamDecoder() = default;

  /// Returns false when the body cannot be what it should be; error() says why and further input is
  /// ignored.
  virtual bool feed(std::string_view bytes) = 0;
  /// To be called at the end of the body: true if it came whole. When false, error() says what is
  /// missing.
  virtual bool finish() = 0;
  virtual const std::string& error() const LOOKOUT_LIFETIME_BOUND = 0;

  /// The fields that all objects so far have lost. JSON loses nothing.
  virtual UnknownFields unknown_fields() const { return {}; }
  /// Whether the stream ended because of StreamOptions::lossless.
  virtual bool would_lose() const { return false; }
};

/// Decodes a list body.
class ListDecoder : public StreamDecoder {
 public:
  using OnItem = std::function<void(Object)>;

  /// The list itself says it; known after finish() at the latest.
  virtual std::string_view api_version() const LOOKOUT_LIFETIME_BOUND = 0;
  virtual std::string_view kind() const LOOKOUT_LIFETIME_BOUND = 0;
  virtual std::string_view resource_version() const LOOKOUT_LIFETIME_BOUND = 0;
  virtual std::string_view continue_token() const LOOKOUT_LIFETIME_BOUND = 0;
  virtual std::optional<std::int64_t> remaining_item_count() const = 0;
};

/// Decodes a watch body, a sequence of events. It has come whole unless it ends in the middle of
/// one.
class WatchDecoder : public StreamDecoder {
 public:
  using OnEvent = std::function<void(WatchEvent)>;
};

/// The base of the decoders of the encodings, whose work another object does.
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

// Incremental decoders of list and watch bodies in protobuf.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "api/object_key.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/wire_reader.h"
#include "lookout/api/protobuf.h"

namespace lookout::api {
namespace {

using detail::WireContent;

/// The maximum size of a list's type and metadata.
constexpr std::size_t kMaxMetaBytes = 1u << 20;

/// Collects a number of bytes from pieces. A value within one piece is not copied. Longer values than
/// the limit are skipped.
class BytesCollector {
 public:
  void start(std::uint64_t size, std::size_t limit) {
    size_ = size;
    missing_ = size;
    limit_ = limit;
    // Do not keep the buffer of a huge object.
    if (buffer_.capacity() > kKeptCapacity) std::string().swap(buffer_);
    buffer_.clear();
    bytes_ = {};
  }

  /// Consumes the value's part of `input`; true if the value is complete.
  bool take(std::string_view& input) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(missing_, input.size()));
    const std::string_view taken = input.substr(0, size);
    input.remove_prefix(size);
    const bool first = missing_ == size_;
    missing_ -= size;
    if (first && missing_ == 0) {
      bytes_ = taken;
      return true;
    }
    if (too_large()) return missing_ == 0;
    buffer_.append(taken);
    bytes_ = buffer_;
    return missing_ == 0;
  }

  bool too_large() const { return size_ > limit_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t taken() const { return size_ - missing_; }
  /// Valid until the next take() or the end of the piece.
  std::string_view bytes() const { return bytes_; }

  MalformedObject malformed(std::string reason, std::string key = {}) const {
    return {std::move(reason), std::move(key), static_cast<std::size_t>(size_)};
  }
  MalformedObject oversize() const {
    return malformed(fmt::format("larger than the limit of {} bytes", limit_));
  }

 private:
  static constexpr std::size_t kKeptCapacity = 1u << 20;

  std::uint64_t size_ = 0;
  std::uint64_t missing_ = 0;
  std::size_t limit_ = 0;
  std::string buffer_;
  std::string_view bytes_;
};

/// The unknown fields of a stream.
class Losses {
 public:
  explicit Losses(bool lossless) : lossless_(lossless) {}

  /// Whether an object with these unknown fields may be delivered.
  bool admit(const UnknownFields& fields) {
    if (fields.count == 0) return true;
    if (total_.count == 0) total_.first = fields.first;
    total_.count += fields.count;
    if (!lossless_) return true;
    refusal_ = fmt::format("the schema does not know {}", fields.first);
    return false;
  }
  /// Whether the stream may continue after an object that cannot be decoded.
  bool admit(const MalformedObject& object) {
    if (lossless_) refusal_ = fmt::format("an object cannot be decoded: {}", object.reason);
    return !lossless_;
  }

  const UnknownFields& total() const { return total_; }
  const std::string& refusal() const { return refusal_; }

 private:
  const bool lossless_;
  UnknownFields total_;
  std::string refusal_;
};

// -------------------------------------------------------------------------------------------------

/// The shared part of the decoders of list and watch bodies.
class ProtobufStream {
 protected:
  ProtobufStream(const StreamOptions& options, StreamDecoder::OnMalformed on_malformed)
      : decoder_(options.projection),
        max_object_bytes_(options.max_object_bytes),
        losses_(options.lossless),
        on_malformed_(std::move(on_malformed)) {}
  ~ProtobufStream() = default;

  /// Delivers the decoded object, unless it has lost fields that must not be lost.
  template <class T>
  void deliver(const std::function<void(T)>& to, T decoded) {
    if (losses_.admit(decoder_.unknown_fields())) {
      to(std::move(decoded));
    } else {
      error_ = losses_.refusal();
    }
  }

  void report(const MalformedObject& malformed) {
    if (losses_.admit(malformed)) {
      on_malformed_(malformed);
    } else {
      error_ = losses_.refusal();
    }
  }

  ProtobufDecoder decoder_;
  const std::size_t max_object_bytes_;
  Losses losses_;
  const StreamDecoder::OnMalformed on_malformed_;
  BytesCollector value_;
  std::string error_;
};

class ProtobufListWork final : public ListDecoder, private ProtobufStream {
 public:
  ProtobufListWork(const StreamOptions& options, OnItem on_item, OnMalformed on_malformed)
      : ProtobufStream(options, std::move(on_malformed)), on_item_(std::move(on_item)) {
    value_.start(kProtobufMagic.size(), kProtobufMagic.size());
  }

  bool feed(std::string_view input) override {
    while (error_.empty() && (!input.empty() || state_ == State::kBytes)) {
      switch (state_) {
        case State::kMagic:
          if (!value_.take(input)) return true;
          if (value_.bytes() != kProtobufMagic) {
            fail("it does not begin with the magic bytes of the protobuf encoding");
          } else {
            state_ = State::kTag;
          }
          break;
        case State::kTag:
          if (take_number(input)) begin_field();
          break;
        case State::kNumber:
          if (!take_number(input)) break;
          finish_other();
          if (error_.empty()) end_field();
          break;
        case State::kSize:
          if (take_number(input)) begin_bytes();
          break;
        case State::kBytes:
          if (!value_.take(input)) return true;
          finish_bytes();
          if (error_.empty()) end_field();
          break;
      }
    }
    return error_.empty();
  }

  bool finish() override {
    if (!error_.empty()) return false;
    if (state_ == State::kMagic && value_.taken() == 0) {
      error_ = "the body is empty";
    } else if (state_ != State::kTag || digits_ != 0 || inside_) {
      error_ = "the body ends in the middle of the list";
    } else if (!saw_list_) {
      error_ = "the body ends before the list";
    }
    return error_.empty();
  }

  const std::string& error() const override { return error_; }
  std::string_view api_version() const override { return api_version_; }
  std::string_view kind() const override { return kind_; }
  std::string_view resource_version() const override { return resource_version_; }
  std::string_view continue_token() const override { return continue_token_; }
  std::optional<std::int64_t> remaining_item_count() const override {
    return remaining_item_count_;
  }
  UnknownFields unknown_fields() const override { return losses_.total(); }
  bool would_lose() const override { return !losses_.refusal().empty(); }

 private:
  enum class State {
    kMagic,
    kTag,     // before or inside the tag of a field
    kNumber,  // inside a value that is a number
    kSize,    // inside the size of a value that is bytes
    kBytes,   // inside such a value
  };
  // The fields of runtime.Unknown, which contains the list.
  enum OuterField : std::uint64_t {
    kTypeMeta = 1,
    kRaw = 2,
    kContentEncoding = 3,
    kContentType = 4
  };
  enum ListField : std::uint64_t { kMetadata = 1, kItems = 2 };

  void fail(std::string_view why) { error_ = fmt::format("malformed list: {}", why); }

  /// Counts bytes of the list.
  bool spend(std::uint64_t size) {
    if (!inside_) return true;
    if (size > left_) {
      fail("a field goes beyond the end of the list");
      return false;
    }
    left_ -= size;
    return true;
  }

  /// Consumes a number byte by byte; true after the last byte.
  bool take_number(std::string_view& input) {
    while (!input.empty()) {
      const auto byte = static_cast<unsigned char>(input.front());
      input.remove_prefix(1);
      if (!spend(1)) return false;
      if (digits_ == 9 && byte > 1) {
        fail("a number is too large");
        return false;
      }
      number_ |= std::uint64_t{byte & 0x7Fu} << (7 * digits_++);
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::uint64_t next_number() {
    digits_ = 0;
    return std::exchange(number_, 0);
  }

  void begin_field() {
    const std::uint64_t tag = next_number();
    field_ = tag >> 3;
    wire_type_ = static_cast<unsigned>(tag & 7);
    if (field_ == 0 || field_ > detail::kMaxFieldNumber) {
      fail(fmt::format("{} is not a field number", field_));
    } else if (wire_type_ == detail::kVarint) {
      state_ = State::kNumber;
    } else if (wire_type_ == detail::kBytes) {
      state_ = State::kSize;
    } else if (wire_type_ == detail::kFixed64 || wire_type_ == detail::kFixed32) {
      const std::uint64_t size = wire_type_ == detail::kFixed64 ? 8 : 4;
      if (!spend(size)) return;
      value_.start(size, size);
      state_ = State::kBytes;
    } else {
      fail(fmt::format("field {} has the unknown wire type {}", field_, wire_type_));
    }
  }

  void begin_bytes() {
    const std::uint64_t size = next_number();
    if (!inside_ && field_ == kRaw) {
      begin_list(size);
      return;
    }
    if (!spend(size)) return;
    const bool item = inside_ && field_ == kItems;
    value_.start(size, item ? max_object_bytes_ : kMaxMetaBytes);
    state_ = State::kBytes;
  }

  void begin_list(std::uint64_t size) {
    if (std::exchange(saw_list_, true)) return fail("the list is given twice");
    constexpr std::string_view kSuffix = "List";
    const std::string_view item_kind =
        kind_.ends_with(kSuffix) ? std::string_view(kind_).substr(0, kind_.size() - kSuffix.size())
                                 : std::string_view();
    if (!has_protobuf(api_version_, kind_) || !has_protobuf(api_version_, item_kind)) {
      return fail(fmt::format("not a list of a built-in kind but {} in version {}",
                              detail::quote(kind_), detail::quote(api_version_)));
    }
    item_kind_ = item_kind;
    inside_ = true;
    left_ = size;
    end_field();
  }

  void end_field() {
    next_number();
    state_ = State::kTag;
    if (inside_ && left_ == 0) inside_ = false;
  }

  void finish_bytes() {
    if (wire_type_ != detail::kBytes) return finish_other();
    if (inside_ && field_ == kItems) return finish_item();
    if (inside_ ? field_ != kMetadata : field_ > kContentType) return finish_other();
    if (value_.too_large()) return fail("its type and metadata are too large");
    const std::string_view bytes = value_.bytes();
    if (inside_) {
      read_metadata(bytes);
    } else if (field_ == kTypeMeta) {
      read_type(bytes);
    } else if (field_ == kContentEncoding && !bytes.empty()) {
      fail(fmt::format("the content encoding {} is not supported", detail::quote(bytes)));
    } else if (field_ == kContentType && !bytes.empty() && bytes != kProtobufMediaType) {
      fail(fmt::format("the content type {} is not supported", detail::quote(bytes)));
    }
  }

  void finish_other() {
    if (!inside_) return;
    if (field_ == kMetadata || field_ == kItems) {
      fail("a field has the wrong wire type");
    } else if (!losses_.admit(UnknownFields{1, fmt::format("field {} of {}", field_, kind_)})) {
      error_ = losses_.refusal();
    }
  }

  void read_type(std::string_view bytes) {
    const bool fine =
        detail::for_each_field(bytes, [&](std::uint64_t number, const WireContent& c) {
          if (number == 1) api_version_ = c.bytes;
          if (number == 2) kind_ = c.bytes;
        });
    if (!fine) fail("its type cannot be read");
  }

  void read_metadata(std::string_view bytes) {
    const bool fine =
        detail::for_each_field(bytes, [&](std::uint64_t number, const WireContent& c) {
          if (number == 2) resource_version_ = c.bytes;
          if (number == 3) continue_token_ = c.bytes;
          if (number == 4) remaining_item_count_ = static_cast<std::int64_t>(c.number);
        });
    if (!fine) fail("its metadata cannot be read");
  }

  void finish_item() {
    if (value_.too_large()) return report(value_.oversize());
    Object object = decoder_.decode_item(api_version_, item_kind_, value_.bytes());
    if (!object) {
      return report(value_.malformed(decoder_.error(), detail::key_in_protobuf(value_.bytes())));
    }
    deliver(on_item_, std::move(object));
  }

  const OnItem on_item_;

  State state_ = State::kMagic;
  std::uint64_t number_ = 0;
  unsigned digits_ = 0;  // received bytes of a number
  std::uint64_t field_ = 0;
  unsigned wire_type_ = 0;
  bool saw_list_ = false;
  bool inside_ = false;     // in the list, not in its envelope
  std::uint64_t left_ = 0;  // remaining bytes of the list after the current field

  std::string api_version_;
  std::string kind_;
  std::string item_kind_;
  std::string resource_version_;
  std::string continue_token_;
  std::optional<std::int64_t> remaining_item_count_;
};

}  // namespace

ProtobufListDecoder::ProtobufListDecoder(const StreamOptions& options, OnItem on_item,
                                         OnMalformed on_malformed)
    : ListDecoderOfEncoding(std::make_unique<ProtobufListWork>(options, std::move(on_item),
                                                               std::move(on_malformed))) {}

// -------------------------------------------------------------------------------------------------

namespace {

class ProtobufWatchWork final : public WatchDecoder, private ProtobufStream {
 public:
  ProtobufWatchWork(const StreamOptions& options, OnEvent on_event, OnMalformed on_malformed)
      : ProtobufStream(options, std::move(on_malformed)), on_event_(std::move(on_event)) {
    begin_head();
  }

  bool feed(std::string_view input) override {
    while (error_.empty() && value_.take(input)) {
      if (in_head_) {
        std::uint64_t size = 0;
        for (const char c : value_.bytes()) size = size << 8 | static_cast<unsigned char>(c);
        in_head_ = false;
        value_.start(size, max_object_bytes_);
      } else {
        finish_event();
        begin_head();
      }
    }
    return error_.empty();
  }

  bool finish() override {
    if (error_.empty() && !(in_head_ && value_.taken() == 0)) {
      error_ = fmt::format("the stream ended {} bytes into an event",
                           value_.taken() + (in_head_ ? 0 : kHeadBytes));
    }
    return error_.empty();
  }

  const std::string& error() const override { return error_; }
  UnknownFields unknown_fields() const override { return losses_.total(); }
  bool would_lose() const override { return !losses_.refusal().empty(); }

 private:
  static constexpr std::size_t kHeadBytes = 4;

  void begin_head() {
    in_head_ = true;
    value_.start(kHeadBytes, kHeadBytes);
  }

  void finish_event() {
    if (value_.too_large()) return report(value_.oversize());
    auto event = decoder_.decode_event(value_.bytes());
    if (!event) return report(value_.malformed(decoder_.error()));
    deliver(on_event_, std::move(*event));
  }

  const OnEvent on_event_;
  bool in_head_ = true;
};

}  // namespace

ProtobufWatchDecoder::ProtobufWatchDecoder(const StreamOptions& options, OnEvent on_event,
                                           OnMalformed on_malformed)
    : DecoderOfEncoding(std::make_unique<ProtobufWatchWork>(options, std::move(on_event),
                                                            std::move(on_malformed))) {}

}  // namespace lookout::api

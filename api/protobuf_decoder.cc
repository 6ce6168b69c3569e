#include <fmt/format.h>

#include "api/event_type.h"
#include "api/protobuf_parser.h"
#include "api/wire_table.h"
#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/protobuf.h"

namespace lookout::api {

class ProtobufDecoder::Impl {
 public:
  explicit Impl(Projection projection)
      : projection_(std::move(projection)), parser_(writer_, projection_.root()) {}

  Object decode(std::string_view bytes) {
    begin();
    return finish(parser_.parse_object(bytes));
  }

  Object decode_item(std::string_view api_version, std::string_view kind, std::string_view bytes) {
    begin();
    return finish(parser_.parse_item(api_version, kind, bytes));
  }

  std::optional<WatchEvent> decode_event(std::string_view bytes) {
    writer_.clear();
    Object object = finish(parser_.parse_event(bytes));
    if (!object) return std::nullopt;
    const auto type = detail::parse_event_type(parser_.event_type());
    if (!type) {
      error_ = fmt::format("unknown event type {}", detail::quote(parser_.event_type()));
      return std::nullopt;
    }
    return WatchEvent{*type, std::move(object)};
  }

  const std::string& error() const { return error_; }
  const UnknownFields& unknown_fields() const { return parser_.unknown(); }

 private:
  void begin() {
    writer_.clear();
    // (Many decoders decode only one object.)
    if (++decoded_ == 2) parser_.remember_values();
  }

  Object finish(bool fine) {
    error_ = parser_.error();
    return fine ? writer_.finish() : Object();
  }

  Projection projection_;
  detail::FlatWriter writer_;
  detail::ProtobufParser parser_;
  std::string error_;
  std::size_t decoded_ = 0;
};

ProtobufDecoder::ProtobufDecoder(Projection projection)
    : impl_(std::make_unique<Impl>(std::move(projection))) {}
ProtobufDecoder::~ProtobufDecoder() = default;
Object ProtobufDecoder::decode(std::string_view bytes) { return impl_->decode(bytes); }
Object ProtobufDecoder::decode_item(std::string_view api_version, std::string_view kind,
                                    std::string_view bytes) {
  return impl_->decode_item(api_version, kind, bytes);
}
std::optional<WatchEvent> ProtobufDecoder::decode_event(std::string_view bytes) {
  return impl_->decode_event(bytes);
}
const std::string& ProtobufDecoder::error() const { return impl_->error(); }
const UnknownFields& ProtobufDecoder::unknown_fields() const { return impl_->unknown_fields(); }

bool has_protobuf(std::string_view api_version, std::string_view kind) {
  return detail::wire_message_of_type(api_version, kind).has_value();
}

}  // namespace lookout::api

#include <fmt/format.h>

#include "api/event_type.h"
#include "api/json_parser.h"
#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/json.h"
#include "lookout/base/enum_names.h"

namespace lookout::api {
namespace detail {

constexpr auto kEventTypes = base::enum_names<EventType>({{EventType::kAdded, "ADDED"},
                                                          {EventType::kModified, "MODIFIED"},
                                                          {EventType::kDeleted, "DELETED"},
                                                          {EventType::kBookmark, "BOOKMARK"},
                                                          {EventType::kError, "ERROR"}});

std::optional<EventType> parse_event_type(std::string_view text) {
  return kEventTypes.value_of(text);
}

}  // namespace detail
class JsonDecoder::Impl {
 public:
  explicit Impl(Projection projection)
      : projection_(std::move(projection)), parser_(writer_, projection_.root()) {}

  void set_default_type(std::string api_version, std::string kind) {
    api_version_ = std::move(api_version);
    kind_ = std::move(kind);
  }

  Object decode(std::string& text) {
    writer_.clear();
    writer_.default_type(api_version_, kind_);
    // (Many decoders decode only one object.)
    if (++decoded_ == 2) parser_.remember_values();
    if (parser_.parse_object(text)) return writer_.finish();
    error_ = parser_.error();
    return {};
  }

  std::optional<WatchEvent> decode_event(std::string& text) {
    writer_.clear();
    if (!parser_.parse_event(text)) {
      error_ = parser_.error();
      return std::nullopt;
    }
    const auto type = detail::parse_event_type(parser_.event_type());
    if (!type) {
      error_ = fmt::format("unknown event type \"{}\"", parser_.event_type());
      return std::nullopt;
    }
    return WatchEvent{*type, writer_.finish()};
  }

  const std::string& error() const { return error_; }
  std::string refused_key() const { return parser_.refused_key(); }
  void set_max_depth(std::size_t levels) { parser_.set_max_depth(levels); }

 private:
  Projection projection_;
  detail::FlatWriter writer_;
  detail::JsonParser parser_;
  std::string api_version_;
  std::string kind_;
  std::string error_;
  std::size_t decoded_ = 0;
};

JsonDecoder::JsonDecoder(Projection projection)
    : impl_(std::make_unique<Impl>(std::move(projection))) {}
JsonDecoder::~JsonDecoder() = default;
void JsonDecoder::set_default_type(std::string api_version, std::string kind) {
  impl_->set_default_type(std::move(api_version), std::move(kind));
}
Object JsonDecoder::decode(std::string& text) { return impl_->decode(text); }
std::optional<WatchEvent> JsonDecoder::decode_event(std::string& text) {
  return impl_->decode_event(text);
}
const std::string& JsonDecoder::error() const { return impl_->error(); }
std::string JsonDecoder::refused_key() const { return impl_->refused_key(); }
void JsonDecoder::set_max_depth(std::size_t levels) { impl_->set_max_depth(levels); }

std::string_view to_string(EventType type) { return detail::kEventTypes.name_of(type); }

}  // namespace lookout::api

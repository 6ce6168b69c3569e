#include "lookout/tools/record/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/fields.h"
#include "lookout/api/validation.h"
#include "lookout/tools/record/event_recorder.h"

namespace lookout::record {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The size of the first character of `text` in bytes; 0 if it is not UTF-8 (RFC 3629: no
/// surrogates, no overlong forms, nothing beyond U+10FFFF).
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const auto continues = [&](std::size_t at) { return (byte(at) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first <= 0xDFU) return continues(1) ? 2 : 0;
  if (first >= 0xE0U && first <= 0xEFU) {
    const unsigned low = first == 0xE0U ? 0xA0U : 0x80U;
    const unsigned high = first == 0xEDU ? 0x9FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0U && first <= 0xF4U) {
    const unsigned low = first == 0xF0U ? 0x90U : 0x80U;
    const unsigned high = first == 0xF4U ? 0x8FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string_view to_string(EventType type) {
  return type == EventType::kWarning ? "Warning" : "Normal";
}

ObjectReference reference_to(const api::Object& object, std::string field_path) {
  if (!object) throw InvalidArgument("a reference to an empty object");
  if (object.api_version().empty() || object.kind().empty())
    throw InvalidArgument("a reference to an object that has no apiVersion or no kind");
  ObjectReference reference;
  reference.api_version = object.api_version();
  reference.kind = object.kind();
  reference.ns = object.ns();
  reference.name = object.name();
  reference.uid = object.uid();
  reference.resource_version = object.resource_version();
  reference.field_path = std::move(field_path);
  return reference;
}

std::string make_event_name(std::string_view regarding, std::int64_t nanoseconds,
                            std::string fallback) {
  std::string name = fmt::format("{}.{:x}", regarding, nanoseconds);
  if (api::validation::check_dns1123_subdomain(name).empty()) return name;
  return fallback;
}

std::string limit_text(std::string_view text, std::size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit));
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character = size > 0 ? text.substr(0, size) : kReplacement;
    if (out.size() + character.size() > limit) break;
    out += character;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string field_selector(std::string_view events_api, const ObjectReference& regarding) {
  std::string_view prefix;
  if (events_api == "v1") {
    prefix = "involvedObject";
  } else if (events_api == "events.k8s.io/v1") {
    prefix = "regarding";
  } else {
    throw InvalidArgument(fmt::format("{} is not an API version of events", events_api));
  }
  // In alphabetical order, as in client-go's fields.Set.
  const std::array<std::pair<std::string_view, std::string_view>, 4> terms = {
      {{"apiVersion", regarding.api_version},
       {"kind", regarding.kind},
       {"name", regarding.name},
       {"uid", regarding.uid}}};
  std::string out;
  for (const auto& [field, value] : terms) {
    if (value.empty()) continue;
    if (!out.empty()) out += ',';
    out += fmt::format("{}.{}={}", prefix, field, api::fields::escape_value(value));
  }
  return out;
}

void EventRecorder::event(const api::Object& regarding, EventType type, std::string_view reason,
                          std::string_view note) {
  Event out;
  // record() drops an event with an incomplete reference.
  if (regarding && !regarding.api_version().empty() && !regarding.kind().empty())
    out.regarding = reference_to(regarding);
  out.type = type;
  out.reason = reason;
  out.note = note;
  record(std::move(out));
}

}  // namespace lookout::record

#include "apiserver/endpoints/negotiation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "apiserver/endpoints/indentation.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/status.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kAcceptedTypes =
    "only the following media types are accepted: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf";

/// Calls `visit` with the parts between separators that are not in quotes.
template <class Visit>
void split(std::string_view text, char separator, Visit visit) {
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == separator && !quoted)) {
      visit(base::trim(text.substr(begin, i - begin)));
      begin = i + 1;
    } else if (text[i] == '"') {
      quoted = !quoted;
    }
  }
}

[[noreturn]] void not_acceptable(bool with_watch) {
  std::string message =
      "406: Not Acceptable\n\nAvailable representations: application/json, "
      "application/yaml, application/vnd.kubernetes.protobuf";
  if (with_watch) {
    message += ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
  }
  throw api::StatusError::generic(406, "", "", "", "", message, 0, false);
}

/// The error for a media type that the API supports for other responses, but not for this one.
api::StatusError not_in_this_form(std::string message) {
  api::Status status;
  status.code = 406;
  status.reason = api::reason::kNotAcceptable;
  status.message = std::move(message);
  return api::StatusError(std::move(status));
}

/// Whether a route supports an accepted type. Like go-restful, matches only exact types.
bool is_produced(std::string_view type) {
  return type == "*/*" || type == kJsonType || type == kYamlType || type == api::kProtobufMediaType;
}

/// The number of wildcards in the type of a clause.
int wildcards(const MediaRange& range) {
  return (range.type.starts_with("*/") ? 1 : 0) + (range.type.ends_with("/*") ? 1 : 0);
}

/// Sorts like goautoneg: a type precedes a wildcard, even a wildcard with a higher quality. This is
/// not a strict weak order, so up to 12 clauses are sorted with Go's algorithm.
void sort_by_preference(std::vector<MediaRange>& ranges) {
  constexpr std::size_t kFew = 12;
  if (ranges.size() > kFew) {
    std::ranges::stable_sort(ranges, [](const MediaRange& a, const MediaRange& b) {
      return a.quality != b.quality ? a.quality > b.quality : wildcards(a) < wildcards(b);
    });
    return;
  }
  const auto comes_first = [](const MediaRange& a, const MediaRange& b) {
    return a.quality > b.quality || wildcards(a) < wildcards(b);
  };
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    for (std::size_t j = i; j > 0 && comes_first(ranges[j], ranges[j - 1]); --j)
      std::swap(ranges[j], ranges[j - 1]);
  }
}

/// Whether a clause requests no conversion of the object.
bool is_unconverted(const MediaRange& range) {
  const std::string_view stream = range.parameter("stream");
  return !range.has("as") && !range.has("g") && !range.has("v") && range.parameter("sv").empty() &&
         (stream.empty() || stream == "watch");
}

tables::IncludeObject parse_include_object(const http::Request& request) {
  const std::string value(request.parameter("includeObject").value_or(""));
  if (value.empty() || value == "Metadata") return tables::IncludeObject::kMetadata;
  if (value == "Object") return tables::IncludeObject::kObject;
  if (value == "None") return tables::IncludeObject::kNone;
  throw api::StatusError::bad_request(
      "Unable to convert to Table as requested: includeObject: Invalid value: " +
      api::detail::quote(value) + ": must be 'Metadata', 'Object', 'None', or empty");
}

}  // namespace

std::string_view MediaRange::parameter(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const auto& p) { return p.first == name; });
  return found == parameters.end() ? std::string_view{} : found->second;
}

bool MediaRange::has(std::string_view name) const {
  return std::ranges::any_of(parameters, [&](const auto& p) { return p.first == name; });
}

bool covers_json(std::string_view type) {
  return type == kJsonType || type == "application/*" || type == "*/*";
}

api::StatusError wrong_conversion(bool is_list, std::string_view what) {
  return not_in_this_form(
      is_list
          ? fmt::format(
                "you requested PartialObjectMetadata, but the requested object is a list ({}List)",
                what)
          : fmt::format("you requested PartialObjectMetadataList, but the requested object is "
                        "not a list ({})",
                        what));
}

std::vector<MediaRange> parse_accept(std::string_view header) {
  std::vector<MediaRange> out;
  split(header, ',', [&](std::string_view clause) {
    if (clause.empty()) return;
    MediaRange range;
    bool first = true;
    split(clause, ';', [&](std::string_view part) {
      if (std::exchange(first, false)) {
        range.type = base::lower_case(part);
        return;
      }
      const std::size_t equals = part.find('=');
      if (equals == std::string_view::npos) return;
      const std::string name = base::lower_case(base::trim(part.substr(0, equals)));
      std::string_view value = base::trim(part.substr(equals + 1));
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2);
      if (name == "q") {
        range.quality = std::strtod(std::string(value).c_str(), nullptr);
      } else {
        range.parameters.emplace_back(name, value);
      }
    });
    out.push_back(std::move(range));
  });
  sort_by_preference(out);
  return out;
}

std::string media_type(std::string_view header) {
  return base::lower_case(base::trim(header.substr(0, header.find(';'))));
}

OutputFormat negotiate_output(const http::Request& request, bool with_watch, bool custom,
                              bool streams) {
  OutputFormat format;
  const std::string_view header = request.header("accept");
  if (header.empty()) return format;
  const std::vector<MediaRange> ranges = parse_accept(header);
  // go-restful, which checks this, does not route requests for custom resources.
  if (!custom && std::none_of(ranges.begin(), ranges.end(),
                              [](const MediaRange& range) { return is_produced(range.type); }))
    not_acceptable(with_watch);
  for (const MediaRange& range : ranges) {
    if (streams && range.type == kYamlType) break;
    format.protobuf = range.type == api::kProtobufMediaType;
    if (!format.protobuf && !covers_json(range.type)) continue;
    if (!range.parameter("sv").empty()) continue;
    if (const auto stream = range.parameter("stream"); !stream.empty() && stream != "watch")
      continue;
    const std::string_view as = range.parameter("as");
    const bool in_protobuf = as.empty() ? !custom : as != "Table" && range.parameter("v") == "v1";
    if (format.protobuf && !in_protobuf) continue;
    if (as.empty()) return format;
    const std::string_view version = range.parameter("v");
    if (range.parameter("g") != "meta.k8s.io" || (version != "v1" && version != "v1beta1"))
      continue;
    format.meta_version = version == "v1" ? "meta.k8s.io/v1" : "meta.k8s.io/v1beta1";
    if (as == "Table") {
      format.transform = Transform::kTable;
      format.include = parse_include_object(request);
      return format;
    }
    if (as != "PartialObjectMetadata" && as != "PartialObjectMetadataList") continue;
    format.transform = Transform::kPartialMetadata;
    format.as_list = as == "PartialObjectMetadataList";
    return format;
  }
  throw not_in_this_form(
      streams ? "only the following media types are accepted: application/json;stream=watch, "
                "application/vnd.kubernetes.protobuf;stream=watch"
              : std::string(kAcceptedTypes));
}

void check_accepts_type(const http::Request& request, std::string_view type) {
  const std::string_view header = request.header("accept");
  if (header.empty()) return;
  const std::vector<MediaRange> ranges = parse_accept(header);
  if (std::ranges::any_of(ranges, [&](const MediaRange& range) {
        return range.type == "*/*" || range.type == type;
      }))
    return;
  throw api::StatusError::generic(
      406, "", "", "", "",
      fmt::format("406: Not Acceptable\n\nAvailable representations: {}", type), 0, false);
}

void check_accepts_document(const http::Request& request, bool routed) {
  const std::string_view header = request.header("accept");
  if (header.empty()) return;
  const std::vector<MediaRange> ranges = parse_accept(header);
  if (routed &&
      std::ranges::none_of(ranges, [](const MediaRange& range) { return is_produced(range.type); }))
    not_acceptable(false);
  const bool fits = std::ranges::any_of(ranges, [](const MediaRange& range) {
    return is_unconverted(range) && (covers_json(range.type) || is_produced(range.type));
  });
  if (!fits) throw not_in_this_form(std::string(kAcceptedTypes));
}

bool prefers_protobuf(const http::Request& request) {
  for (const MediaRange& range : parse_accept(request.header("accept"))) {
    if (!is_unconverted(range)) continue;
    if (range.type == api::kProtobufMediaType) return true;
    if (covers_json(range.type) || range.type == kYamlType) return false;
  }
  return false;
}

FailureForm negotiate_failure(const http::Request& request) {
  const FailureForm json = wants_indentation(request) ? FailureForm::kIndented : FailureForm::kJson;
  const std::string_view header = request.header("accept");
  if (header.empty()) return json;
  for (const MediaRange& range : parse_accept(header)) {
    if (!is_unconverted(range)) continue;
    if (range.type == api::kProtobufMediaType) return FailureForm::kProtobuf;
    if (covers_json(range.type) || range.type == kYamlType) return json;
  }
  return FailureForm::kIndented;
}

bool sends_protobuf(const http::Request& request) {
  return media_type(request.header("content-type")) == api::kProtobufMediaType;
}

bool sends_yaml(const http::Request& request) {
  return media_type(request.header("content-type")) == kYamlType;
}

void negotiate_input(const http::Request& request, bool protobuf) {
  const std::string_view header = request.header("content-type");
  if (header.empty() || media_type(header) == kJsonType || sends_yaml(request)) return;
  if (protobuf && sends_protobuf(request)) return;
  api::Status status;
  status.code = 415;
  status.reason = api::reason::kUnsupportedMediaType;
  status.message =
      "the body of the request was in an unknown format - accepted media types include: "
      "application/json, application/yaml";
  if (protobuf) status.message.append(", ").append(api::kProtobufMediaType);
  throw api::StatusError(std::move(status));
}

}  // namespace lookout::apiserver::endpoints

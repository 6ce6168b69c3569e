#include "apiserver/endpoints/list_options.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "apiserver/endpoints/json_syntax.h"
#include "apiserver/endpoints/request_info.h"
#include "apiserver/resources/selectable_fields.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/fields.h"
#include "lookout/api/json.h"
#include "lookout/api/labels.h"
#include "lookout/api/validation.h"
#include "lookout/base/ascii.h"
#include "lookout/base/base64.h"
#include "lookout/base/json_text.h"

namespace lookout::apiserver::endpoints {
namespace {

namespace rules = api::validation;
using api::StatusError;

constexpr std::string_view kTokenVersion = "meta.k8s.io/v1";
constexpr std::string_view kBadToken = "continue key is not valid";

void validate_match(const ListOptions& options, std::vector<api::StatusCause>& causes) {
  constexpr std::string_view kField = "resourceVersionMatch";
  const std::string& match = options.resource_version_match;
  constexpr std::string_view kSupported[] = {"Exact", "NotOlderThan", ""};
  if (options.watch) {
    if (options.send_initial_events && match != "NotOlderThan") {
      causes.push_back(rules::forbidden(
          kField, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    if (match.empty()) return;
    if (!options.send_initial_events) {
      causes.push_back(rules::forbidden(
          kField,
          "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
    }
    if (match != "NotOlderThan") {
      causes.push_back(rules::not_supported(kField, match, std::span(kSupported).subspan(1, 1)));
    }
    if (!options.continue_token.empty()) {
      causes.push_back(
          rules::forbidden(kField, "resourceVersionMatch is forbidden when continue is provided"));
    }
    return;
  }
  if (!match.empty()) {
    if (options.resource_version.empty()) {
      causes.push_back(rules::forbidden(
          kField, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    if (!options.continue_token.empty()) {
      causes.push_back(
          rules::forbidden(kField, "resourceVersionMatch is forbidden when continue is provided"));
    }
    if (match != "Exact" && match != "NotOlderThan")
      causes.push_back(rules::not_supported(kField, match, kSupported));
    if (match == "Exact" && options.resource_version == "0") {
      causes.push_back(rules::forbidden(
          kField, R"(resourceVersionMatch "exact" is forbidden for resourceVersion "0")"));
    }
  }
  if (options.send_initial_events) {
    causes.push_back(
        rules::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
}

/// Base64 for URLs, without padding.
std::string encode_base64_url(std::string_view bytes) {
  std::string out = encode_base64(bytes);
  while (out.ends_with('=')) out.pop_back();
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

/// Throws InvalidArgument with Go's message.
std::string decode_base64_url(std::string_view text) {
  const auto valid = [](char c) { return base::is_alnum(c) || c == '-' || c == '_'; };
  const auto bad = std::find_if_not(text.begin(), text.end(), valid);
  // A single character at the end carries no byte.
  const std::size_t position =
      bad != text.end() ? static_cast<std::size_t>(bad - text.begin()) : text.size() - 1;
  if (bad != text.end() || text.size() % 4 == 1)
    throw InvalidArgument(fmt::format("illegal base64 data at input byte {}", position));
  std::string padded(text);
  std::replace(padded.begin(), padded.end(), '-', '+');
  std::replace(padded.begin(), padded.end(), '_', '/');
  padded.append((4 - padded.size() % 4) % 4, '=');
  return decode_base64(padded).value_or("");
}

/// Whether Go's path.Clean leaves the key unchanged: no empty parts, no dots.
bool is_clean(std::string_view key) {
  if (key.starts_with('/')) key.remove_prefix(1);
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

storage::Revision parse_revision(std::string_view text) {
  if (text.empty()) return 0;
  storage::Revision revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (error != std::errc{} || end != text.data() + text.size()) {
    const std::string quoted = api::detail::quote(text);
    throw InvalidArgument(fmt::format(
        "resourceVersion: Invalid value: {0}: strconv.ParseUint: parsing {0}: {1}", quoted,
        error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax"));
  }
  return revision;
}

storage::Revision minimum_revision(std::string_view text, storage::Revision revision) {
  return revision == 0 && !text.empty() ? storage::kAnyRevision : revision;
}

ListOptions parse_list_options(const http::Request& request,
                               const resources::ServedResource& resource, bool watch,
                               const std::string& name) {
  ListOptions options;
  const auto text = [&](std::string_view parameter) {
    return std::string(request.parameter(parameter).value_or(std::string_view{}));
  };
  options.watch = watch;
  options.resource_version = text("resourceVersion");
  options.resource_version_match = text("resourceVersionMatch");
  options.continue_token = text("continue");
  if (const auto bookmarks = request.parameter("allowWatchBookmarks"))
    options.allow_watch_bookmarks = is_true(*bookmarks);
  if (const auto timeout = request.parameter("timeoutSeconds"))
    options.timeout_seconds = parse_number(*timeout);
  if (const auto limit = request.parameter("limit")) options.limit = parse_number(*limit);
  if (const auto initial = request.parameter("sendInitialEvents"))
    options.send_initial_events = is_true(*initial);

  api::fields::Selector fields;
  try {
    options.predicate.labels = api::labels::parse(text("labelSelector"));
    fields = api::fields::parse(text("fieldSelector"));
  } catch (const api::SelectorError& e) {
    throw StatusError::bad_request(e.reason());
  }

  // A watch without a version starts with the current state.
  const bool legacy = options.resource_version.empty() || options.resource_version == "0";
  if (watch && legacy && !options.send_initial_events && options.resource_version_match.empty()) {
    options.send_initial_events = true;
    options.resource_version_match = "NotOlderThan";
  }
  std::vector<api::StatusCause> causes;
  validate_match(options, causes);
  if (!causes.empty())
    throw StatusError::invalid("meta.k8s.io", "ListOptions", "", std::move(causes));

  if (!name.empty()) {
    if (fields.empty()) {
      fields = api::fields::Selector({{"metadata.name", name, true}});
    } else if (std::none_of(fields.requirements().begin(), fields.requirements().end(),
                            [&](const auto& r) {
                              return r.field == "metadata.name" && r.equal && r.value == name;
                            })) {
      throw StatusError::bad_request("fieldSelector metadata.name doesn't match requested name");
    }
  }
  options.predicate.fields = resources::field_requirements(resource, fields);
  for (const auto& requirement : fields.requirements()) {
    if (!requirement.equal) continue;
    if (requirement.field == "metadata.name") options.name = requirement.value;
    if (requirement.field == "metadata.namespace") options.ns = requirement.value;
  }
  return options;
}

resources::KeyRange key_range(const resources::Target& target, const ListOptions& options) {
  resources::Target narrow = target;
  if (narrow.resource->type.namespaced && narrow.ns.empty() &&
      rules::check_dns1123_label(options.ns).empty())
    narrow.ns = options.ns;
  narrow.name = options.name;
  const bool one = !options.name.empty() &&
                   (!narrow.resource->type.namespaced || !narrow.ns.empty()) &&
                   rules::check_path_segment_name(options.name).empty();
  if (!one) narrow.name.clear();
  return {narrow.key(), !one};
}

storage::ListOptions storage_list_options(const ListOptions& options,
                                          const resources::KeyRange& range) {
  storage::ListOptions out;
  out.predicate = options.predicate;
  const bool any = options.resource_version == "0";
  // A list of any version ignores the limit, as with the API server's cache.
  if (options.limit > 0 && !any) out.limit = static_cast<std::size_t>(options.limit);
  if (!options.continue_token.empty() && range.recursive) {
    const ContinueToken token = decode_continue(options.continue_token, range.key);
    if (!options.resource_version.empty() && !any) {
      throw StatusError::bad_request(
          "specifying resource version is not allowed when using continue");
    }
    out.start_key = token.start_key;
    if (token.revision > 0) {
      out.match = storage::VersionMatch::kExact;
      out.revision = static_cast<storage::Revision>(token.revision);
    }
    return out;
  }
  if (options.resource_version.empty()) return out;
  try {
    out.revision = parse_revision(options.resource_version);
  } catch (const InvalidArgument& e) {
    throw StatusError::bad_request(fmt::format("invalid resource version: {}", e.what()));
  }
  const bool exact = options.resource_version_match == "Exact" ||
                     (options.resource_version_match.empty() && out.limit > 0 && range.recursive);
  out.match = exact ? storage::VersionMatch::kExact : storage::VersionMatch::kNotOlderThan;
  return out;
}

storage::WatchOptions storage_watch_options(const ListOptions& options) {
  storage::WatchOptions out;
  out.predicate = options.predicate;
  try {
    out.revision = parse_revision(options.resource_version);
  } catch (const InvalidArgument& e) {
    // A 500, unlike for lists, as in kube-apiserver.
    api::Status status;
    status.code = 500;
    status.message = e.what();
    throw StatusError(std::move(status));
  }
  if (options.send_initial_events.value_or(false)) {
    out.start = storage::WatchOptions::Start::kState;
    out.initial_events_end = options.allow_watch_bookmarks;
  } else {
    out.start = out.revision == 0 ? storage::WatchOptions::Start::kNow
                                  : storage::WatchOptions::Start::kRevision;
  }
  out.revision = minimum_revision(options.resource_version, out.revision);
  return out;
}

std::string encode_continue(std::string_view start_key, std::string_view prefix,
                            std::int64_t revision) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  base::write_text(writer, "v", kTokenVersion);
  writer.Key("rv");
  writer.Int64(revision);
  base::write_text(writer, "start", start_key.substr(prefix.size()));
  writer.EndObject();
  return encode_base64_url({buffer.GetString(), buffer.GetSize()});
}

ContinueToken decode_continue(std::string_view token, std::string_view prefix) {
  const auto fail = [](std::string_view why) {
    return StatusError::bad_request(fmt::format("invalid continue token: {}", why));
  };
  std::string text;
  try {
    text = decode_base64_url(token);
  } catch (const InvalidArgument& e) {
    throw fail(fmt::format("{}: {}", kBadToken, e.what()));
  }
  if (const std::string syntax = json_syntax_error(text); !syntax.empty())
    throw fail(fmt::format("{}: {}", kBadToken, syntax));
  api::JsonDecoder decoder;
  const api::Object fields = decoder.decode(text);
  if (!fields) throw fail(fmt::format("{}: {}", kBadToken, decoder.error()));
  if (const std::string_view version = fields["v"].as_string(); version != kTokenVersion) {
    throw fail(
        fmt::format("{}: server does not recognize this encoded version {}", kBadToken, version));
  }
  ContinueToken out;
  out.revision = fields["rv"].as_int();
  if (out.revision == 0) {
    throw fail(fmt::format("{}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
                           kBadToken));
  }
  const std::string_view start = fields["start"].as_string();
  if (start.empty()) {
    throw fail(fmt::format("{}: encoded start key empty (version meta.k8s.io/v1)", kBadToken));
  }
  if (!is_clean(start)) throw fail(fmt::format("{}: {}", kBadToken, start));
  out.start_key = std::string(prefix).append(start.substr(start.starts_with('/') ? 1 : 0));
  return out;
}

StatusError continue_expired(const ContinueToken& token, std::string_view prefix) {
  api::Status status =
      StatusError::expired(
          "The provided continue parameter is too old to display a consistent list result. You can "
          "start a new list without the continue parameter, or use the continue token in this "
          "response to retrieve the remainder of the results. Continuing with the provided token "
          "results in an inconsistent list - objects that were created, modified, or deleted "
          "between the time the first chunk was returned and now may show up in the list.")
          .status();
  status.continue_token = encode_continue(token.start_key, prefix, -1);
  return StatusError(std::move(status));
}

}  // namespace lookout::apiserver::endpoints

#include "apiserver/resources/api_approval.h"

#include <fmt/format.h>

#include <cstddef>

#include "apiserver/resources/request_uri.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::resources {
namespace {

constexpr const char* kSee = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Whether the text is a URL with a host.
bool is_url(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == 0 || scheme == std::string_view::npos || text.find_first_of("/?") < scheme ||
      !is_request_uri(text))
    return false;
  std::string_view host = text.substr(scheme + 3);
  host = host.substr(0, host.find_first_of("/?"));
  if (const std::size_t at = host.rfind('@'); at != std::string_view::npos)
    host.remove_prefix(at + 1);
  return !host.empty();
}

}  // namespace

bool is_protected_group(std::string_view group) {
  return group == "k8s.io" || group == "kubernetes.io" || group.ends_with(".k8s.io") ||
         group.ends_with(".kubernetes.io");
}

ApiApproval ApiApproval::of(const api::Object& definition) {
  const std::string_view text = definition["metadata"]["annotations"][kAnnotation].as_string();
  if (text.empty()) {
    return {State::kMissing,
            fmt::format("protected groups must have approval annotation \"{}\", {}", kAnnotation,
                        kSee)};
  }
  if (text.starts_with("unapproved"))
    return {State::kBypassed, fmt::format("not approved: {}", api::detail::quote(text))};
  if (is_url(text)) return {State::kApproved, fmt::format("approved in {}", text)};
  return {State::kInvalid,
          fmt::format("protected groups must have approval annotation \"{}\" with either a URL or "
                      "a reason starting with \"unapproved\", {}",
                      kAnnotation, kSee)};
}

}  // namespace lookout::apiserver::resources

#include "apiserver/auth/forbidden.h"

#include <fmt/format.h>

#include <string_view>

#include "lookout/api/detail/go_text.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::auth {
namespace {

using api::StatusError;
using api::detail::quote;

std::string escape_html(std::string_view text) {
  return base::escape(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}});
}

}  // namespace

StatusError forbidden(const User& user, const Attributes& action, const std::string& reason) {
  const auto message = [&](const std::string& refusal) {
    const std::string text = escape_html(refusal);
    return reason.empty() ? text : text + ": " + reason;
  };
  if (!action.is_resource_request) {
    return StatusError::forbidden("", "", "",
                                  message(fmt::format("User {} cannot {} path {}", quote(user.name),
                                                      action.verb, quote(action.path))));
  }
  std::string resource = action.resource;
  if (!action.subresource.empty()) resource += "/" + action.subresource;
  const std::string where = action.ns.empty()
                                ? std::string("at the cluster scope")
                                : fmt::format("in the namespace {}", quote(action.ns));
  return StatusError::forbidden(
      action.group, action.resource, action.name,
      message(fmt::format("User {} cannot {} resource {} in API group {} {}", quote(user.name),
                          action.verb, quote(resource), quote(action.group), where)));
}

}  // namespace lookout::apiserver::auth

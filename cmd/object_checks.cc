#include "cmd/object_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lookout/api/validation.h"

namespace lookout::cmd {
namespace {

std::string problem(const char* what, const std::string& text,
                    const api::validation::Messages& messages) {
  if (messages.empty()) return {};
  return fmt::format("invalid {} \"{}\": {}", what, text, fmt::join(messages, ", "));
}

}  // namespace

std::string check_namespace(const std::string& ns) {
  return ns.empty() ? "" : problem("namespace", ns, api::validation::check_dns1123_label(ns));
}

std::string check_not_empty(const std::string& name) {
  return name.empty() ? "the name may not be empty" : "";
}

std::string check_object_name(const std::string& name) {
  if (name.empty()) return check_not_empty(name);
  return problem("name", name, api::validation::check_path_segment_name(name));
}

}  // namespace lookout::cmd

#include "lookout/registry/pod_identity.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "lookout/api/error.h"
#include "lookout/base/ascii.h"

namespace lookout::registry {
namespace {

/// Empty if there is no such file.
std::string file_text(const std::string& dir, const char* name) {
  if (dir.empty()) return {};
  std::ifstream file(dir + "/" + name);
  std::string text(std::istreambuf_iterator<char>(file), {});
  return std::string(base::trim(text));
}

std::string variable(const PodIdentitySources& sources, const char* name) {
  if (sources.environment) return std::string(base::trim(sources.environment(name).value_or("")));
  const char* value = std::getenv(name);
  return value == nullptr ? "" : std::string(base::trim(value));
}

void set_first(std::string& target, const std::function<std::string()>& source) {
  if (target.empty()) target = source();
}

}  // namespace

PodIdentity PodIdentity::find(const PodIdentity& given, const std::string& fallback_ns,
                              const PodIdentitySources& sources) {
  PodIdentity out = given;
  set_first(out.name, [&] { return variable(sources, "POD_NAME"); });
  set_first(out.name, [&] { return file_text(sources.downward_api_dir, "name"); });
  set_first(out.name, [&] { return variable(sources, "HOSTNAME"); });
  if (out.name.empty()) {
    throw Error(
        fmt::format("which pod is this? There is no $POD_NAME, no file {}/name and no $HOSTNAME: "
                    "set one of them, or name the pod",
                    sources.downward_api_dir));
  }
  set_first(out.ns, [&] { return variable(sources, "POD_NAMESPACE"); });
  set_first(out.ns, [&] { return file_text(sources.downward_api_dir, "namespace"); });
  set_first(out.ns, [&] { return file_text(sources.service_account_dir, "namespace"); });
  set_first(out.ns, [&] { return variable(sources, "NAMESPACE"); });
  set_first(out.ns, [&] { return fallback_ns; });
  if (out.ns.empty()) {
    throw Error(fmt::format(
        "which namespace is pod {} in? There is no $POD_NAMESPACE, no file {}/namespace, no file "
        "{}/namespace and no $NAMESPACE: set one of them, or give the namespace",
        out.name, sources.downward_api_dir, sources.service_account_dir));
  }
  // The uid belongs to this process's pod, not to a given name.
  if (given.name.empty()) {
    set_first(out.uid, [&] { return variable(sources, "POD_UID"); });
    set_first(out.uid, [&] { return file_text(sources.downward_api_dir, "uid"); });
  }
  return out;
}

}  // namespace lookout::registry

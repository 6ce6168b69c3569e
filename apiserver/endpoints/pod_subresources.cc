#include "apiserver/endpoints/pod_subresources.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/names.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::endpoints {
namespace {

void merge_texts(Document& pod, const Object& binding, const char* field, Allocator& allocator) {
  for (const auto& [key, value] : binding["metadata"][field].members()) {
    json::set(json::child(json::child(pod, "metadata", allocator), field, allocator), key,
              value.as_string(), allocator);
  }
}

}  // namespace

Awaitable<void> bind_pod(const resources::Store& store, resources::Target pod, Object binding,
                         bool dry_run) {
  if (binding.name() != pod.name)
    throw StatusError::bad_request("name in URL does not match name in Binding object");
  const std::string node(binding["target"]["name"].as_string());
  const std::string_view kind = binding["target"]["kind"].as_string();
  std::vector<api::StatusCause> causes;
  if (!kind.empty() && kind != "Node" && kind != "Minion") {
    constexpr std::string_view kKinds[] = {"Node", "<empty>"};
    causes.push_back(api::validation::not_supported("target.kind", kind, kKinds));
  }
  if (node.empty()) causes.push_back(api::validation::required("target.name", ""));
  if (!causes.empty()) {
    // kube-apiserver has no specific Status for this error.
    api::Status status;
    status.code = 500;
    status.message = api::validation::to_string(causes);
    throw StatusError(std::move(status));
  }
  const std::string name = pod.name;
  resources::Store::Change change = [=](const Object& present) {
    const auto conflict = [&](std::string_view why) {
      return StatusError::conflict("", "pods/binding", name, why);
    };
    if (!binding.uid().empty() && binding.uid() != present.uid()) {
      throw conflict(
          fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: "
                      "{}",
                      binding.uid(), present.uid()));
    }
    if (const auto version = binding.resource_version();
        !version.empty() && version != present.resource_version()) {
      throw conflict(
          fmt::format("Precondition failed: ResourceVersion in precondition: {}, ResourceVersion "
                      "in object meta: "
                      "{}",
                      version, present.resource_version()));
    }
    if (resources::is_deleting(present))
      throw conflict(fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
    if (const auto host = present["spec"]["nodeName"].as_string(); !host.empty())
      throw conflict(fmt::format("pod {} is already assigned to node \"{}\"", name, host));
    if (!present["spec"]["schedulingGates"].empty())
      throw conflict(fmt::format("pod {} has non-empty .spec.schedulingGates", name));
    Document document = present.to_document();
    Allocator& allocator = document.GetAllocator();
    json::set(json::child(document, "spec", allocator), "nodeName", node, allocator);
    merge_texts(document, binding, "annotations", allocator);
    merge_texts(document, binding, "labels", allocator);
    json::Value& status = json::child(document, "status", allocator);
    json::erase(status, "nominatedNodeName");
    resources::set_condition(status, {"PodScheduled", true}, allocator);
    return Object::from(document);
  };
  storage::Preconditions none;
  co_await store.update(std::move(pod), std::move(change), resources::Part::kWhole, std::move(none),
                        dry_run);
}

void check_log_options(const http::Request& request, const Object& pod) {
  std::vector<api::StatusCause> causes;
  for (const char* name : {"tailLines", "limitBytes", "sinceSeconds"}) {
    const auto text = request.parameter(name);
    if (!text || text->empty()) continue;
    const auto number = api::detail::parse_int(*text);
    if (!number) {
      throw StatusError::bad_request(
          fmt::format("strconv.ParseInt: parsing {}: invalid syntax", api::detail::quote(*text)));
    }
    const bool counts_lines = name == std::string_view("tailLines");
    if (*number < (counts_lines ? 0 : 1)) {
      causes.push_back(api::validation::invalid(
          name, *number,
          counts_lines ? "must be greater than or equal to 0" : "must be greater than 0"));
    }
  }
  if (!causes.empty())
    throw StatusError::invalid("", "PodLogOptions", pod.name(), std::move(causes));
  std::vector<std::string> names;
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const api::Value container : pod["spec"][list].elements())
      names.emplace_back(container["name"].as_string());
  }
  const std::string wanted(request.parameter("container").value_or(""));
  if (wanted.empty() && pod["spec"]["containers"].size() > 1) {
    throw StatusError::bad_request(
        fmt::format("a container name must be specified for pod {}, choose one of: [{}]",
                    pod.name(), fmt::join(names, " ")));
  }
  if (!wanted.empty() && std::find(names.begin(), names.end(), wanted) == names.end()) {
    throw StatusError::bad_request(
        fmt::format("container {} is not valid for pod {}", wanted, pod.name()));
  }
}

}  // namespace lookout::apiserver::endpoints

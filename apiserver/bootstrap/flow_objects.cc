#include "apiserver/bootstrap/flow_objects.h"

#include <string>

#include "apiserver/json.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::apiserver::bootstrap {
namespace {

std::vector<api::Object> read_flow_objects() {
  const YamlTree tree{std::string(flow_control_text())};
  std::vector<api::Object> out;
  for (const YamlNode* node : tree.root().items) {
    json::Document document = api::Object::parse(to_json(*node)).to_document();
    json::set(document, "apiVersion", "flowcontrol.apiserver.k8s.io/v1", document.GetAllocator());
    out.push_back(api::Object::from(document));
  }
  return out;
}

}  // namespace

const std::vector<api::Object>& flow_objects() {
  static const auto kObjects = read_flow_objects();
  return kObjects;
}

bool is_mandatory_flow_object(std::string_view name) {
  return name == "exempt" || name == "catch-all";
}

}  // namespace lookout::apiserver::bootstrap

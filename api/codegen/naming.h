// From the schema's names to C++ names.
#pragma once

#include <string>
#include <string_view>

namespace lookout::codegen {

/// "clusterIPs" -> "cluster_ips", "$ref" -> "dollar_ref", "namespace" -> "namespace_" (C++ keywords
/// get an underscore).
std::string accessor_name(std::string_view json_name);

/// "nodeName" -> "kNodeName", "x-kubernetes-list-type" -> "kXKubernetesListType", "Port" ->
/// "kCapitalPort".
std::string constant_name(std::string_view json_name);

/// "io.k8s.api.core.v1.Pod" -> {"core", "v1", "Pod"}.
struct TypeName {
  std::string group;
  std::string version;
  std::string name;

  std::string cpp_namespace() const { return group + "::" + version; }
  std::string header() const { return "lookout/api/" + group + "/" + version + ".h"; }
};
TypeName split_type_name(std::string_view full_name);

}  // namespace lookout::codegen

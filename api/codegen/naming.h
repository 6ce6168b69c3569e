// Converts the schema's names to C++ names.
#pragma once

#include <string>
#include <string_view>

namespace lookout::codegen {

/// Whether the name cannot be used for a function: keywords, and macros that the standard headers or
/// the compiler may define.
bool is_reserved(std::string_view word);

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

  std::string cpp_namespace() const { return "k8s::" + group + "::" + version; }
  std::string header() const { return "lookout/k8s/" + group + "/" + version + ".h"; }
  std::string draft_header() const { return "lookout/k8s/" + group + "/" + version + "_draft.h"; }
};
TypeName split_type_name(std::string_view full_name);

}  // namespace lookout::codegen

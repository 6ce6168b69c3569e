// What the commands of `lookout registry` are told.
#pragma once

#include <string>
#include <vector>

namespace lookout::cmd::registry_cmd {

struct Flags {
  std::string style = "kratos";
  std::string name;
  std::string ns;
  bool all_namespaces = false;
  std::string label_selector;
  bool include_unready = false;
  std::string output = "table";
  // Writing.
  std::string pod;
  std::string id;
  std::string version;
  std::vector<std::string> metadata;
  std::vector<std::string> endpoints;
  std::string value;
  std::string generation = "detect";
  // Of the page.
  std::string listen = "127.0.0.1:8002";
  std::vector<std::string> allowed_hosts;
};

}  // namespace lookout::cmd::registry_cmd

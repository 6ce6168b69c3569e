// The flags of `lookout registry`.
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
  // For `lookout registry serve`.
  std::string listen = "127.0.0.1:8002";
  std::vector<std::string> allowed_hosts;
  bool scrape = false;
  // For `lookout registry xds`.
  std::string xds_listen = "127.0.0.1:18000";
  std::vector<std::string> schemes = {"grpc", "http", "tri", "dubbo", "tcp"};
};

}  // namespace lookout::cmd::registry_cmd

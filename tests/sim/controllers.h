// Shared by the worlds of controllers.
#pragma once

#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "lookout/api/object.h"
#include "lookout/base/yaml_tree.h"
#include "lookout/controller/manager.h"
#include "lookout/k8s/apiextensions/v1.h"
#include "lookout/testing/sim/world.h"

namespace lookout::test {

/// Runs a replica of a program with one controller until its process ends. `name` is the name of
/// the lease.
inline void run_replica(sim::Process& p, const std::string& name,
                        const std::function<void(controller::Manager&)>& add_controller) {
  controller::ManagerOptions options;
  options.leader_election = controller::LeaderElection{
      .name = name, .ns = "default", .identity = p.name() + "-" + std::to_string(p.life())};
  controller::Manager manager(p.client(), options);
  add_controller(manager);
  manager.run(p.stop());
}

/// Installs the CustomResourceDefinition in a file.
inline void install_definition(sim::World& world, const std::string& yaml_file) {
  std::ifstream file(yaml_file);
  const std::string yaml{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  world.admin().resource<k8s::apiextensions::v1::CustomResourceDefinition>().create(
      api::Object::parse(to_json(YamlTree(yaml).root())));
}

}  // namespace lookout::test

// The admission plugins that options switch on and off.
#pragma once

#include <string>
#include <vector>

namespace lookout::apiserver::admission {

struct Plugins {
  bool service_account = false;
};

/// Reads names of kube-apiserver's plugins. Throws InvalidArgument for unknown ones, for those that this
/// server does not have, if they are to be on, and for those that are always on, if they are to be off.
Plugins choose_plugins(const std::vector<std::string>& enabled,
                       const std::vector<std::string>& disabled);

}  // namespace lookout::apiserver::admission

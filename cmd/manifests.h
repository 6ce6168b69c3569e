// Manifests: files with the objects that a user wants.
#pragma once

#include <string>
#include <vector>

#include "lookout/api/object.h"

namespace lookout::cmd {

struct Manifest {
  api::Object object;
  std::string place;  // "web.yaml:12", for messages
};

/// Reads the objects of files in YAML or JSON, in the order of the files. A file may have several
/// documents and lists. "-" is standard input; of a folder, all *.yaml, *.yml and *.json files
/// count, in the order of their names. Throws Error with the place of what is wrong; the message
/// quotes nothing of the content.
std::vector<Manifest> read_manifests(const std::vector<std::string>& files);

}  // namespace lookout::cmd

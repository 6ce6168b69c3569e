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

struct Manifests {
  std::vector<Manifest> objects;
  /// What could not be read, each with its place. They quote nothing of the content.
  std::vector<std::string> errors;
};

/// Reads the objects of files in YAML or JSON, in the order of the files. A file may have several
/// documents, JSON objects that follow each other, and lists. "-" is standard input; of a folder,
/// all *.yaml, *.yml and *.json files count, in the order of their names. As with kubectl, an object
/// that is malformed does not keep the others from being read, but behind a document that is not
/// YAML its file is not read any further. Throws Error if a file does not exist, or if there is
/// nothing to read.
Manifests read_manifests(const std::vector<std::string>& files);

}  // namespace lookout::cmd

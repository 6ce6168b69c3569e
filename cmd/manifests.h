// Manifests: files with objects in YAML or JSON.
#pragma once

#include <string>
#include <vector>

#include "cmd/cli.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/rest/client.h"

namespace lookout::cmd {

struct Manifest {
  api::Object object;
  std::string place;  // "web.yaml:12", for messages
};

struct Manifests {
  std::vector<Manifest> objects;
  /// The errors, each with its place. They do not quote the content.
  std::vector<std::string> errors;
};

/// The files of a command.
struct FileFlags {
  std::vector<std::string> names;
  /// Folders also stand for the files in folders within them.
  bool recursive = false;

  /// Adds -f and -R. Returns -f, which is not required.
  CLI::Option* add_to(CLI::App& app, const std::string& description);
};

/// Reads the objects of files in YAML or JSON, in the order of the files. A file may have several
/// documents, consecutive JSON objects, and lists. "-" is standard input; a folder stands for its *.yaml,
/// *.yml and *.json files, in order of their names. As with kubectl, a malformed object does not affect
/// the others, but after a document that is not YAML the rest of the file is skipped. Throws Error if a
/// file does not exist or there is nothing to read.
Manifests read_manifests(const FileFlags& files);

/// The namespace of a manifest's object: `ns` (-n), else its own, else the default; empty if the resource
/// has none. Throws Error if `ns` contradicts the manifest.
std::string namespace_of(const api::Object& object, const api::Resource& resource,
                         const std::string& ns, const rest::Client& client);

}  // namespace lookout::cmd

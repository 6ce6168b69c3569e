// The project that `lookout new` creates.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lookout::cmd {

/// A file that `lookout new` writes. Its path and its text contain {{placeholders}}.
struct ProjectTemplate {
  std::string_view path;
  std::string_view text;
};
/// Compiled in from cmd/new/templates/.
const std::vector<ProjectTemplate>& project_templates();

/// The names of a project.
struct ProjectNames {
  std::string name;           ///< "my-site": the program, and its objects in a cluster
  std::string group;          ///< "example.com"
  std::string kind;           ///< "MySite"
  std::string plural;         ///< "mysites"
  std::string file;           ///< "my_site": of the kind, for files and functions
  std::string cpp_namespace;  ///< "my_site": of the project
};

/// Checks the names and derives the rest. An empty kind comes from the name, an empty group is
/// example.com. Throws InvalidArgument for names that Kubernetes or C++ would refuse.
ProjectNames project_names(std::string name, std::string kind, std::string group);

/// Replaces {{placeholders}} in `text`.
std::string fill_in(std::string_view text, const ProjectNames& names);

/// Writes the project into `folder`, which must be empty or not exist. Returns the paths of the files, in
/// order. Throws Error if the folder is not empty or a file cannot be written.
std::vector<std::filesystem::path> write_project(const std::filesystem::path& folder,
                                                 const ProjectNames& names);

}  // namespace lookout::cmd

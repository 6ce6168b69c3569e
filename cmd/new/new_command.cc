#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cmd/commands.h"
#include "cmd/new/project.h"
#include "lookout/api/error.h"

namespace lookout::cmd {
namespace {

struct NewFlags {
  std::string name;
  std::string kind;
  std::string group;
  std::string output;
};

int make_project(const NewFlags& flags, const ProjectNames& names) {
  const std::filesystem::path folder = flags.output.empty() ? flags.name : flags.output;
  for (const auto& path : write_project(folder, names))
    fmt::print("{}\n", (folder / path).string());
  fmt::print(
      "\nA controller of {}.{}. Next:\n\n"
      "  cd {}\n"
      "  cmake -B build -G Ninja && cmake --build build   # if Lookout is installed; else see "
      "README.md\n"
      "  ctest --test-dir build\n"
      "  build/{}-controller --help\n\n"
      "config/crd.yaml has the fields of a {}; src/{}_controller.cc reconciles it.\n"
      "README.md describes how to run the controller, here and in a cluster.\n",
      names.plural, names.group, folder.string(), names.name, names.kind, names.file);
  return 0;
}

}  // namespace

void add_new(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "new", "Create a controller project that builds, tests and runs without changes");
  const auto flags = std::make_shared<NewFlags>();
  command->add_option("name", flags->name, "The name of the project, such as my-site")
      ->type_name("NAME")
      ->required();
  command
      ->add_option("--kind", flags->kind,
                   "The kind of its custom resource; default: derived from NAME")
      ->type_name("KIND");
  command->add_option("--group", flags->group, "The API group of the kind; default: example.com")
      ->type_name("GROUP");
  command->add_option("-o,--output", flags->output, "The folder to create; default: NAME")
      ->type_name("DIR");
  command->footer(
      "Writes a CMake project: a CRD and types that are generated from it, a controller, a test "
      "on\n"
      "the embedded API server, manifests for a cluster, a Dockerfile and a README. A folder that\n"
      "is not empty is not changed.\n\n"
      "Examples:\n"
      "  lookout new website --kind Website --group example.com\n"
      "  lookout new my-site -o ~/src/my-site");
  command->callback([flags, &action] {
    // Checked here, so that invalid names count as wrong usage.
    ProjectNames names;
    try {
      names = project_names(flags->name, flags->kind, flags->group);
    } catch (const InvalidArgument& e) {
      throw CLI::ValidationError(e.what());
    }
    action = [flags, names] { return make_project(*flags, names); };
  });
}

}  // namespace lookout::cmd

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "api/codegen/crd.h"
#include "cmd/commands.h"

namespace lookout::cmd {
namespace {

struct GenerateFlags {
  std::vector<std::string> inputs;
  std::string output = "-";
  std::string cpp_namespace;
};

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("generate", "Write C++ types for custom resources from their CRDs");
  const auto flags = std::make_shared<GenerateFlags>();
  command
      ->add_option("CRD", flags->inputs, "YAML with CustomResourceDefinitions; -: standard input")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--output", flags->output, "The header to write; -: standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option(
          "--namespace", flags->cpp_namespace,
          "The C++ namespace; default: the first part of the group, with an underscore if another "
          "library uses that name: time_")
      ->type_name("NS");
  command->footer(
      "Writes one header: objects, views, drafts, lists and the values of enumerations, in one\n"
      "namespace for each version. Use the types like Lookout's own.\n\n"
      "Examples:\n"
      "  lookout generate crontabs.yaml -o crontabs.h --namespace acme   # acme::v1::CronTab\n"
      "  kubectl get crd certificates.cert-manager.io -o yaml | lookout generate -");
  on_chosen(*command, action, [flags] {
    codegen::write_crd_header(flags->inputs, flags->output, flags->cpp_namespace);
    return 0;
  });
}

}  // namespace lookout::cmd

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>

#include "cmd/commands.h"
#include "cmd/stop_signals.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/kubeconfig.h"

namespace lookout::cmd {
namespace {

struct ServeFlags {
  std::string listen = "127.0.0.1:8001";
  std::string storage = "memory";
  std::string etcd_endpoints;
  std::string etcd_prefix = "/registry";
  std::string kubeconfig;
  apiserver::ServerOptions server;
};

/// "127.0.0.1:8001", "[::1]:8001", ":8001" (all addresses).
void read_address(const std::string& text, apiserver::ServerOptions& options) {
  const std::size_t colon = text.rfind(':');
  const char* end = text.data() + text.size();
  const auto port = colon == std::string::npos
                        ? std::from_chars_result{end, std::errc::invalid_argument}
                        : std::from_chars(text.data() + colon + 1, end, options.port);
  if (port.ec != std::errc() || port.ptr != end) {
    throw CLI::ValidationError("--listen", "\"" + text + "\" is no address such as 127.0.0.1:8001");
  }
  options.address = text.substr(0, colon);
  if (options.address.empty()) options.address = "0.0.0.0";
  if (options.address.front() == '[' && options.address.back() == ']') {
    options.address = options.address.substr(1, options.address.size() - 2);
  }
}

/// Writing replaces the file: not if it knows of other clusters than ours.
void check_kubeconfig(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  for (const auto& [name, cluster] : rest::Kubeconfig::read(file).clusters) {
    if (name == "lookout") continue;
    throw Error(
        fmt::format("{} has the cluster \"{}\": --write-kubeconfig would replace the whole file, "
                    "name another one",
                    file, name));
  }
}

int run(const ServeFlags& flags) {
  if (flags.storage == "etcd") {
    throw Error(
        "the etcd storage is not part of this version: leave --storage out to keep objects in "
        "memory");
  }
  StopSignals signals;
  if (!flags.kubeconfig.empty()) check_kubeconfig(flags.kubeconfig);
  apiserver::Server server(flags.server);
  const bool identifies = !flags.server.token_file.empty() || !flags.server.client_ca_file.empty();
  if (!flags.kubeconfig.empty()) {
    rest::write_kubeconfig(flags.kubeconfig, server.client_config());
    if (identifies && flags.server.tls_cert_file.empty()) {
      fmt::print(
          stderr,
          "lookout: clients send no credentials over plain http: give --tls-cert and --tls-key\n");
    }
  }
  fmt::print("Serving the Kubernetes API at {}, objects are kept in memory.\n", server.url());
  if (isatty(STDOUT_FILENO) != 0) {
    const std::string how =
        flags.kubeconfig.empty() ? "--server " + server.url() : "--kubeconfig " + flags.kubeconfig;
    fmt::print("\n  kubectl {0} get namespaces\n  lookout {0} watch pods -A\n\nCtrl-C ends it.\n",
               how);
  }
  std::fflush(stdout);
  signals.wait();
  server.stop();
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("serve", "Be an API server, for tests and trials");
  const auto flags = std::make_shared<ServeFlags>();
  apiserver::ServerOptions& server = flags->server;
  command->add_option("--listen", flags->listen, "Where to listen; port 0 takes a free one")
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  command->add_option("--storage", flags->storage, "Where objects are kept: memory or etcd")
      ->check(CLI::IsMember({"memory", "etcd"}))
      ->capture_default_str();
  command->add_option("--etcd-endpoints", flags->etcd_endpoints, "With --storage etcd: its members")
      ->type_name("URL,...");
  command->add_option("--etcd-prefix", flags->etcd_prefix, "With --storage etcd: before every key")
      ->capture_default_str();
  command->add_option("--tls-cert", server.tls_cert_file, "Speak TLS, with this certificate (PEM)")
      ->type_name("FILE");
  command->add_option("--tls-key", server.tls_key_file, "The key of the certificate (PEM)")
      ->type_name("FILE");
  command
      ->add_option("--client-ca", server.client_ca_file,
                   "Take client certificates of this authority")
      ->type_name("FILE");
  command
      ->add_option("--token-file", server.token_file,
                   "Take these bearer tokens: lines of token,user,uid,\"group1,group2\"")
      ->type_name("FILE");
  command
      ->add_option("--write-kubeconfig", flags->kubeconfig,
                   "Write a kubeconfig for this server, with a privileged user")
      ->type_name("FILE");
  command->footer(
      "Without --token-file and --client-ca everybody may do everything; with one of them, "
      "requests\n"
      "without credentials are refused.\n\n"
      "Examples:\n"
      "  lookout serve\n"
      "  lookout serve --listen 127.0.0.1:0 --write-kubeconfig /tmp/lookout.yaml\n"
      "  lookout serve --tls-cert server.crt --tls-key server.key --token-file tokens.csv");
  command->callback([flags, &action] {
    read_address(flags->listen, flags->server);
    action = [flags] { return run(*flags); };
  });
}

}  // namespace lookout::cmd

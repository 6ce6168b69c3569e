#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "cmd/cluster/simulated_cluster.h"
#include "cmd/commands.h"
#include "cmd/duration.h"
#include "cmd/listen_address.h"
#include "cmd/quiet_warnings.h"
#include "cmd/say.h"
#include "cmd/stop_signals.h"
#include "lookout/apiserver/encryption.h"
#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/error.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/rest/kubeconfig.h"

namespace lookout::cmd {
namespace {

constexpr int kMostPerClient = 1'000'000;
/// The help group of the options that need --storage etcd.
constexpr const char* kEtcdGroup = "With --storage etcd";

struct ServeFlags {
  std::string listen = "127.0.0.1:8001";
  std::string storage = "memory";
  std::string etcd_endpoints = "http://127.0.0.1:2379";
  std::string etcd_password_file;
  std::string encryption_config;
  double etcd_compaction_minutes = 5;
  double etcd_sync_minutes = 0;
  apiserver::storage::EtcdOptions etcd;
  std::string kubeconfig;
  bool bootstrap = true;
  bool simulate_cluster = false;
  cluster::Options cluster;
  std::string authorization = "AlwaysAllow";
  std::string audit_level = "Metadata";
  apiserver::ServerOptions server;
};

/// Writing replaces the whole file. Throws Error if it has clusters other than this one.
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

/// The first line of a file: a password.
std::string read_password(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) throw Error(fmt::format("there is no password in {}", file));
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

std::chrono::milliseconds milliseconds_of(double minutes) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double, std::ratio<60>>(minutes));
}

std::shared_ptr<apiserver::storage::Backend> etcd_storage(const ServeFlags& flags) {
  apiserver::storage::EtcdOptions options = flags.etcd;
  boost::split(options.endpoints, flags.etcd_endpoints, boost::is_any_of(","));
  if (!flags.etcd_password_file.empty()) options.password = read_password(flags.etcd_password_file);
  if (!flags.encryption_config.empty())
    options.transformer = apiserver::load_encryption_config(flags.encryption_config);
  options.compaction_interval = milliseconds_of(flags.etcd_compaction_minutes);
  options.sync_interval = milliseconds_of(flags.etcd_sync_minutes);
  return std::make_shared<apiserver::storage::EtcdBackend>(std::move(options));
}

/// Creates a server on etcd. The Error thrown when etcd does not respond has its address.
std::unique_ptr<apiserver::Server> server_on_etcd(apiserver::ServerOptions options,
                                                  const ServeFlags& flags) {
  using apiserver::storage::StorageError;
  options.storage = etcd_storage(flags);
  // The caches of all resources would log that they are waiting.
  const QuietWarnings quiet;
  const std::jthread notice([&](std::stop_token stop) {
    if (wait_for_stop(std::move(stop), std::chrono::seconds(2)))
      say("lookout: waiting for etcd ({})\n", flags.etcd_endpoints);
  });
  try {
    return std::make_unique<apiserver::Server>(std::move(options));
  } catch (const StorageError& e) {
    if (e.code() != StorageError::Code::kUnreachable && e.code() != StorageError::Code::kTimeout)
      throw;
    // Keep only the etcd client's message, without the API server's text for conflicts.
    constexpr std::string_view kDetail = "AdditionalErrorMsg: ";
    std::string_view why = e.what();
    if (const std::size_t at = why.find(kDetail); at != std::string_view::npos)
      why.remove_prefix(at + kDetail.size());
    throw Error(fmt::format("cannot reach etcd at {}; is it running? (--etcd-endpoints)", why));
  }
}

/// A write temporarily needs some hundred kilobytes. By default, glibc returns this memory to the
/// system after each write, which costs a third of the server's CPU time.
void keep_freed_memory() {
#ifdef M_TRIM_THRESHOLD
  constexpr int kMegabyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kMegabyte);
  mallopt(M_TRIM_THRESHOLD, 4 * kMegabyte);
#endif
}

/// On, as in a cluster, unless it is explicitly disabled.
void enable_service_accounts(apiserver::ServerOptions& options) {
  const auto& disabled = options.disable_admission_plugins;
  if (std::find(disabled.begin(), disabled.end(), "ServiceAccount") != disabled.end()) return;
  options.enable_admission_plugins.emplace_back("ServiceAccount");
}

int run(const ServeFlags& flags) {
  keep_freed_memory();
  StopSignals signals;
  if (!flags.kubeconfig.empty()) check_kubeconfig(flags.kubeconfig);
  const bool etcd = flags.storage == "etcd";
  apiserver::ServerOptions options = flags.server;
  if (flags.simulate_cluster) enable_service_accounts(options);
  options.bootstrap = flags.bootstrap;
  if (flags.authorization == "RBAC") options.authorization = apiserver::Authorization::kRbac;
  options.audit_level = flags.audit_level == "None"      ? apiserver::AuditLevel::kNone
                        : flags.audit_level == "Request" ? apiserver::AuditLevel::kRequest
                                                         : apiserver::AuditLevel::kMetadata;
  const auto owned = etcd ? server_on_etcd(std::move(options), flags)
                          : std::make_unique<apiserver::Server>(std::move(options));
  apiserver::Server& server = *owned;
  std::optional<cluster::SimulatedCluster> cluster;
  if (flags.simulate_cluster) {
    cluster.emplace(rest::Client(cluster::without_warnings(server.client_config())), flags.cluster);
  }
  const bool identifies = !flags.server.token_file.empty() || !flags.server.client_ca_file.empty();
  if (!flags.kubeconfig.empty()) {
    rest::write_kubeconfig(flags.kubeconfig, server.client_config());
    if (identifies && flags.server.tls_cert_file.empty()) {
      say("lookout: clients send no credentials over plain http: set --tls-cert and --tls-key\n");
    }
  }
  const ListenAddress listen{flags.server.address, server.port()};
  if (!identifies && !listen.is_loopback()) {
    say("lookout: no credentials are required: anybody who can reach port {} of this machine may "
        "read and\n"
        "lookout: change everything; set --token-file or --client-ca, or listen on 127.0.0.1:{}\n",
        server.port(), server.port());
  }
  // No punctuation after a URL: terminals would make it part of the link.
  fmt::print("Serving the Kubernetes API at {}{}\nObjects are kept in {}\n", server.url(),
             listen.is_any() ? " and at every other address of this machine" : "",
             etcd ? "etcd at " + flags.etcd_endpoints : "memory");
  if (isatty(STDOUT_FILENO) != 0) {
    const std::string how =
        flags.kubeconfig.empty() ? "--server " + server.url() : "--kubeconfig " + flags.kubeconfig;
    fmt::print("\n  kubectl {0} get namespaces\n  lookout {0} watch pods -A\n\nCtrl-C ends it.\n",
               how);
  }
  std::fflush(stdout);
  signals.wait();
  if (cluster) cluster->stop();
  server.stop();
  return 0;
}

void add_etcd(CLI::App& command, ServeFlags& flags) {
  apiserver::storage::EtcdOptions& etcd = flags.etcd;
  command.option_defaults()->group(kEtcdGroup);
  const auto add_file = [&](const char* name, std::string& path, const char* what) {
    command.add_option(name, path, what)->type_name("FILE");
  };
  const auto add_number = [&](const char* name, auto& number, const char* unit,
                              const CLI::Validator& check, const char* what) {
    command.add_option(name, number, what)->type_name(unit)->check(check)->capture_default_str();
  };
  command.add_option("--etcd-endpoints", flags.etcd_endpoints, "The members of the etcd cluster")
      ->type_name("URL,...")
      ->capture_default_str();
  add_number("--etcd-sync-interval", flags.etcd_sync_minutes, "MINUTES", CLI::NonNegativeNumber,
             "How often to replace the endpoints with the URLs that the cluster's members "
             "advertise, in minutes; 0: never");
  add_number("--etcd-max-send-bytes", etcd.max_send_bytes, "BYTES", CLI::PositiveNumber,
             "The largest request to etcd; etcd has its own limit (--max-request-bytes)");
  add_number("--etcd-max-receive-bytes", etcd.max_receive_bytes, "BYTES", CLI::PositiveNumber,
             "The largest response that is accepted from etcd");
  command.add_option("--etcd-prefix", etcd.prefix, "The prefix of every key")
      ->capture_default_str();
  add_file("--etcd-cafile", etcd.ca_file, "The CA of etcd's certificates (PEM)");
  add_file("--etcd-certfile", etcd.cert_file, "A client certificate for etcd (PEM)");
  add_file("--etcd-keyfile", etcd.key_file, "The key of the certificate (PEM)");
  command.add_option("--etcd-user", etcd.username, "The user, if etcd has authentication")
      ->type_name("NAME");
  add_file("--etcd-password-file", flags.etcd_password_file,
           "A file whose first line is the user's password");
  add_number("--etcd-compaction-interval", flags.etcd_compaction_minutes, "MINUTES",
             CLI::NonNegativeNumber, "How often to compact etcd's history, in minutes; 0: never");
  command
      .add_flag("--watch-cache,!--no-watch-cache", etcd.watch_cache,
                "Serve lists and watches from a cache (--watch-cache=false: each goes to etcd)")
      ->default_str("true");
  add_file("--encryption-config", flags.encryption_config,
           "Encrypt values: kube-apiserver's EncryptionConfiguration (aesgcm, identity)");
}

void add_authorization(CLI::App& command, ServeFlags& flags) {
  command.option_defaults()->group("Users and their rights");
  command
      .add_option(
          "--authorization-mode", flags.authorization,
          "AlwaysAllow: authenticated users may do everything; RBAC: they may do what roles "
          "and bindings grant")
      ->check(CLI::IsMember({"AlwaysAllow", "RBAC"}))
      ->capture_default_str();
  command
      .add_flag("--bootstrap,!--no-bootstrap", flags.bootstrap,
                "Create the bootstrap roles and bindings, flow schemas, priority levels, API "
                "services and the Service default/kubernetes (--bootstrap=false: do not)")
      ->default_str("true");
  command
      .add_option("--service-account-key-file", flags.server.service_account_key_file,
                  "The private key for service account tokens (PEM: RSA, or EC on P-256); default: "
                  "a new key, so tokens are valid only until the server stops")
      ->type_name("FILE");
  command
      .add_option("--service-account-issuer", flags.server.service_account_issuer,
                  "The issuer of service account tokens")
      ->type_name("URL")
      ->capture_default_str();
}

void add_admission(CLI::App& command, ServeFlags& flags) {
  command.option_defaults()->group("Admission");
  command
      .add_option("--enable-admission-plugins", flags.server.enable_admission_plugins,
                  "ServiceAccount: new pods need a service account, \"default\" unless they name "
                  "one, and get\n"
                  "a volume with its token. Each namespace gets the account \"default\" and the "
                  "config map\n"
                  "kube-root-ca.crt. Default: on with --simulate-cluster, off otherwise. (The "
                  "other default\n"
                  "plugins of kube-apiserver are always on.)")
      ->type_name("NAME,...")
      ->delimiter(',');
  command
      .add_option("--disable-admission-plugins", flags.server.disable_admission_plugins,
                  "ServiceAccount: pods may name accounts that do not exist")
      ->type_name("NAME,...")
      ->delimiter(',');
}

void add_limits(CLI::App& command, ServeFlags& flags) {
  command.option_defaults()->group("Limits");
  const auto add = [&](const char* name, std::size_t& limit, const char* what) {
    command.add_option(name, limit, what)
        ->type_name("COUNT")
        ->check(CLI::Range(0, kMostPerClient))
        ->capture_default_str();
  };
  add("--max-requests-per-user", flags.server.max_requests_per_user,
      "Answer 429 while a user has this many requests running, not counting watches and "
      "system:masters; 0: no limit");
  add("--max-requests-per-address", flags.server.max_requests_per_address,
      "Answer 429 while an address (with IPv6: a /64 network) has this many requests running, not "
      "counting watches and system:masters; 0: no limit");
  add("--max-connections-per-address", flags.server.max_connections_per_address,
      "Close new connections from an address that has this many; 0: no limit");
}

void add_audit(CLI::App& command, ServeFlags& flags) {
  command.option_defaults()->group("Audit log");
  command
      .add_option("--audit-log-path", flags.server.audit_log_file,
                  "Append an audit event for each request to this file, as a line of JSON")
      ->type_name("FILE");
  command
      .add_option("--audit-level", flags.audit_level,
                  "None, Metadata, or Request (with the bodies of writes, except those of Secrets, "
                  "ConfigMaps and tokens)")
      ->check(CLI::IsMember({"None", "Metadata", "Request"}))
      ->capture_default_str();
}

void add_simulation(CLI::App& command, ServeFlags& flags) {
  command.option_defaults()->group("Simulated cluster");
  command.add_flag("--simulate-cluster", flags.simulate_cluster,
                   "Add simulated nodes, a scheduler and the workload controllers: pods become "
                   "ready, but run nothing");
  command.add_option("--simulated-nodes", flags.cluster.nodes, "The number of nodes")
      ->type_name("COUNT")
      ->check(CLI::Range(0, 5000))
      ->capture_default_str();
}

/// Rejects options that would have no effect.
void check_needs(const CLI::App& command, const ServeFlags& flags) {
  const auto refuse = [](const std::string& option, const char* needed) {
    throw CLI::ValidationError(fmt::format("{} needs {}", option, needed));
  };
  if (flags.storage != "etcd") {
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_group() == kEtcdGroup && option->count() > 0)
        refuse(option->get_name(), "--storage etcd");
    }
  }
  if (flags.server.audit_log_file.empty() && command.count("--audit-level") > 0)
    refuse("--audit-level", "--audit-log-path");
  if (!flags.simulate_cluster && command.count("--simulated-nodes") > 0)
    refuse("--simulated-nodes", "--simulate-cluster");
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("serve", "Run an API server for tests and experiments");
  const auto flags = std::make_shared<ServeFlags>();
  apiserver::ServerOptions& server = flags->server;
  command->add_option("--listen", flags->listen, "The address to listen on; port 0: any free port")
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  command->add_option("--storage", flags->storage, "The storage of objects: memory or etcd")
      ->check(CLI::IsMember({"memory", "etcd"}))
      ->capture_default_str();
  command->add_option("--tls-cert", server.tls_cert_file, "Use TLS with this certificate (PEM)")
      ->type_name("FILE");
  command->add_option("--tls-key", server.tls_key_file, "The key of the certificate (PEM)")
      ->type_name("FILE");
  command
      ->add_option("--client-ca", server.client_ca_file, "Accept client certificates from this CA")
      ->type_name("FILE");
  command
      ->add_option("--token-file", server.token_file,
                   "Accept these bearer tokens: lines of token,user,uid,\"group1,group2\"")
      ->type_name("FILE");
  command
      ->add_option("--write-kubeconfig", flags->kubeconfig,
                   "Write a kubeconfig for this server, with a privileged user")
      ->type_name("FILE");
  command
      ->add_option("--allow-host", server.allowed_hosts,
                   "Without authentication: accept this host name, besides addresses and "
                   "localhost; can be repeated")
      ->type_name("NAME");
  add_duration(*command, "--shutdown-delay", server.shutdown_delay,
               "On shutdown, keep serving for this long while /readyz fails: 10s");
  // Each of these sets the help group of the options that follow.
  add_etcd(*command, *flags);
  add_authorization(*command, *flags);
  add_admission(*command, *flags);
  add_limits(*command, *flags);
  add_audit(*command, *flags);
  add_simulation(*command, *flags);
  command->footer(
      "Without --token-file and --client-ca, everybody may do everything, except foreign web "
      "pages.\n"
      "With one of them, requests without credentials are rejected.\n"
      "With --authorization-mode RBAC, users have the rights that roles and bindings grant. "
      "Members "
      "of\n"
      "system:masters may do everything, and, without those files, so may requests without a "
      "token.\n\n"
      "Examples:\n"
      "  lookout serve\n"
      "  lookout serve --simulate-cluster --write-kubeconfig lookout.kubeconfig\n"
      "  lookout serve --storage etcd --etcd-endpoints http://127.0.0.1:2379\n"
      "  lookout serve --listen 127.0.0.1:0 --write-kubeconfig lookout.kubeconfig\n"
      "  lookout serve --tls-cert server.crt --tls-key server.key --token-file tokens.csv\n"
      "  lookout serve --authorization-mode RBAC --write-kubeconfig lookout.kubeconfig");
  command->callback([command, flags, &action] {
    check_needs(*command, *flags);
    const ListenAddress listen = parse_listen_address(flags->listen);
    flags->server.address = listen.address;
    flags->server.port = listen.port;
    action = [flags] { return run(*flags); };
  });
}

}  // namespace lookout::cmd

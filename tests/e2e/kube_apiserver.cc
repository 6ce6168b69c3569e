#include "tests/e2e/kube_apiserver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "lookout/rest/client.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"

namespace lookout::test {
namespace {

std::filesystem::path cache_dir() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return cache;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "/" : home) / ".cache";
}

void openssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  const CommandResult result = run_command(arguments, true);
  if (result.status != 0) throw std::runtime_error("openssl failed: " + result.output);
}

/// A folder in memory if possible: on a disk, etcd syncs every write.
std::filesystem::path quick_dir() {
  const char* memory = "/dev/shm";
  if (access(memory, W_OK) == 0) return memory;
  return std::filesystem::temp_directory_path();
}

}  // namespace

std::optional<std::filesystem::path> KubeApiserver::find_program() {
  if (test::find_program("etcd").empty()) return std::nullopt;
  const char* named = std::getenv("LOOKOUT_KUBE_APISERVER");
  const std::filesystem::path program = named != nullptr && *named != '\0'
                                            ? std::filesystem::path(named)
                                            : cache_dir() / "lookout" / "kube-apiserver-1.20";
  if (access(program.c_str(), X_OK) != 0) return std::nullopt;
  return program;
}

KubeApiserver::KubeApiserver(std::filesystem::path program)
    : program_(std::move(program)),
      data_(quick_dir()),
      port_(free_port()),
      etcd_port_(free_port()) {
  make_certificates();
  const std::string client_url = fmt::format("http://127.0.0.1:{}", etcd_port_);
  const std::string peer_url = fmt::format("http://127.0.0.1:{}", free_port());
  etcd_.emplace(
      std::vector<std::string>{"etcd", "--data-dir", data_.path() / "etcd", "--listen-client-urls",
                               client_url, "--advertise-client-urls", client_url,
                               "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls",
                               peer_url, "--initial-cluster", "default=" + peer_url,
                               "--quota-backend-bytes", "1073741824"},
      dir_ / "etcd.log");
  start();
}

void KubeApiserver::make_certificates() {
  const std::string ca_key = dir_ / "ca.key", ca = dir_ / "ca.crt", key = dir_ / "server.key",
                    request = dir_ / "server.csr", certificate = dir_ / "server.crt",
                    extensions = dir_ / "extensions", signing = dir_ / "sa.key";
  openssl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", ca_key, "-out", ca, "-days",
           "2", "-subj", "/CN=lookout-test-ca"});
  openssl({"req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj",
           "/CN=kube-apiserver"});
  write_file(extensions, "subjectAltName=IP:127.0.0.1,DNS:localhost");
  openssl({"x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-out",
           certificate, "-days", "2", "-extfile", extensions});
  openssl({"genrsa", "-out", signing, "2048"});
  openssl({"rsa", "-in", signing, "-pubout", "-out", dir_ / "sa.pub"});
  write_file(dir_ / "tokens.csv", "SECRET,admin,admin,system:masters\n");
}

void KubeApiserver::start() {
  server_.emplace(
      std::vector<std::string>{
          program_.string(), fmt::format("--etcd-servers=http://127.0.0.1:{}", etcd_port_),
          fmt::format("--secure-port={}", port_), "--bind-address=127.0.0.1",
          "--advertise-address=127.0.0.1", "--tls-cert-file=" + (dir_ / "server.crt").string(),
          "--tls-private-key-file=" + (dir_ / "server.key").string(),
          "--client-ca-file=" + (dir_ / "ca.crt").string(),
          "--token-auth-file=" + (dir_ / "tokens.csv").string(),
          "--service-account-key-file=" + (dir_ / "sa.pub").string(),
          "--service-account-signing-key-file=" + (dir_ / "sa.key").string(),
          "--service-account-issuer=https://kubernetes.default.svc",
          // A large range, so that no other service has one of the tests' addresses by chance.
          "--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=RBAC",
          "--disable-admission-plugins=ServiceAccount"},
      dir_ / "kube-apiserver.log");
  const rest::Client client{config()};
  const bool ready = eventually(
      [&] {
        try {
          // The server reports ready before the controller that creates this namespace has run.
          return client.get_raw("/readyz") == "ok" &&
                 !client.get_raw("/api/v1/namespaces/default").empty();
        } catch (const std::exception&) {
          return false;
        }
      },
      std::chrono::seconds(120));
  if (!ready) {
    throw std::runtime_error("kube-apiserver does not get ready:\n" +
                             read_file(dir_ / "kube-apiserver.log"));
  }
}

void KubeApiserver::kill() { server_->signal(SIGKILL); }
void KubeApiserver::freeze() { server_->signal(SIGSTOP); }
void KubeApiserver::thaw() { server_->signal(SIGCONT); }

void KubeApiserver::compact() {
  const auto ask = [this](const std::string& what, const std::string& body) {
    const auto answer = run_command({"curl", "--silent", "--fail", "--data", body,
                                     fmt::format("http://127.0.0.1:{}/v3/{}", etcd_port_, what)});
    if (answer.status != 0) throw std::runtime_error("etcd refuses " + what);
    return api::Object::parse(answer.output);
  };
  const std::string revision(
      lookout::test::held(ask("maintenance/status", "{}"))["header"]["revision"].as_string());
  ask("kv/compaction", fmt::format(R"({{"revision":"{}"}})", revision));
}

rest::Config KubeApiserver::config() const {
  rest::Config config;
  config.server = fmt::format("https://127.0.0.1:{}", port_);
  config.ca_file = dir_ / "ca.crt";
  config.bearer_token = "SECRET";
  return config;
}

}  // namespace lookout::test

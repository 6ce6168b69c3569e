#include "tests/apiserver/storage/etcd3/etcd_process.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include "tests/support/eventually.h"

namespace lookout::test {

namespace {

/// The number after `name` in a text; 0 if there is none.
std::uint64_t number_behind(std::string_view text, std::string_view name) {
  std::uint64_t out = 0;
  const std::size_t at = text.find(name);
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + name.size(), text.data() + text.size(), out);
  return out;
}

/// The flag for the interval of progress notifications: 3.6 has a new name, and 3.7 has dropped the old
/// one.
const std::string& progress_flag() {
  static const std::string flag = [] {
    const std::string version = run_command({"etcd", "--version"}).output;
    const bool old = version.find("Version: 3.4.") != std::string::npos ||
                     version.find("Version: 3.5.") != std::string::npos;
    return fmt::format("--{}watch-progress-notify-interval", old ? "experimental-" : "");
  }();
  return flag;
}

}  // namespace

bool etcd_is_there() {
  if (!find_program("etcd").empty() && !find_program("etcdctl").empty()) return true;
  std::cerr << "*** no etcd here: install etcd-server and etcd-client ***\n";
  return false;
}

EtcdCluster::EtcdCluster(Options options) : options_(std::move(options)) {
  for (int i = 0; i < options_.members; ++i) {
    Member& member = members_.emplace_back();
    member.name = fmt::format("m{}", i);
    member.client_port = free_port();
    member.peer_port = free_port();
  }
  if (options_.partitions) {
    std::vector<int> ports;
    for (const Member& member : members_) ports.push_back(member.peer_port);
    network_ = std::make_unique<PeerNetwork>(ports);
  }
  for (std::size_t i = 0; i < members_.size(); ++i) restart(i);
  wait_until_ready();
}

std::string EtcdCluster::endpoint(std::size_t member) const {
  return fmt::format("{}://127.0.0.1:{}", options_.tls ? "https" : "http",
                     members_[member].client_port);
}

std::vector<std::string> EtcdCluster::endpoints() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < members_.size(); ++i) out.push_back(endpoint(i));
  return out;
}

void EtcdCluster::kill(std::size_t member) { members_[member].process.reset(); }

void EtcdCluster::stop(std::size_t member) {
  members_[member].process->signal(SIGTERM);
  members_[member].process.reset();
}

std::string EtcdCluster::peer_url(std::size_t member) const {
  return fmt::format("http://127.0.0.1:{}",
                     network_ ? network_->port(member) : members_[member].peer_port);
}

std::string EtcdCluster::initial_cluster() const {
  std::string out;
  for (std::size_t i = 0; i < members_.size(); ++i)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", members_[i].name, peer_url(i));
  return out;
}

void EtcdCluster::restart(std::size_t index) {
  Member& member = members_[index];
  std::vector<std::string> command = {
      "etcd", "--name", member.name, "--data-dir", (dir_ / member.name).string(),
      "--listen-client-urls", endpoint(index), "--advertise-client-urls", endpoint(index),
      "--listen-peer-urls", fmt::format("http://127.0.0.1:{}", member.peer_port),
      "--initial-advertise-peer-urls", peer_url(index), "--initial-cluster", initial_cluster(),
      // Fast elections.
      "--heartbeat-interval", "50", "--election-timeout", "400", progress_flag(), "200ms"};
  command.insert(command.end(), options_.flags.begin(), options_.flags.end());
  member.process.emplace(command, dir_ / (member.name + ".log"));
  if (network_) network_->set_process(index, member.process->pid());
}

std::string EtcdCluster::save_snapshot(std::size_t member) const {
  const std::string file = (dir_ / (members_[member].name + ".snapshot")).string();
  // With a busy etcd, this takes longer than other commands.
  etcdctl({"--command-timeout", "20s", "snapshot", "save", file}, member);
  if (!std::filesystem::exists(file)) throw std::runtime_error("etcd gives no snapshot");
  return file;
}

void EtcdCluster::restore(const std::string& snapshot) {
  // Up to 3.5, this is part of etcdctl.
  const char* const program = find_program("etcdutl").empty() ? "etcdctl" : "etcdutl";
  for (std::size_t i = 0; i < members_.size(); ++i) kill(i);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto data = dir_ / members_[i].name;
    std::filesystem::remove_all(data);
    const auto restored =
        run_command({"env", "ETCDCTL_API=3", program, "snapshot", "restore", snapshot, "--name",
                     members_[i].name, "--data-dir", data.string(), "--initial-advertise-peer-urls",
                     peer_url(i), "--initial-cluster", initial_cluster()},
                    true);
    if (restored.status != 0) throw std::runtime_error(program + (": " + restored.output));
  }
  for (std::size_t i = 0; i < members_.size(); ++i) restart(i);
  wait_until_ready();
}

void EtcdCluster::freeze(std::size_t member) { members_[member].process->signal(SIGSTOP); }
void EtcdCluster::thaw(std::size_t member) { members_[member].process->signal(SIGCONT); }
void EtcdCluster::isolate(std::size_t member) { network_->isolate(member); }
void EtcdCluster::rejoin() { network_->rejoin(); }

std::string EtcdCluster::etcdctl(std::vector<std::string> arguments,
                                 std::optional<std::size_t> member) const {
  std::string endpoints;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (member && *member != i) continue;
    endpoints += (endpoints.empty() ? "" : ",") + endpoint(i);
  }
  std::vector<std::string> command = {"env",         "ETCDCTL_API=3",  "etcdctl",
                                      "--endpoints", endpoints,        "--command-timeout",
                                      "2s",          "--dial-timeout", "1s"};
  command.insert(command.end(), options_.control_flags.begin(), options_.control_flags.end());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command).output;
}

void EtcdCluster::wait_until_ready() const {
  // Without a client certificate, the check is not possible.
  if (options_.tls && options_.control_flags.empty()) return;
  // The check writes nothing, because tests count revisions. A member has a URL in the list once it
  // has joined.
  const bool ready = eventually([&] {
    if (etcdctl({"get", "ready", "--write-out=json"}).find("\"header\"") == std::string::npos)
      return false;
    const std::string list = etcdctl({"member", "list"});
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].process && list.find(endpoint(i)) == std::string::npos) return false;
    }
    return true;
  });
  if (!ready) throw std::runtime_error("the etcds do not get ready: see " + dir_.path().string());
}

std::size_t EtcdCluster::leader() const {
  std::size_t leader = 0;
  const auto leads = [&](std::size_t member) {
    const std::string status = etcdctl({"endpoint", "status", "--write-out=fields"}, member);
    const std::uint64_t id = number_behind(status, "\"MemberID\" : ");
    return id != 0 && id == number_behind(status, "\"Leader\" : ");
  };
  const bool found = eventually([&] {
    for (leader = 0; leader < members_.size(); ++leader) {
      if (leads(leader)) return true;
    }
    return false;
  });
  if (!found) throw std::runtime_error("the etcds have no leader");
  return leader;
}

EtcdCluster& shared_etcd() {
  static EtcdCluster cluster;
  return cluster;
}

std::string unique_etcd_prefix() {
  static std::atomic<int> next{0};
  return fmt::format("/test-{}", ++next);
}

}  // namespace lookout::test

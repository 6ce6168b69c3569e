#include "cmd/bench/fleet/cluster.h"

#include <fmt/format.h>

#include "lookout/apiserver/storage/memory.h"
#include "lookout/k8s/core/v1.h"

namespace lookout::cmd::bench::fleet {
namespace {

using k8s::core::v1::Pod;

constexpr const char* kRunning =
    R"({"status":{"phase":"Running","podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}],"conditions":[{"type":"Ready","status":"True"}]}})";

}  // namespace

Cluster::Cluster()
    : options_([] {
        apiserver::ServerOptions out;
        out.storage = std::make_shared<apiserver::storage::MemoryBackend>();
        return out;
      }()),
      server_(std::make_unique<apiserver::Server>(options_)),
      client_(server_->client_config()) {
  options_.port = server_->port();
}

void Cluster::add_pod(const std::string& name, std::uint16_t port) const {
  const auto pods = client_.resource(Pod::kResource, kNamespace);
  pods.create(api::Object::parse(fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"containers":[{{"name":"web","image":"none","ports":[{{"containerPort":{}}}]}}]}}}})",
      name, port)));
  pods.patch(name, rest::PatchType::kMerge, kRunning, {}, "status");
}

void Cluster::set_ready(const std::string& name, bool ready) const {
  const auto condition =
      fmt::format(R"({{"status":{{"conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
                  ready ? "True" : "False");
  client_.resource(Pod::kResource, kNamespace)
      .patch(name, rest::PatchType::kMerge, condition, {}, "status");
}

void Cluster::remove_pod(const std::string& name) const {
  rest::DeleteOptions now;
  now.grace_period_seconds = 0;
  client_.resource(Pod::kResource, kNamespace).remove(name, now);
}

}  // namespace lookout::cmd::bench::fleet

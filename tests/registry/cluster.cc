#include "tests/registry/cluster.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "lookout/apiserver/storage/memory.h"
#include "lookout/k8s/core/v1.h"

namespace lookout::registry::test {
namespace {

std::string quoted(const std::string& text) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  return {buffer.GetString(), buffer.GetSize()};
}

std::string json_map(const std::map<std::string, std::string>& map) {
  std::string out = "{";
  for (const auto& [key, value] : map) {
    if (out.size() > 1) out += ",";
    out += quoted(key) + ":" + quoted(value);
  }
  return out + "}";
}

std::string status_patch(const std::string& ip, const std::string& phase, bool ready) {
  return fmt::format(
      R"({{"status":{{"phase":"{0}","podIP":{1},"podIPs":[{{"ip":{1}}}],"conditions":[{{"type":"Initialized","status":"True"}},{{"type":"Ready","status":"{2}"}}]}}}})",
      phase, quoted(ip), ready ? "True" : "False");
}

}  // namespace

PodTemplate kratos_pod(const std::string& service, const std::string& id, const std::string& ip,
                       const std::string& version) {
  PodTemplate out;
  out.labels = {{"kratos-service-app", service},
                {"kratos-service-id", id},
                {"kratos-service-version", version}};
  out.annotations = {{"kratos-service-protocols", R"({"80":"http"})"}};
  out.ip = ip;
  return out;
}

Cluster::Cluster(apiserver::ServerOptions options)
    : options_(std::move(options)),
      storage_(options_.storage ? options_.storage
                                : std::make_shared<apiserver::storage::MemoryBackend>()),
      client_([&] {
        options_.storage = storage_;
        server_ = std::make_unique<apiserver::Server>(options_);
        options_.port = server_->port();
        return rest::Client(server_->client_config());
      }()) {}

rest::ResourceClient Cluster::pods(const std::string& ns) const {
  return client_.resource(k8s::core::v1::Pod::kResource, ns);
}

void Cluster::create_namespace(const std::string& ns) const {
  client_.resource(k8s::core::v1::Namespace::kResource)
      .create(api::Object::parse(fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns)));
}

void Cluster::create_pod(const std::string& name, const PodTemplate& pod,
                         const std::string& ns) const {
  pods(ns).create(api::Object::parse(fmt::format(
      R"({{"metadata":{{"name":"{}","labels":{},"annotations":{}}},"spec":{{"containers":[{{"name":"main","image":"nginx:1.7.9","ports":{}}}]}}}})",
      name, json_map(pod.labels), json_map(pod.annotations), pod.ports)));
  if (!pod.ip.empty()) set_status(name, pod.ip, pod.phase, pod.ready, ns);
}

void Cluster::set_status(const std::string& name, const std::string& ip, const std::string& phase,
                         bool ready, const std::string& ns) const {
  pods(ns).patch(name, rest::PatchType::kMerge, status_patch(ip, phase, ready), {}, "status");
}

api::Object Cluster::patch_pod(const std::string& name, const std::string& patch,
                               const std::string& ns) const {
  return pods(ns).patch(name, rest::PatchType::kMerge, patch);
}

void Cluster::label(const std::string& name, const std::string& label, const std::string& value,
                    const std::string& ns) const {
  patch_pod(name, R"({"metadata":{"labels":)" + json_map({{label, value}}) + "}}", ns);
}

void Cluster::annotate(const std::string& name, const std::string& annotation,
                       const std::string& value, const std::string& ns) const {
  patch_pod(name, R"({"metadata":{"annotations":)" + json_map({{annotation, value}}) + "}}", ns);
}

void Cluster::remove_pod(const std::string& name, const std::string& ns) const {
  rest::DeleteOptions now;
  now.grace_period_seconds = 0;
  pods(ns).remove(name, now);
}

void Cluster::stop_server() { server_.reset(); }
void Cluster::start_server() { server_ = std::make_unique<apiserver::Server>(options_); }

std::vector<std::string> ids(const InstanceSet& set) {
  std::vector<std::string> out;
  for (const auto& instance : set) out.push_back(instance.id);
  return out;
}

}  // namespace lookout::registry::test

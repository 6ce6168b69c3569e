#include "apiserver/bootstrap/bootstrap.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/bootstrap/policy.h"
#include "apiserver/controllers/beside.h"
#include "apiserver/controllers/own_writes.h"
#include "apiserver/names.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/async_event.h"
#include "lookout/base/detail/free_with.h"

namespace lookout::apiserver::bootstrap {
namespace {

namespace asio = boost::asio;

using controllers::kServerManager;
using json::Value;
using resources::Target;
using std::chrono::steady_clock;

/// How long to wait for an object that another server creates.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kPause{50};

/// `present` with the missing elements of `wanted` appended.
Object with_missing(const Object& present, const Object& wanted, const char* list) {
  json::Document document = present.to_document();
  auto& allocator = document.GetAllocator();
  const json::Document other = wanted.to_document();
  const Value* elements = json::find(other, list);
  if (elements == nullptr) return present;
  Value* own = json::find(document, list);
  if (own == nullptr || !own->IsArray())
    own = &json::set(document, list, Value(rapidjson::kArrayType), allocator);
  bool complete = true;
  for (const Value& element : elements->GetArray()) {
    if (std::find(own->Begin(), own->End(), element) != own->End()) continue;
    own->PushBack(json::deep_copy(element, allocator), allocator);
    complete = false;
  }
  return complete ? present : Object::from(document);
}

Object reconciled(const Object& present, const Object& wanted) {
  const api::Value autoupdate =
      present["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"];
  if (autoupdate.as_string() == "false") return present;
  // RoleAggregation sets the rules of an aggregated role.
  if (wanted["aggregationRule"].exists()) return present;
  return with_missing(with_missing(present, wanted, "rules"), wanted, "subjects");
}

/// Like controllers::create_once(), for an object that allocates something unique, such as a cluster
/// IP. Another server may have allocated it already, and creates the same object next.
Awaitable<void> create_once_somewhere(const controllers::Context& context, Target target,
                                      Object object) {
  const auto until = steady_clock::now() + kPatience;
  AsyncEvent bell(co_await asio::this_coro::executor);
  for (;;) {
    try {
      co_await controllers::create_once(context, target, object, kServerManager);
      co_return;
    } catch (const api::StatusError& e) {
      if (!api::is_invalid(e) || steady_clock::now() >= until) throw;
    }
    co_await bell.wait(steady_clock::now() + kPause);
  }
}

Target target_of(const controllers::Context& context, std::string_view group,
                 std::string_view plural, const Object& object) {
  Target target;
  target.resource = context.resources.table()->find(group, "v1", plural);
  target.ns = object.ns();
  target.name = object.name();
  return target;
}

Awaitable<void> reconcile(const controllers::Context& context, const Entry& entry) {
  const Target target = target_of(context, entry.group, entry.plural, entry.object);
  resources::Store::Change change = [wanted = entry.object](const Object& present) {
    return reconciled(present, wanted);
  };
  co_await controllers::create_or_update(context, target, entry.object, std::move(change),
                                         kServerManager);
}

/// Creates an object with this server's address. If it exists with another address, updates `parts`.
Awaitable<void> publish_address(const controllers::Context& context, Target target, Object object,
                                std::vector<const char*> parts) {
  resources::Store::Change change = [object, parts](const Object& present) {
    json::Document document = present.to_document();
    const json::Document wanted = object.to_document();
    for (const char* part : parts) json::take(document, wanted, part, document.GetAllocator());
    return Object::from(document);
  };
  co_await controllers::create_or_update(context, target, object, std::move(change),
                                         kServerManager);
}

}  // namespace

std::vector<std::string> certificates_in(const std::string& file) {
  using lookout::detail::FreeWith;
  const std::unique_ptr<BIO, FreeWith<BIO_free_all>> in(BIO_new_file(file.c_str(), "r"));
  std::vector<std::string> out;
  while (in != nullptr) {
    const std::unique_ptr<X509, FreeWith<X509_free>> certificate(
        PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) break;
    const std::unique_ptr<BIO, FreeWith<BIO_free_all>> text(BIO_new(BIO_s_mem()));
    char* begin = nullptr;
    if (text == nullptr || PEM_write_bio_X509(text.get(), certificate.get()) != 1) continue;
    const long size = BIO_get_mem_data(text.get(), &begin);
    out.emplace_back(begin, static_cast<std::size_t>(size));
  }
  // OpenSSL reports the end of the file as an error.
  ERR_clear_error();
  if (out.empty()) throw Error(fmt::format("{}: expected certificates in PEM", file));
  return out;
}

Awaitable<void> publish_client_ca(const controllers::Context& context, std::string pem_file) {
  constexpr const char* kKey = "client-ca-file";
  const std::vector<std::string> certificates = certificates_in(pem_file);
  const auto published = [&](const Object& present) {
    json::Document document = present.to_document();
    auto& allocator = document.GetAllocator();
    Value& data = json::child(document, "data", allocator);
    std::string text(json::text(data, kKey));
    bool complete = true;
    for (const std::string& certificate : certificates) {
      if (text.find(certificate) != std::string::npos) continue;
      text += certificate;
      complete = false;
    }
    if (complete) return present;
    json::set(data, kKey, text, allocator);
    return Object::from(document);
  };
  const Object wanted = published(Object::parse(
      R"({"metadata":{"name":"extension-apiserver-authentication","namespace":"kube-system"}})"));
  const Target target = target_of(context, "", "configmaps", wanted);
  resources::Store::Change change = published;
  co_await controllers::create_or_update(context, target, wanted, std::move(change),
                                         kServerManager);
}

Awaitable<void> settle_service_range(const controllers::Context& context) {
  const Object range = Object::parse(R"({"apiVersion":"networking.k8s.io/v1",)"
                                     R"("kind":"ServiceCIDR","metadata":{"name":"kubernetes"}})");
  Target target = target_of(context, "networking.k8s.io", "servicecidrs", range);
  const Object present = co_await context.store.get(target);
  if (!resources::is_deleting(present) && !resources::is_condition_true(present, "Ready")) {
    json::Document document = range.to_document();
    auto& allocator = document.GetAllocator();
    resources::set_condition(json::child(document, "status", allocator),
                             {"Ready", true, "", "Kubernetes default Service CIDR is ready"},
                             allocator);
    Object config = Object::from(document);
    co_await controllers::apply(context, std::move(target), std::move(config),
                                resources::Part::kStatus, "kubernetes-service-cidr-controller");
  }
}

Awaitable<void> reconcile_policy(const controllers::Context& context) {
  const std::vector<Entry> entries = parse_policy(policy_text());
  std::function<Awaitable<void>(std::size_t)> work = [&](std::size_t index) {
    return reconcile(context, entries[index]);
  };
  co_await controllers::run_beside(entries.size(), controllers::kWritesAtOnce, std::move(work));
}

Awaitable<void> create_kubernetes_service(const controllers::Context& context, std::string ip,
                                          std::string address, int port, bool tls) {
  const char* name = tls ? "https" : "http";
  const Object service = Object::parse(
      fmt::format(R"({{"metadata":{{"name":"kubernetes","namespace":"default",)"
                  R"("labels":{{"component":"apiserver","provider":"kubernetes"}}}},)"
                  R"("spec":{{"type":"ClusterIP","clusterIP":"{}","sessionAffinity":"None",)"
                  R"("ipFamilyPolicy":"SingleStack",)"
                  R"("ports":[{{"name":"{}","protocol":"TCP","port":{},"targetPort":{}}}]}}}})",
                  ip, name, tls ? 443 : 80, port));
  co_await create_once_somewhere(context, target_of(context, "", "services", service), service);
  const Object slice = Object::parse(
      fmt::format(R"({{"metadata":{{"name":"kubernetes","namespace":"default",)"
                  R"("labels":{{"kubernetes.io/service-name":"kubernetes"}}}},"addressType":"{}",)"
                  R"("endpoints":[{{"addresses":["{}"],"conditions":{{"ready":true}}}}],)"
                  R"("ports":[{{"name":"{}","protocol":"TCP","port":{}}}]}})",
                  address.find(':') == std::string::npos ? "IPv4" : "IPv6", address, name, port));
  const Target slices = target_of(context, "discovery.k8s.io", "endpointslices", slice);
  std::vector<const char*> parts = {"endpoints", "ports"};
  co_await publish_address(context, slices, slice, std::move(parts));
  // Validation rejects loopback addresses in Endpoints, but not in this EndpointSlice.
  const asio::ip::address parsed = asio::ip::make_address(address);
  if (parsed.is_loopback()) co_return;
  const Object endpoints = Object::parse(
      fmt::format(R"({{"metadata":{{"name":"kubernetes","namespace":"default",)"
                  R"("labels":{{"endpointslice.kubernetes.io/skip-mirror":"true"}}}},)"
                  R"("subsets":[{{"addresses":[{{"ip":"{}"}}],)"
                  R"("ports":[{{"name":"{}","protocol":"TCP","port":{}}}]}}]}})",
                  address, name, port));
  const Target target = target_of(context, "", "endpoints", endpoints);
  parts = {"subsets"};
  co_await publish_address(context, target, endpoints, std::move(parts));
}

}  // namespace lookout::apiserver::bootstrap

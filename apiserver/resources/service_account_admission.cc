#include "apiserver/resources/service_account_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/resources/forbidden_pod.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/write_steps.h"
#include "lookout/base/async_event.h"

namespace lookout::apiserver::resources {
namespace {

using api::Value;

constexpr std::string_view kDefaultAccount = "default";
constexpr std::string_view kTokenVolume = "kube-api-access-";
constexpr std::string_view kTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The attempts to find an account "default", and the delay between them.
constexpr int kLookUps = 10;
constexpr std::chrono::milliseconds kBetweenLookUps{200};

/// The token, the certificates of the server, and the namespace. (A token that is requested for 3607
/// seconds lasts a year: it is one in such a volume.)
constexpr const char* kTokenSource = R"({"defaultMode":420,"sources":[
  {"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
  {"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
  {"downwardAPI":{"items":[{"path":"namespace",
     "fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}]})";

bool is_mirror(const Object& pod) {
  return pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].exists();
}

StatusError unknown_account(const Object& pod, std::string_view ns, std::string_view name) {
  return forbidden_pod(pod, fmt::format("error looking up service account {}/{}: serviceaccount "
                                        "\"{}\" not found",
                                        ns, name, name));
}

/// Empty if there is none.
Awaitable<Object> find_account(ServedResourcePtr accounts, std::string ns, std::string name) {
  const std::string key = ns + "/" + name;
  // The object may come from a cache, as in kube-apiserver.
  Object found = co_await accounts->storage->get(key, storage::kAnyRevision);
  const int attempts = name == kDefaultAccount ? kLookUps : 1;
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  for (int i = 0; i < attempts && !found; ++i) {
    if (i > 0) co_await bell.wait(std::chrono::steady_clock::now() + kBetweenLookUps);
    found = co_await accounts->storage->get(key);
  }
  co_return found;
}

/// Adds an element to the array in a member.
void append(json::Value& object, std::string_view list, json::Value element, Allocator& allocator) {
  json::Value* array = json::find(object, list);
  if (array == nullptr || !array->IsArray())
    array = &json::set(object, list, json::Value(rapidjson::kArrayType), allocator);
  array->PushBack(element, allocator);
}

/// Whether the pod gets a token: it may decide itself, or else its account.
bool has_token(const Object& pod, const Object& account) {
  constexpr const char* kAutomount = "automountServiceAccountToken";
  const Value own = pod["spec"][kAutomount];
  if (own.exists()) return own.as_bool();
  const Value of_account = account[kAutomount];
  return !of_account.exists() || of_account.as_bool();
}

bool mounts_something_there(const json::Value& container) {
  bool found = false;
  json::for_each(container, "volumeMounts", [&](const json::Value& mount) {
    found = found || json::text(mount, "mountPath") == kTokenPath;
  });
  return found;
}

void mount_token(json::Value& spec, Allocator& allocator) {
  std::string volume;
  json::for_each(std::as_const(spec), "volumes", [&](const json::Value& one) {
    const std::string_view name = json::text(one, "name");
    if (volume.empty() && name.starts_with(kTokenVolume)) volume = name;
  });
  const bool has_volume = !volume.empty();
  if (!has_volume) volume = generate_name(kTokenVolume);
  bool is_used = false;
  for (const char* list : {"initContainers", "containers"}) {
    json::for_each(spec, list, [&](json::Value& container) {
      if (!container.IsObject() || mounts_something_there(container)) return;
      json::Value mount = json::object();
      json::set(mount, "name", volume, allocator);
      json::set(mount, "readOnly", json::Value(true), allocator);
      json::set(mount, "mountPath", kTokenPath, allocator);
      append(container, "volumeMounts", std::move(mount), allocator);
      is_used = true;
    });
  }
  if (has_volume || !is_used) return;
  const Document source = Object::parse(kTokenSource).to_document();
  json::Value added = json::object();
  json::set(added, "name", volume, allocator);
  json::set(added, "projected", json::deep_copy(source, allocator), allocator);
  append(spec, "volumes", std::move(added), allocator);
}

void take_pull_secrets(const Object& account, json::Value& spec, Allocator& allocator) {
  if (const json::Value* own = json::find(spec, "imagePullSecrets");
      own != nullptr && own->IsArray() && !own->Empty())
    return;
  for (const Value secret : account["imagePullSecrets"].elements()) {
    json::Value reference = json::object();
    json::set(reference, "name", secret["name"].as_string(), allocator);
    append(spec, "imagePullSecrets", std::move(reference), allocator);
  }
}

// The secrets of a pod.

/// Calls `visit(variable, secret)` for the secrets in a container's environment; `variable` is empty for
/// the whole secret.
template <class Visit>
void each_secret_of_environment(Value container, Visit visit) {
  for (const Value variable : container["env"].elements()) {
    const Value reference = variable["valueFrom"]["secretKeyRef"];
    if (reference.exists()) visit(variable["name"].as_string(), reference["name"].as_string());
  }
  for (const Value source : container["envFrom"].elements()) {
    const Value reference = source["secretRef"];
    if (reference.exists()) visit(std::string_view(), reference["name"].as_string());
  }
}

bool has_secret(Value volume) {
  if (!volume["secret"]["secretName"].as_string().empty() ||
      !volume["azureFile"]["secretName"].as_string().empty() ||
      !volume["csi"]["nodePublishSecretRef"]["name"].as_string().empty())
    return true;
  for (const char* type :
       {"cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"}) {
    if (!volume[type]["secretRef"]["name"].as_string().empty()) return true;
  }
  for (const Value source : volume["projected"]["sources"].elements()) {
    if (!source["secret"]["name"].as_string().empty()) return true;
  }
  return false;
}

bool has_secrets(Value spec) {
  bool found = false;
  for (const Value one : spec["imagePullSecrets"].elements())
    found = found || !one["name"].as_string().empty();
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value container : spec[list].elements()) {
      each_secret_of_environment(container, [&](std::string_view, std::string_view secret) {
        found = found || !secret.empty();
      });
    }
  }
  for (const Value volume : spec["volumes"].elements()) found = found || has_secret(volume);
  return found;
}

void check_mirror(const Object& pod) {
  const Value spec = pod["spec"];
  if (!spec["serviceAccountName"].as_string().empty())
    throw forbidden_pod(pod, "a mirror pod may not reference service accounts");
  if (has_secrets(spec)) throw forbidden_pod(pod, "a mirror pod may not reference secrets");
  for (const Value volume : spec["volumes"].elements()) {
    for (const Value source : volume["projected"]["sources"].elements()) {
      if (!source["serviceAccountToken"].exists()) continue;
      throw forbidden_pod(pod, "a mirror pod may not use ServiceAccountToken volume projections");
    }
  }
}

/// Go's strconv.ParseBool.
bool limits_secrets(const Object& account) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "TRUE", "true", "True"};
  const std::string_view text =
      account["metadata"]["annotations"]["kubernetes.io/enforce-mountable-secrets"].as_string();
  return std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end();
}

std::set<std::string_view> names_in(Value list) {
  std::set<std::string_view> out;
  for (const Value one : list.elements()) out.insert(one["name"].as_string());
  return out;
}

/// The first secret of a list of containers that the account does not name; empty if there is none.
std::string foreign_secret(Value containers, std::string_view kind, const Object& account) {
  const std::set<std::string_view> allowed = names_in(account["secrets"]);
  std::string out;
  for (const Value container : containers.elements()) {
    each_secret_of_environment(container, [&](std::string_view variable, std::string_view secret) {
      if (!out.empty() || allowed.contains(secret)) return;
      const std::string where = variable.empty() ? "envFrom" : fmt::format("envVar {}", variable);
      out = fmt::format(
          "{} {} with {} referencing secret.secretName=\"{}\" is not allowed because service "
          "account "
          "{} does not reference that secret",
          kind, container["name"].as_string(), where, secret, account.name());
    });
  }
  return out;
}

void check_secrets(const Object& pod, const Object& account) {
  if (!limits_secrets(account)) return;
  const Value spec = pod["spec"];
  const std::set<std::string_view> allowed = names_in(account["secrets"]);
  for (const Value volume : spec["volumes"].elements()) {
    const Value secret = volume["secret"];
    if (!secret.exists() || allowed.contains(secret["secretName"].as_string())) continue;
    throw forbidden_pod(
        pod,
        fmt::format("volume with secret.secretName=\"{}\" is not allowed because service account "
                    "{} does not reference that secret",
                    secret["secretName"].as_string(), account.name()));
  }
  for (const auto& [list, kind] :
       {std::pair("initContainers", "init container"), std::pair("containers", "container")}) {
    const std::string why = foreign_secret(spec[list], kind, account);
    if (!why.empty()) throw forbidden_pod(pod, why);
  }
  const std::set<std::string_view> pulled = names_in(account["imagePullSecrets"]);
  int index = 0;
  for (const Value secret : spec["imagePullSecrets"].elements()) {
    const std::string_view name = secret["name"].as_string();
    if (!pulled.contains(name)) {
      throw forbidden_pod(
          pod,
          fmt::format("imagePullSecrets[{}].name=\"{}\" is not allowed because service account {} "
                      "does not reference that imagePullSecret",
                      index, name, account.name()));
    }
    ++index;
  }
}

}  // namespace

Awaitable<Object> admit_service_account(ServedResourcePtr accounts, std::string ns, Object pod) {
  if (is_mirror(pod)) {
    check_mirror(pod);
    co_return pod;
  }
  std::string name(pod["spec"]["serviceAccountName"].as_string());
  if (name.empty()) name = kDefaultAccount;
  std::string of_pod = name;
  std::string here = ns;
  const Object account =
      co_await find_account(std::move(accounts), std::move(here), std::move(of_pod));
  if (!account) throw unknown_account(pod, ns, name);
  Document document = pod.to_document();
  json::Value* const spec = json::find(document, "spec");
  // Validation rejects a spec that is not an object.
  if (spec == nullptr || !spec->IsObject()) co_return pod;
  Allocator& allocator = document.GetAllocator();
  json::set(*spec, "serviceAccountName", name, allocator);
  json::set(*spec, "serviceAccount", name, allocator);
  if (has_token(pod, account)) mount_token(*spec, allocator);
  take_pull_secrets(account, *spec, allocator);
  Object admitted = Object::from(document);
  check_secrets(admitted, account);
  co_return admitted;
}

Awaitable<void> check_service_account(ServedResourcePtr accounts, std::string ns, Object pod) {
  if (is_mirror(pod)) {
    check_mirror(pod);
    co_return;
  }
  const std::string name(pod["spec"]["serviceAccountName"].as_string());
  if (name.empty()) {
    throw forbidden_pod(pod,
                        fmt::format("no service account specified for pod {}/{}", ns, pod.name()));
  }
  std::string of_pod = name;
  std::string here = ns;
  const Object account =
      co_await find_account(std::move(accounts), std::move(here), std::move(of_pod));
  if (!account) throw unknown_account(pod, ns, name);
  check_secrets(pod, account);
}

EphemeralSecrets::EphemeralSecrets(ServedResourcePtr accounts, std::string ns, Admission* next)
    : accounts_(std::move(accounts)), ns_(std::move(ns)), next_(next) {}

bool EphemeralSecrets::concerns(Write::Operation operation) const {
  return operation == Write::Operation::kUpdate || (next_ != nullptr && next_->concerns(operation));
}

Awaitable<Object> EphemeralSecrets::mutate(Write write, Normalize normalize) {
  if (next_ == nullptr || !next_->concerns(write.operation)) co_return write.object;
  co_return co_await next_->mutate(std::move(write), std::move(normalize));
}

Awaitable<void> EphemeralSecrets::validate(Write write) {
  const Object& pod = write.object;
  const std::string name(pod["spec"]["serviceAccountName"].as_string());
  if (name.empty()) {
    throw forbidden_pod(pod,
                        fmt::format("no service account specified for pod {}/{}", ns_, pod.name()));
  }
  ServedResourcePtr accounts = accounts_;
  std::string here = ns_;
  std::string of_pod = name;
  const Object account =
      co_await find_account(std::move(accounts), std::move(here), std::move(of_pod));
  if (!account) throw unknown_account(pod, ns_, name);
  if (limits_secrets(account)) {
    const std::string why =
        foreign_secret(pod["spec"]["ephemeralContainers"], "ephemeral container", account);
    // kube-apiserver does not make a 403 of it.
    if (!why.empty()) throw plain_failure(500, why);
  }
  if (next_ != nullptr && next_->concerns(write.operation))
    co_await next_->validate(std::move(write));
}

}  // namespace lookout::apiserver::resources

// MockDubboClient: a dubbo client with its own cluster, for tests. Link lookout::apiserver and
// lookout::registry to use it.
#pragma once

#include <rapidjson/document.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/registry/dubbo/client.h"

namespace lookout::test {

/// The embedded API server with these pods, and a client of it (dubbo-go's NewMockClient):
///
///     MockDubboClient mock(api::Object::parse(pod_list_json));
///     mock->create("/dubbo/com.example.User/providers", "");
///
/// The client runs in the first pod of the list, unless the options name another one.
class MockDubboClient {
 public:
  explicit MockDubboClient(const api::Object& pod_list, registry::dubbo::ClientOptions options = {})
      : rest_(server_.client_config()) {
    std::set<std::string, std::less<>> namespaces = {"default"};
    for (const auto item : pod_list["items"].elements()) {
      rapidjson::Document pod = api::Object::parse(item.to_json()).to_document();
      // Fields that only a server sets.
      for (const char* field : {"resourceVersion", "uid", "creationTimestamp", "selfLink",
                                "generation", "managedFields", "ownerReferences"}) {
        if (pod.HasMember("metadata")) pod["metadata"].RemoveMember(field);
      }
      const api::Object object = api::Object::from(pod);
      const std::string ns(object.ns().empty() ? "default" : object.ns());
      if (namespaces.insert(ns).second) {
        rest_.resource(k8s::core::v1::Namespace::kResource)
            .create(api::Object::parse(R"({"metadata":{"name":")" + ns + R"("}})"));
      }
      rest_.resource(k8s::core::v1::Pod::kResource, ns).create(object);
      if (options.pod.name.empty()) options.pod = {ns, std::string(object.name())};
    }
    client_ = std::make_shared<registry::dubbo::Client>(rest_, std::move(options));
  }

  registry::dubbo::Client* operator->() const { return client_.get(); }
  registry::dubbo::Client& operator*() const { return *client_; }
  const std::shared_ptr<registry::dubbo::Client>& client() const { return client_; }
  apiserver::Server& server() { return server_; }
  const rest::Client& rest() const { return rest_; }

 private:
  apiserver::Server server_;
  rest::Client rest_;
  std::shared_ptr<registry::dubbo::Client> client_;
};

}  // namespace lookout::test

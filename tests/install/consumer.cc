// Uses some of each part of an installed Lookout.
#include <lookout/k8s/apps/v1.h>
#include <lookout/lookout.h>
#include <lookout/version.h>
#include <rapidjson/document.h>

#include <cstdio>

int main() {
  using namespace lookout;
  const k8s::apps::v1::Deployment deployment(api::Object::parse(
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":3}})"));
  const bool read = deployment.spec().replicas() == 3 &&
                    api::labels::parse("app=web").matches(deployment) &&
                    deployment.to_document()["spec"]["replicas"].GetInt() == 3;
  rest::Config config;
  config.server = "http://127.0.0.1:1";
  const rest::Client client{config};
  const informer::SharedInformerFactory factory{client};
  bool refused = false;
  try {
    client.resource<k8s::apps::v1::Deployment>().list();
  } catch (const std::exception& e) {
    refused = rest::is_connection_refused(e);
  }
  std::printf("lookout %s: %s\n", std::string(kVersion).c_str(), read && refused ? "ok" : "FAILED");
  return read && refused ? 0 : 1;
}

#include "tests/rest/client_testing.h"

#include <array>
#include <cstddef>

namespace lookout::test {

rest::Config config_for(const HttpServer& server, const CertificateAuthority* authority) {
  rest::Config config;
  config.server = server.url();
  if (authority != nullptr) config.ca_data = authority->certificate();
  return config;
}

HttpServerTls tls_of(const KeyPair& pair) {
  HttpServerTls tls;
  tls.certificate = pair.certificate;
  tls.key = pair.key;
  return tls;
}

std::string pod_json(const std::string& name, const std::string& version) {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name +
         R"(","namespace":"shop","resourceVersion":")" + version + R"("}})";
}

std::string event_json(const std::string& type, const std::string& name,
                       const std::string& version) {
  return R"({"type":")" + type + R"(","object":)" + pod_json(name, version) + "}\n";
}

std::string list_json(const std::vector<std::string>& items, const std::string& metadata) {
  std::string out =
      R"({"kind":"PodList","apiVersion":"v1","metadata":)" + metadata + R"(,"items":[)";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ",") + items[i];
  return out + "]}";
}

std::string status_json(int code, const std::string& reason, const std::string& message) {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")" +
         message + R"(","reason":")" + reason + R"(","code":)" + std::to_string(code) + "}";
}

void set_up_what_clients_share() {
  HttpServer server(HttpServer::answering([](const HttpRequest&) { return HttpResponse{}; }));
  rest::Client{config_for(server)}.get_raw("/");
}

void answer_watches(HttpConnection& connection, std::atomic<int>& requests,
                    const std::function<void()>& then) {
  while (const auto request = connection.read_request()) {
    ++requests;
    if (request->target.find("watch=true") != std::string::npos) {
      connection.begin_chunks();
      connection.chunk(event_json("ADDED", "first"));
      then();
    }
    connection.wait_for_close();
  }
}

std::optional<Kind> kind_thrown(const std::function<void()>& f) {
  const auto error = thrown<rest::TransportError>(f);
  if (!error) return std::nullopt;
  return error->kind();
}

std::string to_string(Kind kind) {
  // In the order of Kind.
  constexpr std::array kNames = {"kRefused", "kUnreachable", "kTls",      "kTimeout",
                                 "kBroken",  "kCancelled",   "kProtocol", "kOther"};
  return kNames.at(static_cast<std::size_t>(kind));
}

}  // namespace lookout::test

#include "tests/rest/client_testing.h"

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

std::optional<Kind> kind_thrown(const std::function<void()>& f) {
  const auto error = thrown<rest::TransportError>(f);
  if (!error) return std::nullopt;
  return error->kind();
}

std::string to_string(Kind kind) {
  switch (kind) {
    case Kind::kRefused:
      return "kRefused";
    case Kind::kUnreachable:
      return "kUnreachable";
    case Kind::kTls:
      return "kTls";
    case Kind::kTimeout:
      return "kTimeout";
    case Kind::kBroken:
      return "kBroken";
    case Kind::kCancelled:
      return "kCancelled";
    case Kind::kProtocol:
      return "kProtocol";
    case Kind::kOther:
      return "kOther";
  }
  return "?";
}

}  // namespace lookout::test

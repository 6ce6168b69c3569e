// Helpers for tests of webhooks: an HTTPS client, and reviews.
#pragma once

#include <curl/curl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/api/typed_object.h"
#include "lookout/base/event_loop.h"
#include "lookout/controller/webhook.h"
#include "tests/controller/running.h"
#include "tests/rest/certificates.h"
#include "tests/support/files.h"

namespace lookout::controller {

struct Website : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"example.com", "v1", "Website", "websites", true};
  std::int64_t replicas() const { return (*this)["spec"]["replicas"].as_int(); }
};

struct HttpsAnswer {
  long status = 0;  // 0: there was none
  std::string body;

  api::Object object() const { return api::Object::parse(body); }
};

struct HttpsRequest {
  std::string path;
  std::string body = {};
  std::string method = "POST";
  std::string content_type = "application/json";
  bool chunked = false;
};

/// Makes a request over a new connection, with a timeout of half a minute.
class HttpsCaller {
 public:
  /// PEM; an empty authority: plain HTTP.
  HttpsCaller(int port, std::string authority, test::KeyPair client = {})
      : port_(port), authority_(std::move(authority)), client_(std::move(client)) {}

  HttpsAnswer operator()(const HttpsRequest& request) const {
    HttpsAnswer out;
    CURL* const easy = curl_easy_init();
    const bool tls = !authority_.empty();
    const std::string url =
        fmt::format("{}://127.0.0.1:{}{}", tls ? "https" : "http", port_, request.path);
    curl_slist* headers = nullptr;
    headers = curl_slist_append(headers, ("Content-Type: " + request.content_type).c_str());
    headers = curl_slist_append(headers, "Expect:");
    if (request.chunked) headers = curl_slist_append(headers, "Transfer-Encoding: chunked");
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 30L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &out.body);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &take);
    if (request.method == "POST") {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    }
    curl_blob authority{const_cast<char*>(authority_.data()), authority_.size(), CURL_BLOB_COPY};
    curl_blob certificate{const_cast<char*>(client_.certificate.data()), client_.certificate.size(),
                          CURL_BLOB_COPY};
    curl_blob key{const_cast<char*>(client_.key.data()), client_.key.size(), CURL_BLOB_COPY};
    if (tls) curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &authority);
    if (!client_.key.empty()) {
      curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
      curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
      curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
      curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
    }
    if (curl_easy_perform(easy) == CURLE_OK)
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &out.status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
    return out;
  }

 private:
  static std::size_t take(char* data, std::size_t size, std::size_t count, void* out) {
    static_cast<std::string*>(out)->append(data, size * count);
    return size * count;
  }

  const int port_;
  const std::string authority_;
  const test::KeyPair client_;
};

/// An AdmissionReview. Objects are JSON.
inline std::string review(const std::string& uid, const std::string& operation,
                          const std::string& object, const std::string& old_object = "null") {
  return fmt::format(
      R"({{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"{}",)"
      R"("kind":{{"group":"example.com","version":"v1","kind":"Website"}},)"
      R"("resource":{{"group":"example.com","version":"v1","resource":"websites"}},)"
      R"("name":"web","namespace":"shop","operation":"{}","userInfo":{{"username":"eve"}},)"
      R"("object":{},"oldObject":{},"dryRun":false}}}})",
      uid, operation, object, old_object);
}

inline std::string website(int replicas) {
  return fmt::format(
      R"({{"apiVersion":"example.com/v1","kind":"Website","metadata":{{"name":"web",)"
      R"("namespace":"shop"}},"spec":{{"replicas":{}}}}})",
      replicas);
}

using Serving = RunningOf<WebhookServer>;

/// A conversion that moves a member of the spec.
inline auto moving(const char* from, const char* to) {
  return [from, to](const auto& source, api::ObjectDraft& target) {
    target["spec"][to].set(source["spec"][from]);
  };
}

/// A certificate authority, and a folder with a certificate that it signed.
class WebhookFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    authority_ = std::make_unique<test::CertificateAuthority>("authority");
    other_authority_ = std::make_unique<test::CertificateAuthority>("other authority");
  }
  static void TearDownTestSuite() {
    authority_.reset();
    other_authority_.reset();
  }

  WebhookFixture() { write(authority_->issue_local()); }

  void write(const test::KeyPair& pair) const {
    test::write_file(dir_ / "tls.crt", pair.certificate);
    test::write_file(dir_ / "tls.key", pair.key);
  }

  WebhookOptions options() const {
    WebhookOptions out;
    out.host = "127.0.0.1";
    out.port = 0;
    out.cert_dir = dir_.path().string();
    return out;
  }

  /// Lets the server allow every request for a Website at "/validate".
  static void allow_all(WebhookServer& server) {
    server.validate<Website>("/validate", [](const Admission<Website>&) { return allowed(); });
  }

  HttpsCaller caller(const WebhookServer& server) const {
    return HttpsCaller(server.port(), authority_->certificate());
  }

  /// The value of the sample of a metric with these labels; -1 if there is none.
  static double metric(const WebhookServer& server, const std::string& name,
                       const metrics::Collector::Labels& labels = {}) {
    std::vector<metrics::Sample> samples;
    server.collect(samples);
    for (const auto& sample : samples) {
      if (sample.name != name || sample.labels != labels) continue;
      return sample.type == metrics::Sample::Type::kHistogram ? static_cast<double>(sample.count)
                                                              : sample.value;
    }
    return -1;
  }

  static inline std::unique_ptr<test::CertificateAuthority> authority_;
  static inline std::unique_ptr<test::CertificateAuthority> other_authority_;
  const test::TempDir dir_;
  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(2);
};

/// The code and the message of the StatusError that a request throws; "" if it succeeds.
inline std::string refusal(const std::function<void()>& request) {
  try {
    request();
  } catch (const api::StatusError& e) {
    return fmt::format("{} {}", e.status().code, e.what());
  }
  return "";
}

}  // namespace lookout::controller

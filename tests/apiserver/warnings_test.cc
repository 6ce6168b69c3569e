// Warnings about valid objects. The texts are those of a kube-apiserver 1.36.2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

constexpr const char* kDryRunPods = "/api/v1/namespaces/default/pods?dryRun=All";

/// The text of the last warning of a response; empty if there is none.
std::string warning_of(const HttpAnswer& answer) {
  const auto found = answer.headers.find("warning");
  if (found == answer.headers.end()) return {};
  const std::string prefix = "299 - \"";
  std::string text = found->second.substr(prefix.size());
  text.pop_back();
  std::string out;
  for (const char c : text) {
    if (c != '\\') out += c;
  }
  return out;
}

struct Doubtful {
  const char* container;  // more members of the container "c"
  const char* spec;       // more members of the spec
  const char* warning;
};
void PrintTo(const Doubtful& pod, std::ostream* out) { *out << pod.container << pod.spec; }

class DoubtfulPods : public ClientTest, public testing::WithParamInterface<Doubtful> {};

TEST_P(DoubtfulPods, AreAccepted) {
  const auto& [container, spec, warning] = GetParam();
  const HttpAnswer answer = http(
      server_.port(), "POST", kDryRunPods,
      std::string(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i")") +
          container + "}]" + spec + "}}");
  EXPECT_EQ(answer.code, 201) << answer.body;
  EXPECT_EQ(warning_of(answer), warning);
}

INSTANTIATE_TEST_SUITE_P(
    Server, DoubtfulPods,
    testing::Values(
        Doubtful{"", "", ""},
        Doubtful{R"(,"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}])", "",
                 R"(spec.containers[0].env[1]: hides previous definition of "A", which may be )"
                 "dropped when using apply"},
        Doubtful{R"(,"env":[{"name":"A","value":"1"},{"name":"A","value":"$(A)2"}])", "", ""},
        Doubtful{R"(,"resources":{"limits":{"memory":"500m"}})", "",
                 R"(spec.containers[0].resources.requests[memory]: fractional byte value "500m" )"
                 "is invalid, must be an integer"},
        Doubtful{R"(,"ports":[{"containerPort":80},{"containerPort":80,"hostPort":81}])", "",
                 "spec.containers[0].ports[1]: overlapping port definition with "
                 "spec.containers[0].ports[0]"},
        Doubtful{"",
                 R"(,"initContainers":[{"name":"i","image":"i","ports":[{"containerPort":80}]},)"
                 R"({"name":"j","image":"i","ports":[{"containerPort":80}]}])",
                 "spec.initContainers[1].ports[0]: duplicate port definition with "
                 "spec.initContainers[0].ports[0]"},
        Doubtful{"", R"(,"nodeSelector":{"beta.kubernetes.io/os":"linux"})",
                 R"(spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use )"
                 R"("kubernetes.io/os" instead)"},
        Doubtful{R"(,"ports":[{"name":"a","containerPort":80,"hostIP":"1.2.3.4"}])", "",
                 "spec.containers[0].ports[0]: hostIP set without hostPort: {Name:a HostPort:0 "
                 "ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}"},
        Doubtful{"",
                 R"(,"volumes":[{"name":"v","configMap":{"name":"m","items":[{"key":"a",)"
                 R"("path":"x"},{"key":"b","path":"x/y"}]}}])",
                 R"(volume "v" (ConfigMap "m"): overlapping paths: "x/y" with "x")"},
        Doubtful{"",
                 R"(,"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"s",)"
                 R"("items":[{"key":"a","path":"x/y"}]}},{"downwardAPI":{"items":[{"path":"x",)"
                 R"("fieldRef":{"fieldPath":"metadata.name"}}]}}]}}])",
                 R"(volume "v" (Projected DownwardAPI): overlapping paths: "x/y" with "x")"},
        Doubtful{"", R"(,"volumes":[{"name":"v","storageos":{"volumeName":"a"}}])",
                 "spec.volumes[0].storageOS: deprecated in v1.22, non-functional in v1.25+"},
        Doubtful{"", R"(,"imagePullSecrets":[{"name":"a"},{"name":"a"}])",
                 R"(spec.imagePullSecrets[1].name: duplicate name "a")"},
        Doubtful{"", R"(,"terminationGracePeriodSeconds":-1)", ""},  // replaced by 1
        Doubtful{"", R"(,"volumes":[{"name":"g","gitRepo":{"repository":"r"}}])",
                 "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in "
                 "v1.33+"}));

class PodWarnings : public ClientTest {};

TEST_F(PodWarnings, ConcernChangedTemplates) {
  const std::string labels = R"("labels":{"a":"b"})";
  const auto deployment = [&](const std::string& metadata, const std::string& image) {
    return R"({"metadata":{"name":"d.e")" + metadata +
           R"(},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{)" + labels +
           R"(},"spec":{"containers":[{"name":"c","image":")" + image +
           R"(","resources":{"limits":{"memory":"500m"}}}]}}}})";
  };
  const auto created = http(server_.port(), "POST", kDeploymentsPath, deployment("", "i:1"));
  EXPECT_EQ(created.code, 201) << created.body;
  const std::string bytes =
      "spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"500m\" "
      "is "
      "invalid, must be an integer";
  EXPECT_EQ(warning_of(created), bytes);
  const std::string one = std::string(kDeploymentsPath) + "/d.e";
  EXPECT_EQ(
      warning_of(http(server_.port(), "PUT", one, deployment(R"(,"labels":{"x":"y"})", "i:1"))),
      "");
  EXPECT_EQ(warning_of(http(server_.port(), "PUT", one, deployment("", "i:2"))), bytes);
}

TEST_F(PodWarnings, ConcernNamesThatAreNotHostnames) {
  const auto answer =
      http(server_.port(), "POST", kDryRunPods,
           R"({"metadata":{"name":"p.q"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  EXPECT_EQ(answer.code, 201) << answer.body;
  EXPECT_EQ(
      warning_of(answer),
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
      "a DNS label is recommended: [must not contain dots]");
}

class DoubtfulObjects : public ClientTest {};

/// Other kinds.
TEST_F(DoubtfulObjects, AreAccepted) {
  const Object recorded =
      Object::parse(lookout::test::read_file(lookout::test::testdata("kube-1.36/warnings.json")));
  std::size_t compared = 0;
  for (const api::Value one : recorded["requests"].elements()) {
    SCOPED_TRACE(one.to_json());
    const HttpAnswer answer = http(server_.port(), "POST", std::string(one["path"].as_string()),
                                   one["body"].to_json(), {{"Content-Type", "application/json"}});
    EXPECT_EQ(answer.code, 201) << answer.body;
    // (The client keeps one of several headers.)
    std::vector<std::string> expected;
    for (const api::Value warning : one["warnings"].elements())
      expected.emplace_back(warning.as_string());
    if (expected.empty()) expected.emplace_back();
    const auto told = answer.headers.find("warning");
    EXPECT_THAT(expected, testing::Contains(told == answer.headers.end() ? "" : told->second));
    ++compared;
  }
  EXPECT_GT(compared, 20u);
}

/// A certificate, its key, and another key, in the base64 of a secret.
constexpr const char* kPairedCertificate =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJGRENCdXdJVWZYNitGbGtCOHhFZ2kxKzU3b1ZUU2VVclFH"
    "b3dDZ1lJS29aSXpqMEVBd0l3RERFS01BZ0cKQTFVRUF3d0JZVEFnRncweU5qRXhNamd4TWpRM05UbGFHQTh5TVRJ"
    "Mk1URXdOREV5TkRjMU9Wb3dEREVLTUFnRwpBMVVFQXd3QllUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VI"
    "QTBJQUJMMENFTDlORmtacUY0TENoV1VsCmJOUk1DQkk0bkhuVXpZaFljUXEydytoQ2VlTlRjZGJkTHhLaW1iV3Zi"
    "REZ3OGVuQXNBSW5WMGo3RTZtdkRlbXAKbnEwd0NnWUlLb1pJemowRUF3SURTQUF3UlFJaEFKK3hNSWZ1Ullpazhj"
    "WWdQOFF4S1JHcHByREkrYm4yVWk5LwpYZW11cUtQaUFpQklhU2ZQTmFQQnlCNTdtbTluRXYrazNXSkxoTjAvdEpv"
    "MFUvS1RPOG55R0E9PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==";
constexpr const char* kPairedKey =
    "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JR0hBZ0VBTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSEJH"
    "MHdhd0lCQVFRZ04yd2xWRE9QcStQanJlWWMKVWhjcVBlOVFReTB4SzBoL3BOT0NxVnNsZVFhaFJBTkNBQVM5QWhD"
    "L1RSWkdhaGVDd29WbEpXelVUQWdTT0p4NQoxTTJJV0hFS3RzUG9Rbm5qVTNIVzNTOFNvcG0xcjJ3eGNQSHB3TEFD"
    "SjFkSSt4T3BydzNwcVo2dAotLS0tLUVORCBQUklWQVRFIEtFWS0tLS0tCg==";
constexpr const char* kForeignKey =
    "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JR0hBZ0VBTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSEJH"
    "MHdhd0lCQVFRZzd6cThyalpXMGx1ODZ3MC8KYW1Odmo0VGtEWUJ4TWd1d055dFFkL3VuMGtxaFJBTkNBQVFxbmow"
    "aVpiUysvbENTdXBzV1E2VTJPYVI1ajFxegpLaFlQN1BYTk55cENybU05NzcvRWEzTkJWNUVCcXNmYVFOSlVOaVAy"
    "ZjJlbW1QNElMT3FEUC9hVgotLS0tLUVORCBQUklWQVRFIEtFWS0tLS0tCg==";

TEST_F(DoubtfulObjects, ATlsSecretNeedsAMatchingKey) {
  const auto warning = [&](const std::string& certificate, const std::string& key) {
    const HttpAnswer answer =
        http(server_.port(), "POST", "/api/v1/namespaces/default/secrets?dryRun=All",
             R"({"metadata":{"name":"s"},"type":"kubernetes.io/tls","data":{"tls.crt":")" +
                 certificate + R"(","tls.key":")" + key + R"("}})");
    EXPECT_EQ(answer.code, 201) << answer.body;
    return warning_of(answer);
  };
  EXPECT_EQ(warning(kPairedCertificate, kPairedKey), "");
  EXPECT_EQ(warning(kPairedCertificate, kForeignKey), "tls: private key does not match public key");
  EXPECT_EQ(warning("YQ==", kPairedKey), "tls: failed to find any PEM data in certificate input");
  EXPECT_EQ(warning(kPairedCertificate, "YQ=="), "tls: failed to find any PEM data in key input");
  EXPECT_EQ(warning(kPairedKey, kPairedCertificate),
            "tls: failed to find certificate PEM data in certificate input, but did find a private "
            "key; PEM inputs may have been switched");
  EXPECT_EQ(warning(kPairedCertificate, kPairedCertificate),
            "tls: found a certificate rather than a key in the PEM for the private key");
}

TEST_F(DoubtfulObjects, AQuotaOfRequestsAboveItsLimitsCausesAWarning) {
  const auto warning = [&](const std::string& hard) {
    const HttpAnswer answer =
        http(server_.port(), "POST", "/api/v1/namespaces/default/resourcequotas?dryRun=All",
             R"({"metadata":{"name":"q"},"spec":{"hard":{)" + hard + "}}}");
    EXPECT_EQ(answer.code, 201) << answer.body;
    return warning_of(answer);
  };
  EXPECT_EQ(warning(R"("requests.cpu":"1","limits.cpu":"1000m")"), "");
  EXPECT_EQ(warning(R"("cpu":"2","limits.cpu":"1")"),
            "ResourceQuota cpu (2) should be less than limits.cpu (1)");
  EXPECT_EQ(warning(R"("requests.memory":"2Gi","limits.memory":"1Gi")"),
            "ResourceQuota requests.memory (2Gi) should be less than limits.memory (1Gi)");
}

TEST_F(DoubtfulObjects, FractionalBytesCauseAWarning) {
  const HttpAnswer answer = http(
      server_.port(), "POST", kDryRunPods,
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[)"
      R"({"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],)"
      R"("resources":{"requests":{"storage":"1500m"}}}}}}]}})");
  EXPECT_EQ(warning_of(answer),
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: "
            "fractional byte value \"1500m\" is invalid, must be an integer");
}

class DoubtfulStatus : public ClientTest {};

TEST_F(DoubtfulStatus, IsAccepted) {
  pods().create(pod("p"));
  in(kServices).create(from_json(
      R"({"metadata":{"name":"s"},"spec":{"type":"LoadBalancer","ports":[{"port":80}]}})"));
  const auto warning = [&](const std::string& path, const std::string& status) {
    const HttpAnswer answer =
        http(server_.port(), "PATCH", "/api/v1/namespaces/default/" + path + "/status",
             R"({"status":)" + status + "}", {{"Content-Type", "application/merge-patch+json"}});
    EXPECT_EQ(answer.code, 200) << answer.body;
    return warning_of(answer);
  };
  EXPECT_EQ(warning("pods/p", R"({"podIPs":[{"ip":"fd00:0::1"}]})"),
            R"(status.podIPs[0].ip: IPv6 address "fd00:0::1" should be in RFC 5952 canonical )"
            R"(format ("fd00::1"))");
  EXPECT_EQ(warning("services/s", R"({"loadBalancer":{"ingress":[{"ip":"fd00:0::2"}]}})"),
            R"(status.loadBalancer.ingress[0]: IPv6 address "fd00:0::2" should be in RFC 5952 )"
            R"(canonical format ("fd00::2"))");
}

TEST_F(PodWarnings, OfJobsBeginWithTheJob) {
  const HttpAnswer answer =
      http(server_.port(), "POST", "/apis/batch/v1/namespaces/default/jobs?dryRun=All",
           R"({"metadata":{"name":"j"},"spec":{"completionMode":"Indexed","completions":200000,)"
           R"("parallelism":20000,"template":{"spec":{"restartPolicy":"Never",)"
           R"("containers":[{"name":"c","image":"i"}],)"
           R"("nodeSelector":{"beta.kubernetes.io/os":"linux"}}}}})");
  EXPECT_EQ(answer.code, 201) << answer.body;
  // The warning of the indexes comes before it.
  EXPECT_THAT(warning_of(answer),
              testing::StartsWith("spec.template.spec.nodeSelector[beta.kubernetes.io/os]"));
}

}  // namespace
}  // namespace lookout::apiserver

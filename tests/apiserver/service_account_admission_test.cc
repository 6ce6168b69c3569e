// The admission plugin ServiceAccount, and the objects that it needs in each namespace.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/admission/plugins.h"
#include "lookout/apiserver/storage/memory.h"
#include "lookout/base/error.h"
#include "tests/apiserver/admission_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/rest/certificates.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout::apiserver {
namespace {

const api::Resource kAccounts{"", "v1", "ServiceAccount", "serviceaccounts", true};
constexpr const char* kTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";

ServerOptions with_accounts() {
  ServerOptions options;
  options.enable_admission_plugins = {"ServiceAccount"};
  return options;
}

class ServiceAccounts : public AdmissionTest {
 protected:
  ServiceAccounts() : AdmissionTest(with_accounts()) {}

  void create_account(const std::string& name, const std::string& more,
                      const std::string& annotations = "{}") const {
    in(kAccounts).create(from_json(R"({"metadata":{"name":")" + name + R"(","annotations":)" +
                                   annotations + "}" + more + "}"));
  }
  /// The message of a 403 for a pod.
  std::string refusal(const Object& object) const {
    const api::Status status = status_of([&] { pods().create(object); });
    EXPECT_EQ(status.code, 403) << status.message;
    return status.message;
  }
  bool exists(const api::Resource& resource, const std::string& ns, const std::string& name) const {
    return status_of([&] { in(resource, ns).get(name); }).code == 0;
  }
};

/// The mounts of a container: "name at path".
std::vector<std::string> mounts_of(api::Value container) {
  std::vector<std::string> out;
  for (const api::Value mount : container["volumeMounts"].elements()) {
    out.push_back(std::string(mount["name"].as_string()) + " at " +
                  std::string(mount["mountPath"].as_string()) +
                  (mount["readOnly"].as_bool() ? "" : ", writable"));
  }
  return out;
}

TEST_F(ServiceAccounts, NewPodsGetTheDefaultOneAndItsToken) {
  const Object made = pods().create(from_json(R"({"metadata":{"name":"a"},"spec":{
      "initContainers":[{"name":"first","image":"i"}],
      "containers":[{"name":"main","image":"i","volumeMounts":[{"name":"mine","mountPath":"/mine"}]},
        {"name":"other","image":"i","volumeMounts":[
          {"name":"mine","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}],
      "volumes":[{"name":"mine","emptyDir":{}}]}})"));
  const api::Value spec = made["spec"];
  EXPECT_EQ(spec["serviceAccountName"].as_string(), "default");
  EXPECT_EQ(spec["serviceAccount"].as_string(), "default");
  ASSERT_EQ(spec["volumes"].size(), 2u);
  const std::string volume(spec["volumes"][1]["name"].as_string());
  EXPECT_THAT(volume, MatchesRegex("kube-api-access-[a-z0-9]{5}"));
  EXPECT_EQ(spec["volumes"][1]["projected"].to_json(),
            held(from_json(R"({"defaultMode":420,"sources":[
                {"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
                {"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},
                {"downwardAPI":{"items":[{"path":"namespace","fieldRef":
                  {"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}]})"))
                .body()
                .to_json());
  const std::string mount = volume + " at " + kTokenPath;
  EXPECT_THAT(mounts_of(spec["initContainers"][0]), ElementsAre(mount));
  EXPECT_THAT(mounts_of(spec["containers"][0]), ElementsAre("mine at /mine, writable", mount));
  EXPECT_THAT(mounts_of(spec["containers"][1]),
              ElementsAre(std::string("mine at ") + kTokenPath + ", writable"));
  const std::string owners = made["metadata"]["managedFields"].to_json();
  EXPECT_THAT(owners, Not(HasSubstr("kube-api-access")));
  EXPECT_THAT(owners, Not(HasSubstr("serviceAccount")));
  // An update keeps it all, and needs no account.
  in(kAccounts).remove("default");
  const Object patched_pod =
      pods().patch("a", rest::PatchType::kMerge, R"({"metadata":{"labels":{"a":"b"}}})");
  EXPECT_EQ(patched_pod["spec"]["volumes"].to_json(), spec["volumes"].to_json());
}

TEST_F(ServiceAccounts, PodsMayNameTheirVolumeThemselves) {
  const Object made =
      pods().create(pod("a", R"(,"volumes":[{"name":"kube-api-access-mine","emptyDir":{}}])"));
  EXPECT_EQ(made["spec"]["volumes"].size(), 1u);
  EXPECT_THAT(mounts_of(made["spec"]["containers"][0]),
              ElementsAre(std::string("kube-api-access-mine at ") + kTokenPath));
}

TEST_F(ServiceAccounts, PodsAndAccountsMayOptOut) {
  create_account("none", R"(,"automountServiceAccountToken":false)");
  const auto volumes = [&](const std::string& name, const std::string& spec) {
    return held(pods().create(pod(name, spec)))["spec"]["volumes"].size();
  };
  EXPECT_EQ(volumes("a", R"(,"automountServiceAccountToken":false)"), 0u);
  EXPECT_EQ(volumes("b", R"(,"serviceAccountName":"none")"), 0u);
  // The older name of the field.
  EXPECT_EQ(volumes("c", R"(,"serviceAccount":"none")"), 0u);
  EXPECT_EQ(volumes("d", R"(,"serviceAccountName":"none","automountServiceAccountToken":true)"),
            1u);
}

TEST_F(ServiceAccounts, MustExist) {
  const std::string why =
      " is forbidden: error looking up service account default/web: serviceaccount \"web\" not "
      "found";
  EXPECT_EQ(refusal(pod("a", R"(,"serviceAccountName":"web")")), "pods \"a\"" + why);
  EXPECT_EQ(refusal(from_json(R"({"metadata":{"generateName":"a-"},"spec":{
                "serviceAccountName":"web","containers":[{"name":"main","image":"i"}]}})")),
            "pods \"a-\"" + why);
  // Before validation, and before the priority.
  EXPECT_EQ(refusal(from_json(R"({"metadata":{"name":"a"},"spec":{"serviceAccountName":"web",
                "priorityClassName":"none"}})")),
            "pods \"a\"" + why);
  create_account("web", "");
  const Object made = pods().create(pod("a", R"(,"serviceAccountName":"web")"));
  EXPECT_EQ(made["spec"]["serviceAccountName"].as_string(), "web");
}

TEST_F(ServiceAccounts, GivePullSecretsToTheirPods) {
  create_account("web", R"(,"imagePullSecrets":[{"name":"one"},{"name":"two"}])");
  const auto secrets = [&](const std::string& name, const std::string& spec) {
    return held(pods().create(
        pod(name, R"(,"serviceAccountName":"web")" + spec)))["spec"]["imagePullSecrets"]
        .to_json();
  };
  EXPECT_EQ(secrets("a", ""), R"([{"name":"one"},{"name":"two"}])");
  EXPECT_EQ(secrets("b", R"(,"imagePullSecrets":[{"name":"own"}])"), R"([{"name":"own"}])");
}

TEST_F(ServiceAccounts, AreNotForMirrorPods) {
  const auto mirror = [](const std::string& spec) {
    return from_json(R"({"metadata":{"name":"a","annotations":{"kubernetes.io/config.mirror":"x"}},
        "spec":{"nodeName":"n","containers":[{"name":"main","image":"i")" +
                     spec + "}}");
  };
  const std::string begin = "pods \"a\" is forbidden: a mirror pod may not ";
  EXPECT_EQ(refusal(mirror(R"(}],"serviceAccountName":"default")")),
            begin + "reference service accounts");
  for (const char* secret :
       {R"(,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}])",
        R"(,"envFrom":[{"secretRef":{"name":"s"}}]}])", R"(}],"imagePullSecrets":[{"name":"s"}])",
        R"(}],"volumes":[{"name":"v","secret":{"secretName":"s"}}])",
        R"(}],"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"s"}}]}}])",
        R"(}],"volumes":[{"name":"v","csi":{"driver":"d","nodePublishSecretRef":{"name":"s"}}}])"})
    EXPECT_EQ(refusal(mirror(secret)), begin + "reference secrets") << secret;
  EXPECT_EQ(refusal(mirror(R"(}],"volumes":[{"name":"v","projected":{"sources":[
                {"serviceAccountToken":{"path":"t"}}]}}])")),
            begin + "use ServiceAccountToken volume projections");
  const Object made = pods().create(mirror("}]"));
  EXPECT_FALSE(made["spec"]["serviceAccountName"].exists());
  EXPECT_FALSE(made["spec"]["volumes"].exists());
}

TEST_F(ServiceAccounts, MayLimitTheSecretsOfTheirPods) {
  const std::string more = R"(,"secrets":[{"name":"ok"}],"imagePullSecrets":[{"name":"pull"}])";
  create_account("strict", more, R"({"kubernetes.io/enforce-mountable-secrets":"true"})");
  create_account("lax", more, R"({"kubernetes.io/enforce-mountable-secrets":"yes"})");
  const auto with = [](const std::string& account, const std::string& container,
                       const std::string& spec) {
    return from_json(R"({"metadata":{"name":"a"},"spec":{"serviceAccountName":")" + account +
                     R"(","containers":[{"name":"main","image":"i")" + container + "}]" + spec +
                     "}}");
  };
  const std::string end = " is not allowed because service account strict does not reference that ";
  const auto why = [&](const std::string& container, const std::string& spec) {
    const std::string message = refusal(with("strict", container, spec));
    return message.substr(message.find("forbidden: ") + 11);
  };
  const std::string env =
      R"(,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])";
  const std::string env_from = R"(,"envFrom":[{"secretRef":{"name":"s"}}])";
  EXPECT_EQ(why("", R"(,"volumes":[{"name":"v","secret":{"secretName":"s"}}])"),
            "volume with secret.secretName=\"s\"" + end + "secret");
  EXPECT_EQ(why(env, ""),
            "container main with envVar A referencing secret.secretName=\"s\"" + end + "secret");
  EXPECT_EQ(why(env_from, ""),
            "container main with envFrom referencing secret.secretName=\"s\"" + end + "secret");
  EXPECT_EQ(
      why("", R"(,"initContainers":[{"name":"first","image":"i")" + env + "}]"),
      "init container first with envVar A referencing secret.secretName=\"s\"" + end + "secret");
  EXPECT_EQ(why("", R"(,"imagePullSecrets":[{"name":"pull"},{"name":"s"}])"),
            "imagePullSecrets[1].name=\"s\"" + end + "imagePullSecret");
  pods().create(with("strict", R"(,"envFrom":[{"secretRef":{"name":"ok"}}])",
                     R"(,"volumes":[{"name":"v","secret":{"secretName":"ok"}}])"));
  // Ephemeral containers.
  const auto debug = [&](const std::string& name, const std::string& container) {
    return http(
        server_.port(), "PATCH", "/api/v1/namespaces/default/pods/" + name + "/ephemeralcontainers",
        R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"i")" + container + "}]}}",
        {{"Content-Type", "application/strategic-merge-patch+json"}});
  };
  const HttpAnswer refused = debug("a", env_from);
  EXPECT_EQ(refused.code, 500);
  EXPECT_EQ(held(from_json(refused.body))["message"].as_string(),
            "ephemeral container debug with envFrom referencing secret.secretName=\"s\"" + end +
                "secret");
  EXPECT_EQ(debug("a", "").code, 200);
  EXPECT_EQ(debug("none", "").code, 404);
  pods().remove("a");
  pods().create(with("lax", env, ""));
  EXPECT_EQ(debug("a", env_from).code, 200);
}

TEST_F(ServiceAccounts, AreCheckedAgainAfterWebhooks) {
  const TestWebhook sidecar([](const auto& review) {
    return patched(review, R"([{"op":"add","path":"/spec/containers/-",)"
                           R"("value":{"name":"sidecar","image":"sidecar:1"}}])");
  });
  mutate_with(sidecar, rule("", "v1", "pods"),
              R"("objectSelector":{"matchLabels":{"side":"car"}})");
  const Object made = pods().create(changed(pod("a"), R"({"metadata":{"labels":{"side":"car"}}})"));
  EXPECT_EQ(made["spec"]["volumes"].size(), 1u);
  EXPECT_EQ(mounts_of(made["spec"]["containers"][0]), mounts_of(made["spec"]["containers"][1]));
  all(kMutating).remove("mutating");
  const TestWebhook renamed([](const auto& review) {
    return patched(review, R"([{"op":"replace","path":"/spec/serviceAccountName","value":"web"}])");
  });
  mutate_with(renamed, rule("", "v1", "pods"));
  EXPECT_EQ(refusal(pod("b")),
            "pods \"b\" is forbidden: error looking up service account default/web: serviceaccount "
            "\"web\" not found");
}

TEST_F(ServiceAccounts, AndRootCertificatesAreInEachNamespace) {
  const auto has = [&](const std::string& ns) {
    return eventually([&] {
      return exists(kAccounts, ns, "default") && exists(kConfigMaps, ns, "kube-root-ca.crt");
    });
  };
  for (const char* ns : {"default", "kube-system", "kube-public", "kube-node-lease"})
    EXPECT_TRUE(has(ns)) << ns;
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  // Waits for the account.
  pods("shop").create(pod("a"));
  EXPECT_TRUE(has("shop"));
  const Object map = in(kConfigMaps, "shop").get("kube-root-ca.crt");
  EXPECT_EQ(map["data"].to_json(), R"({"ca.crt":""})");
  EXPECT_EQ(map["metadata"]["managedFields"][0]["manager"].as_string(), "kube-controller-manager");
  in(kAccounts, "shop").remove("default");
  in(kConfigMaps, "shop").remove("kube-root-ca.crt");
  EXPECT_TRUE(has("shop"));
  // They do not keep a namespace from being deleted.
  all(kNamespaces).remove("shop");
  EXPECT_TRUE(
      eventually([&] { return status_of([&] { all(kNamespaces).get("shop"); }).code == 404; }));
  EXPECT_FALSE(exists(kAccounts, "shop", "default"));
}

TEST(RootCertificates, AreThoseOfTheServer) {
  const test::CertificateAuthority authority;
  const test::TempDir dir;
  ServerOptions options = with_accounts();
  options.storage = std::make_shared<storage::MemoryBackend>();
  const auto published = [](const Server& server) {
    const rest::Client client{server.client_config()};
    std::string out;
    // Those of an earlier server are replaced.
    EXPECT_TRUE(eventually([&] {
      try {
        out =
            held(client.resource(kConfigMaps, "default").get("kube-root-ca.crt"))["data"]["ca.crt"]
                .as_string();
      } catch (const api::StatusError&) {
        return false;
      }
      return out.find("CERTIFICATE") != std::string::npos;
    }));
    return out;
  };
  {
    const Server plain(options);
    EXPECT_TRUE(eventually([&] {
      return status_of([&] {
               const rest::Client client{plain.client_config()};
               client.resource(kConfigMaps, "default").get("kube-root-ca.crt");
             }).code == 0;
    }));
  }
  const test::KeyPair pair = authority.issue_local();
  options.tls_cert_file = dir.file("crt", pair.certificate + pair.key);
  options.tls_key_file = dir.file("key", pair.key);
  const Server server(options);
  EXPECT_EQ(published(server), pair.certificate);
}

TEST(AdmissionPlugins, HaveTheNamesOfKubeApiserver) {
  using admission::choose_plugins;
  EXPECT_FALSE(choose_plugins({}, {}).service_account);
  EXPECT_TRUE(choose_plugins({"LimitRanger", "ServiceAccount"}, {}).service_account);
  EXPECT_FALSE(choose_plugins({}, {"ServiceAccount", "MutatingAdmissionPolicy"}).service_account);
  const auto error = [](const std::vector<std::string>& on, const std::vector<std::string>& off) {
    return test::refusal<InvalidArgument>([&] { choose_plugins(on, off); });
  };
  EXPECT_EQ(error({"Serviceaccount"}, {}), "there is no admission plugin \"Serviceaccount\"");
  EXPECT_EQ(error({}, {""}), "there is no admission plugin \"\"");
  EXPECT_EQ(error({"NodeRestriction"}, {}),
            "this server does not have the admission plugin NodeRestriction");
  EXPECT_EQ(error({}, {"ResourceQuota"}), "the admission plugin ResourceQuota cannot be disabled");
  EXPECT_EQ(error({"ServiceAccount"}, {"ServiceAccount"}),
            "the admission plugin ServiceAccount is enabled and disabled");
}

}  // namespace
}  // namespace lookout::apiserver

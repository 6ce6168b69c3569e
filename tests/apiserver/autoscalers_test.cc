// Horizontal pod autoscalers in both versions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

class Autoscalers : public ClientTest {
 protected:
  /// Writes one with all kinds of metrics, and its status.
  Object create() const {
    in(kV2).create(from_json(R"({"metadata":{"name":"h","annotations":{"mine":"kept",
        "autoscaling.alpha.kubernetes.io/metrics":"[]"}},"spec":{
        "maxReplicas":5,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},
        "behavior":{"scaleDown":{"selectPolicy":"Disabled","tolerance":"500m"}},"metrics":[
        {"type":"Resource","resource":{"name":"memory",
            "target":{"type":"Utilization","averageUtilization":50}}},
        {"type":"Pods","pods":{"metric":{"name":"p","selector":{"matchLabels":{"a":"b"}}},
            "target":{"type":"AverageValue","averageValue":"3"}}},
        {"type":"Object","object":{"describedObject":{"apiVersion":"v1","kind":"Service",
            "name":"s"},"metric":{"name":"o"},"target":{"type":"Value","value":"10k"}}},
        {"type":"Object","object":{"describedObject":{"apiVersion":"v1","kind":"Service",
            "name":"s"},"metric":{"name":"q"},"target":{"type":"AverageValue","averageValue":"2"}}},
        {"type":"External","external":{"metric":{"name":"e"},
            "target":{"type":"AverageValue","averageValue":"7"}}},
        {"type":"ContainerResource","containerResource":{"name":"cpu","container":"c",
            "target":{"type":"AverageValue","averageValue":"100m"}}},
        {"type":"Resource","resource":{"name":"cpu",
            "target":{"type":"Utilization","averageUtilization":70}}}]}})"));
    return in(kV2).update_status(changed(in(kV2).get("h"), R"({"status":{"currentReplicas":2,
        "desiredReplicas":2,"currentMetrics":[
        {"type":"Resource","resource":{"name":"cpu",
            "current":{"averageUtilization":60,"averageValue":"10m"}}},
        {"type":"External","external":{"metric":{"name":"e"},
            "current":{"value":"0","averageValue":"7"}}}],
        "conditions":[{"type":"AbleToScale","status":"True","reason":"Ready",
            "lastTransitionTime":"2026-01-01T00:00:00Z"}]}})"));
  }
  Object changed_in_old(const std::string& patch, const std::string& subresource = "") const {
    return in(kV1).patch("h", rest::PatchType::kMerge, patch, {}, subresource);
  }

  inline static const api::Resource kV1{"autoscaling", "v1", "HorizontalPodAutoscaler",
                                        "horizontalpodautoscalers", true};
  inline static const api::Resource kV2{"autoscaling", "v2", "HorizontalPodAutoscaler",
                                        "horizontalpodautoscalers", true};
};

TEST_F(Autoscalers, KeepTheGroupOfTheirTarget) {
  const auto create = [&](const char* version, const char* kind) {
    return http(server_.port(), "POST",
                "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers?dryRun=All",
                fmt::format(R"({{"metadata":{{"name":"a"}},"spec":{{"maxReplicas":2,)"
                            R"("scaleTargetRef":{{"apiVersion":"{}","kind":"{}","name":"x"}}}}}})",
                            version, kind))
        .code;
  };
  EXPECT_EQ(create("apps/v1", "Deployment"), 201);
  EXPECT_EQ(create("v1", "Deployment"), 422);
  EXPECT_EQ(create("v1", "ReplicationController"), 201);
}

TEST_F(Autoscalers, AreServedInBothVersions) {
  in(kV1).create(from_json(
      R"({"metadata":{"name":"h"},"spec":{"maxReplicas":5,"targetCPUUtilizationPercentage":70,
        "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})"));
  const Object newer = in(kV2).get("h");
  EXPECT_EQ(newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"].as_int(), 70);
  EXPECT_EQ(
      lookout::test::held(in(kV1).get("h"))["spec"]["targetCPUUtilizationPercentage"].as_int(), 70);
}

TEST_F(Autoscalers, KeepNewFieldsOfTheOldVersionInAnnotations) {
  create();
  const Object old = in(kV1).get("h");
  EXPECT_EQ(old["spec"]["targetCPUUtilizationPercentage"].as_int(), 70);
  EXPECT_EQ(old["status"]["currentCPUUtilizationPercentage"].as_int(), 60);
  EXPECT_FALSE(old["spec"].contains("metrics"));
  const api::Value annotations = old["metadata"]["annotations"];
  EXPECT_EQ(annotations["mine"].as_string(), "kept");
  const auto kept = [&](const std::string& name) {
    return std::string(annotations["autoscaling.alpha.kubernetes.io/" + name].as_string());
  };
  EXPECT_TRUE(kept("metrics").starts_with(
      R"([{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":50}},)"
      R"({"type":"Pods","pods":{"metricName":"p","targetAverageValue":"3",)"
      R"("selector":{"matchLabels":{"a":"b"}}}},)"))
      << kept("metrics");
  EXPECT_EQ(kept("behavior"),
            R"({"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[)"
            R"({"Type":"Pods","Value":4,"PeriodSeconds":15},)"
            R"({"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null},)"
            R"("ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Disabled",)"
            R"("Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}],)"
            R"("Tolerance":"500m"}})");
  EXPECT_TRUE(kept("current-metrics")
                  .starts_with(R"([{"type":"Resource","resource":{"name":"cpu",)"
                               R"("currentAverageUtilization":60,"currentAverageValue":"10m"}},)"))
      << kept("current-metrics");
  EXPECT_NE(kept("conditions").find("AbleToScale"), std::string::npos);
}

TEST_F(Autoscalers, LoseNothingByAWriteInTheOldVersion) {
  const Object before = create();
  EXPECT_EQ(before["metadata"]["annotations"].to_json(), R"({"mine":"kept"})");
  const std::string spec = before["spec"].to_json();
  const std::string status = before["status"].to_json();
  changed_in_old(R"({"metadata":{"labels":{"a":"b"}}})");
  Object after = in(kV2).get("h");
  EXPECT_EQ(after["metadata"]["labels"].to_json(), R"({"a":"b"})");
  EXPECT_EQ(after["metadata"]["annotations"].to_json(), R"({"mine":"kept"})");
  EXPECT_EQ(after["spec"].to_json(), spec);
  EXPECT_EQ(after["status"].to_json(), status);
  // The status does not depend on the spec's annotations, nor vice versa.
  const char* no_annotations =
      R"({"metadata":{"annotations":null},"status":{"currentReplicas":3}})";
  changed_in_old(no_annotations, "status");
  after = in(kV2).get("h");
  EXPECT_EQ(after["spec"].to_json(), spec);
  EXPECT_EQ(after["status"]["currentReplicas"].as_int(), 3);
  EXPECT_FALSE(after["status"].contains("conditions"));
  EXPECT_EQ(after["status"]["currentMetrics"].size(), 1u);
  changed_in_old(R"({"metadata":{"annotations":null}})");
  after = in(kV2).get("h");
  EXPECT_EQ(after["spec"]["metrics"].size(), 1u);
  EXPECT_FALSE(after["spec"].contains("behavior"));
  EXPECT_EQ(after["status"]["currentMetrics"].size(), 1u);
}

TEST_F(Autoscalers, OfTheOldVersionNeedNoTargetIfThereIsAnother) {
  const auto create_old = [&](const std::string& name, const std::string& metrics) {
    rapidjson::Document made = from_json(R"({"metadata":{"name":")" + name + R"("},"spec":{
        "maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})")
                                   .to_document();
    auto& allocator = made.GetAllocator();
    rapidjson::Value annotations(rapidjson::kObjectType);
    annotations.AddMember("autoscaling.alpha.kubernetes.io/metrics",
                          rapidjson::Value(metrics.c_str(), allocator), allocator);
    made["metadata"].AddMember("annotations", annotations, allocator);
    in(kV1).create(Object::from(made));
    const Object newer = in(kV2).get(name);
    return newer["spec"]["metrics"].to_json();
  };
  EXPECT_EQ(create_old("a", R"([{"type":"Resource","resource":{"name":"memory",
                                 "targetAverageValue":"1Gi"}}])"),
            R"([{"type":"Resource","resource":{"name":"memory",)"
            R"("target":{"type":"AverageValue","averageValue":"1Gi"}}}])");
  // An invalid list of metrics is treated as absent.
  const std::string otherwise = R"([{"type":"Resource","resource":{"name":"cpu",)"
                                R"("target":{"type":"Utilization","averageUtilization":80}}}])";
  EXPECT_EQ(create_old("b", "no JSON"), otherwise);
  EXPECT_EQ(create_old("c", R"([{"type":5}])"), otherwise);
  EXPECT_EQ(create_old("d", std::string(100000, '[')), otherwise);
}

TEST_F(Autoscalers, ShowTheFirstOfSeveralTargetsForTheCpu) {
  in(kV2).create(from_json(R"({"metadata":{"name":"h"},"spec":{"maxReplicas":5,
      "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"metrics":[
      {"type":"Resource","resource":{"name":"cpu",
          "target":{"type":"Utilization","averageUtilization":40}}},
      {"type":"Resource","resource":{"name":"cpu",
          "target":{"type":"Utilization","averageUtilization":70}}}]}})"));
  EXPECT_EQ(
      lookout::test::held(in(kV1).get("h"))["spec"]["targetCPUUtilizationPercentage"].as_int(), 40);
}

}  // namespace
}  // namespace lookout::apiserver

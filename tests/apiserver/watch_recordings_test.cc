// Replays the changes of the recorded watches: the events must be equal.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <memory>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/client.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"

namespace lookout::apiserver {
namespace {

using Lines = std::vector<std::string>;

/// The part of an event that is the same on every server: no times, no identities, and only the
/// fields that the series changes.
std::string describe(std::string_view type, const Object& object) {
  rapidjson::Document out(rapidjson::kObjectType);
  auto& allocator = out.GetAllocator();
  rapidjson::Document source = object.to_document();
  const auto copy = [&](rapidjson::Value& from, const char* name, rapidjson::Value& to) {
    if (!from.HasMember(name)) return;
    rapidjson::Value value(from[name], allocator);
    to.AddMember(rapidjson::StringRef(name), value, allocator);
  };
  copy(source, "kind", out);
  copy(source, "apiVersion", out);
  rapidjson::Value metadata(rapidjson::kObjectType);
  for (const char* name : {"name", "namespace", "labels", "annotations", "finalizers", "generation",
                           "deletionGracePeriodSeconds"})
    copy(source["metadata"], name, metadata);
  if (source["metadata"].HasMember("deletionTimestamp"))
    metadata.AddMember("deletionTimestamp", "some time", allocator);
  out.AddMember("metadata", metadata, allocator);
  if (type != "BOOKMARK") copy(source, "status", out);
  return std::string(type) + " " + Object::from(out).to_json();
}

/// The recorded events; bookmarks only where they end the initial events.
Lines recorded_events(const std::string& name) {
  Lines out;
  for (const std::string& line :
       test::lines(test::read_file(test::testdata("kube-1.36/watch/" + name + ".jsonl")))) {
    if (line.empty()) continue;
    const Object event = Object::parse(line);
    const std::string_view type = event["type"].as_string();
    const Object object = Object::parse(event["object"].to_json());
    if (type == "BOOKMARK" && !object.annotations().exists()) continue;
    out.push_back(describe(type, object));
  }
  return out;
}

class RecordedWatches : public testing::Test {
 protected:
  RecordedWatches() : client_(server_.client_config()) {
    http(server_.port(), "POST", "/api/v1/namespaces", R"({"metadata":{"name":"w1"}})");
  }

  rest::ResourceClient pods() const { return client_.resource(kPods, "w1"); }

  void create(const std::string& name, const std::string& app) {
    pods().create(
        Object::parse(R"({"metadata":{"name":")" + name + R"(","labels":{"app":")" + app +
                      R"("}},"spec":{"containers":[{"name":"main","image":"nginx:1.7.9"}]}})"));
  }
  void patch(const std::string& name, const std::string& patch) {
    pods().patch(name, rest::PatchType::kMerge, patch);
  }
  void remove(const std::string& name) {
    rest::DeleteOptions options;
    options.grace_period_seconds = 0;
    pods().remove(name, options);
  }

  void make_the_first_changes() {
    for (const char* name : {"a0", "a1", "a2"}) create(name, "a");
  }
  void make_the_other_changes() {
    create("a3", "a");
    create("a4", "b");
    create("a5", "a");
    patch("a0", R"({"metadata":{"labels":{"app":"b"}}})");
    patch("a4", R"({"metadata":{"labels":{"app":"a"}}})");
    patch("a1", R"({"metadata":{"annotations":{"k":"multi\nline \"q\" )"
                "\u2028 \uFFFD"
                R"("}}})");
    remove("a2");
    patch("a3", R"({"metadata":{"finalizers":["example.com/hold"]}})");
    remove("a3");
    patch("a3", R"({"metadata":{"finalizers":null}})");
    remove("a0");
    // To check that no other event came before.
    create("the-end", "a");
  }

  rest::WatchStream watch(const rest::ListOptions& options) { return pods().watch(options); }

  /// All events up to the end of the series.
  static Lines events_of(rest::WatchStream& stream) {
    Lines out;
    while (const auto event = stream.next()) {
      if (event->object.name() == "the-end") break;
      out.push_back(describe(api::to_string(event->type), event->object));
    }
    return out;
  }

  Server server_;
  rest::Client client_;
};

TEST_F(RecordedWatches, EqualTheRealServers) {
  make_the_first_changes();
  rest::ListOptions from_version;
  from_version.resource_version = pods().list().resource_version;
  auto rv = watch(from_version);
  rest::ListOptions with_selector = from_version;
  with_selector.label_selector = "app=a";
  auto rv_selector = watch(with_selector);
  rest::ListOptions zero;
  zero.resource_version = "0";
  auto from_zero = watch(zero);
  rest::ListOptions initial;
  initial.send_initial_events = true;
  initial.resource_version_match = "NotOlderThan";
  initial.allow_watch_bookmarks = true;
  auto initial_events = watch(initial);

  make_the_other_changes();
  EXPECT_EQ(events_of(rv), recorded_events("rv"));
  EXPECT_EQ(events_of(rv_selector), recorded_events("rv_selector"));
  EXPECT_EQ(events_of(from_zero), recorded_events("from_zero"));
  EXPECT_EQ(events_of(initial_events), recorded_events("initial_events"));

  // The same with metadata only.
  const auto answer =
      http(server_.port(), "GET",
           "/api/v1/namespaces/w1/pods?watch=1&timeoutSeconds=1&resourceVersion=" +
               from_version.resource_version,
           {}, {{"Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}});
  Lines metadata;
  for (const std::string& line : test::lines(answer.body)) {
    if (line.empty()) continue;
    const Object event = Object::parse(line);
    metadata.push_back(
        describe(event["type"].as_string(), Object::parse(event["object"].to_json())));
  }
  ASSERT_FALSE(metadata.empty());
  metadata.pop_back();  // the end
  EXPECT_EQ(metadata, recorded_events("rv_metadata"));
}

}  // namespace
}  // namespace lookout::apiserver

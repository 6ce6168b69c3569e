// The dubbo client: records in annotations, and their events.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "lookout/api/status.h"
#include "lookout/base/base64.h"
#include "lookout/registry/dubbo/client.h"
#include "lookout/rest/error.h"
#include "lookout/testing/mock_dubbo_client.h"
#include "registry/dubbo/event_queue.h"
#include "tests/registry/cluster.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"
#include "tests/support/notes.h"

namespace lookout::registry::dubbo {
namespace {

using namespace registry::test;

constexpr const char* kAnnotation = "dubbo.io/annotation";
constexpr const char* kLabel = "dubbo.io/label";

/// The record of a dubbo-go provider, as Go's encoders print it.
constexpr const char* kService = "/dubbo/com.example.UserProvider/providers";
constexpr const char* kProvider =
    "/dubbo/com.example.UserProvider/providers/"
    "dubbo%3A%2F%2F172.17.0.6%3A20000%2FUserProvider%3Finterface%3Dcom.example.UserProvider%26"
    "side%3Dprovider";
constexpr const char* kWrittenByGo =
    "W3siayI6Ii9kdWJiby9jb20uZXhhbXBsZS5Vc2VyUHJvdmlkZXIvcHJvdmlkZXJzIiwidiI6IiJ9LHsiayI6Ii9kdWJiby"
    "9jb20uZXhhbXBsZS5Vc2VyUHJvdmlkZXIvcHJvdmlkZXJzL2R1YmJvJTNBJTJGJTJGMTcyLjE3LjAuNiUzQTIwMDAwJTJG"
    "VXNlclByb3ZpZGVyJTNGaW50ZXJmYWNlJTNEY29tLmV4YW1wbGUuVXNlclByb3ZpZGVyJTI2c2lkZSUzRHByb3ZpZGVyIi"
    "widiI6IiJ9XQ==";

std::string base64url(std::string json) {
  std::string text = encode_base64(json);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::string told(const NextEvent& event) {
  if (!event) return registry::to_string(event.outcome());
  return std::string(to_string(event->type)) + " " + event->key + "=" + event->value;
}

/// The next events, up to and including `last`.
std::vector<std::string> until(EventWatcher& watcher, const std::string& last) {
  std::vector<std::string> out;
  do {
    out.push_back(told(watcher.next_for(kLong)));
  } while (out.back() != last && out.back() != "timed out");
  return out;
}

// ------------------------------------------------------------------------------------ the format

TEST(DubboRecords, AreReadInGosFormat) {
  const Records read = decode_records(kWrittenByGo);
  EXPECT_TRUE(read.readable);
  EXPECT_THAT(read.defects, IsEmpty());
  EXPECT_THAT(read.records, ElementsAre(Record{kService, ""}, Record{kProvider, ""}));
  EXPECT_THAT(decode_records("W3siayI6ImE_Pn4iLCJ2Ijoiw78-PyJ9XQ==").records,
              ElementsAre(Record{"a?>~", "\u00ff>?"}))
      << "the alphabet of URLs";
  EXPECT_THAT(decode_records(base64url(R"([{"K":"a","V":"b","x":1}])")).records,
              ElementsAre(Record{"a", "b"}))
      << "Go takes any case";
  EXPECT_THAT(decode_records(base64url("null")).records, IsEmpty());
}

TEST(DubboRecords, AreWrittenInGosFormat) {
  EXPECT_EQ(encode_records({{kService, ""}, {kProvider, ""}}), kWrittenByGo);
  EXPECT_EQ(with_record(with_record("", {kService, ""}), {kProvider, ""}), kWrittenByGo);
}

TEST(DubboRecords, OnlyTextIsWritten) {
  // Nobody could read an annotation with other bytes.
  EXPECT_THROW(with_record("", {"key\xff", ""}), InvalidArgument);
  EXPECT_THROW(with_record("", {"key", "\xff"}), InvalidArgument);
  EXPECT_THROW(encode_records({{"key", "\xff"}}), InvalidArgument);
}

TEST(DubboRecords, AMalformedRecordDoesNotAffectOthers) {
  const Records read = decode_records(base64url(
      R"([{"k":"a","v":"1"},5,null,{"k":7,"v":"x"},{"v":"x"},{"k":"","v":"x"},{"k":"b","v":[]},{"k":"c"}])"));
  EXPECT_TRUE(read.readable);
  EXPECT_THAT(read.records, ElementsAre(Record{"a", "1"}, Record{"c", ""}));
  EXPECT_THAT(read.defects, ElementsAre("record 1 is not an object", "record 2 is not an object",
                                        "record 3 has no key \"k\"", "record 4 has no key \"k\"",
                                        "record 5 has an empty key \"k\"",
                                        "record 6 has a value \"v\" that is not a string"));
}

struct Unreadable {
  const char* what;
  std::string annotation;
  const char* reason;
};
class DubboUnreadableTest : public testing::TestWithParam<Unreadable> {};

TEST_P(DubboUnreadableTest, IsReportedAndNotOverwritten) {
  const Records read = decode_records(GetParam().annotation);
  EXPECT_FALSE(read.readable);
  EXPECT_THAT(read.records, IsEmpty());
  EXPECT_THAT(read.defects, ElementsAre(HasSubstr(GetParam().reason)));
  EXPECT_THAT(
      [&] {
        with_record(GetParam().annotation, {"k", "v"});
      },
      testing::ThrowsMessage<Error>(HasSubstr(GetParam().reason)));
  EXPECT_THROW(without_record(GetParam().annotation, "k"), Error);
}

INSTANTIATE_TEST_SUITE_P(
    , DubboUnreadableTest,
    testing::Values(Unreadable{"NoBase64", "%%%%", "base64url"},
                    Unreadable{"StandardAlphabet", "W3si+/==", "base64url"},
                    Unreadable{"NoJson", base64url("[oops"), "at byte"},
                    Unreadable{"HalfACharacter", base64url(R"([{"k":"a\udc00"}])"), "surrogate"},
                    Unreadable{"NoArray", base64url("{}"), "not an array"},
                    Unreadable{"Deep", base64url(std::string(100000, '[')), "deep"}),
    [](const auto& test) { return test.param.what; });

TEST(DubboRecords, AreAddedWithoutTouchingTheOthers) {
  const std::string strange = base64url(R"([{"k":"a","v":"1","future":true},17])");
  const std::string more = with_record(strange, {"b", "2"});
  EXPECT_EQ(more, base64url(R"([{"k":"a","v":"1","future":true},17,{"k":"b","v":"2"}])"));
  EXPECT_EQ(with_record(more, {"b", "2"}), more) << "the same again changes nothing";
  EXPECT_EQ(with_record(more, {"b", "3"}),
            base64url(R"([{"k":"a","v":"1","future":true},17,{"k":"b","v":"3"}])"));
  EXPECT_EQ(without_record(more, "b"), strange);
}

TEST(DubboRecords, TheLastRecordOfADuplicateKeyCounts) {
  EXPECT_THAT(
      decode_records(base64url(R"([{"k":"a","v":"1"},{"k":"b"},{"k":"a","v":"2"}])")).records,
      ElementsAre(Record{"a", "2"}, Record{"b", ""}));
}

// ------------------------------------------------------------------------------------ the client

class DubboTest : public testing::Test {
 protected:
  DubboTest() { cluster_.create_pod("self", {}); }

  ClientOptions options(const std::string& pod = "self") {
    ClientOptions out;
    out.pod = {"default", pod};
    out.pod_sources.environment = [](const std::string&) { return std::nullopt; };
    out.on_malformed = [this](const Malformed& malformed) {
      reports_.add(malformed.name + ": " + malformed.reason);
    };
    return out;
  }
  void provider(const std::string& name, const std::vector<Record>& records) {
    cluster_.create_pod(name, {.labels = {{kLabel, "dubbo.io.provider"}},
                               .annotations = {{kAnnotation, encode_records(records)}}});
  }
  void write(const std::string& pod, const std::vector<Record>& records) {
    cluster_.annotate(pod, kAnnotation, encode_records(records));
  }

  Cluster cluster_;
  lookout::test::Notes reports_;
};

TEST_F(DubboTest, LabelsItsPodByItsRole) {
  cluster_.create_pod("other", {.labels = {{"app", "x"}}});
  ClientOptions provider = options("other");
  provider.role = Role::kProvider;
  Client first(cluster_.client(), options());
  Client second(cluster_.client(), provider);
  EXPECT_EQ(lookout::test::held(cluster_.pods().get("self")).labels()[kLabel].as_string(),
            "dubbo.io.consumer");
  EXPECT_EQ(lookout::test::held(cluster_.pods().get("other")).labels()[kLabel].as_string(),
            "dubbo.io.provider");
  EXPECT_EQ(lookout::test::held(cluster_.pods().get("other")).labels()["app"].as_string(), "x");
}

TEST_F(DubboTest, AnExistingLabelStays) {
  cluster_.label("self", kLabel, "dubbo.io-value");
  Client client(cluster_.client(), options());
  EXPECT_EQ(lookout::test::held(cluster_.pods().get("self")).labels()[kLabel].as_string(),
            "dubbo.io-value");
  EXPECT_TRUE(client.valid());
}

TEST_F(DubboTest, UsesTheRoleLabelOfTheOptions) {
  const auto label_of = [&](const char* pod, Generation generation) {
    cluster_.create_pod(pod, {});
    ClientOptions provider = options(pod);
    provider.role = Role::kProvider;
    provider.generation = generation;
    const Client client(cluster_.client(), provider);
    const api::Object labelled = cluster_.pods().get(pod);
    return std::string(labelled.labels()[kLabel].as_string());
  };
  EXPECT_EQ(label_of("old-1", Generation::kDubbo14), "dubbo.io-value");
  EXPECT_EQ(label_of("old-2", Generation::kDetect), "dubbo.io-value");
  EXPECT_EQ(label_of("new-1", Generation::kDubbo15), "dubbo.io.provider");
  EXPECT_EQ(label_of("new-2", Generation::kDetect), "dubbo.io.provider");
}

TEST_F(DubboTest, SetsNoLabelIfDisabled) {
  ClientOptions unlabelled = options();
  unlabelled.role = Role::kProvider;
  unlabelled.label_pod = false;
  Client client(cluster_.client(), unlabelled);
  EXPECT_FALSE(client.remove("k"));
  EXPECT_FALSE(lookout::test::held(cluster_.pods().get("self")).labels()[kLabel].exists());
}

TEST_F(DubboTest, RemoveReturnsWhetherTheRecordExisted) {
  Client client(cluster_.client(), options());
  client.create("/a/b", "1");
  EXPECT_FALSE(client.remove("/a")) << "a key, not a prefix";
  EXPECT_TRUE(client.remove("/a/b"));
  EXPECT_FALSE(client.remove("/a/b"));
}

TEST_F(DubboTest, NamesCanBeConfigured) {
  ClientOptions other = options();
  other.label = "example.com/part";
  other.consumer_label_value = "eats";
  other.annotation = "example.com/records";
  Client client(cluster_.client(), other);
  client.create("k", "v");
  const auto pod = cluster_.pods().get("self");
  EXPECT_EQ(pod.labels()["example.com/part"].as_string(), "eats");
  EXPECT_EQ(pod.annotations()["example.com/records"].as_string(), encode_records({{"k", "v"}}));
  EXPECT_THAT(client.get_children(""), ElementsAre(Record{"k", "v"}));
}

TEST_F(DubboTest, APodOfTheSameNameIsNotTouched) {
  Client old(cluster_.client(), options());
  old.create("k", "v");
  // The pod of a StatefulSet is replaced while the old program still runs.
  cluster_.remove_pod("self");
  cluster_.create_pod("self", {});
  const auto is_refused =
      testing::ThrowsMessage<Error>(HasSubstr("pod default/self has been replaced"));
  EXPECT_THAT([&] { old.create("k", "w"); }, is_refused);
  EXPECT_THAT([&] { old.remove("k"); }, is_refused);
  EXPECT_THAT([&] { old.set_label("x", "y"); }, is_refused);
  const api::Object pod = cluster_.pods().get("self");
  EXPECT_FALSE(pod.annotations()[kAnnotation].exists());
  EXPECT_FALSE(pod.labels()["x"].exists());

  ClientOptions other = options();
  other.pod = {};
  other.pod_sources.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "POD_NAME") return "self";
    if (name == "POD_NAMESPACE") return "default";
    if (name == "POD_UID") return "00000000-0000-0000-0000-000000000000";
    return std::nullopt;
  };
  EXPECT_THROW(Client(cluster_.client(), other), Error) << "the environment knows the uid, too";
}

TEST_F(DubboTest, AMissingPodIsNotFound) {
  EXPECT_THROW(Client(cluster_.client(), options("nobody")), api::StatusError);
}

TEST_F(DubboTest, WritesRecordsThatGoReads) {
  Client client(cluster_.client(), options());
  client.create(kService, "");
  client.create(kProvider, "");
  client.create(kProvider, "");
  EXPECT_EQ(lookout::test::held(cluster_.pods().get("self")).annotations()[kAnnotation].as_string(),
            kWrittenByGo);
  client.set_label("app", "x");
  EXPECT_EQ(lookout::test::held(cluster_.pods().get("self")).labels()["app"].as_string(), "x");
}

TEST_F(DubboTest, ReadsRecordsThatGoWrites) {
  cluster_.create_pod("go", {.labels = {{kLabel, "dubbo.io.provider"}},
                             .annotations = {{kAnnotation, kWrittenByGo}}});
  Client client(cluster_.client(), options());
  EXPECT_THAT(client.get_children("/dubbo/com.example.UserProvider/"),
              ElementsAre(Record{kService, ""}, Record{kProvider, ""}));
  EXPECT_EQ(client.get(kService), "");
  EXPECT_EQ(client.get("/dubbo"), std::nullopt);
  // dubbo-go matches any key that contains the text; here a prefix must be at the start.
  EXPECT_THAT(client.get_children("com.example"), IsEmpty());
}

TEST_F(DubboTest, ReadsItsOwnRecordsAtOnce) {
  // Even on a pod whose label excludes it, as in dubbo-go.
  cluster_.label("self", kLabel, "dubbo.io-value");
  Client client(cluster_.client(), options());
  auto watcher = client.watch_with_prefix("name");
  for (const char* key : {"name", "namePrefix", "age", "namePrefix1"}) client.create(key, "v");
  EXPECT_THAT(client.get_children("name"), SizeIs(3));
  EXPECT_EQ(told(watcher.next_for(kLong)), "CREATE name=v");
  EXPECT_EQ(told(watcher.next_for(kLong)), "CREATE namePrefix=v");
  EXPECT_EQ(told(watcher.next_for(kLong)), "CREATE namePrefix1=v");
  client.create("name", "w");
  EXPECT_EQ(told(watcher.next_for(kLong)), "UPDATE name=w");
  client.remove("name");
  EXPECT_EQ(told(watcher.next_for(kLong)), "DELETE name=w");
  EXPECT_EQ(watcher.next_for(1ms).outcome(), NextOutcome::kTimedOut);
}

TEST_F(DubboTest, ConcurrentWritersOfAPodLoseNothing) {
  // In dubbo-go each client has its own lock, and patches have no precondition: of two concurrent
  // writes one is lost.
  Client first(cluster_.client(), options());
  Client second(cluster_.client(), options());
  constexpr std::size_t kEach = 15;
  {
    std::vector<std::jthread> writers;
    for (int w = 0; w < 4; ++w) {
      writers.emplace_back([&, w] {
        Client& client = w % 2 == 0 ? first : second;
        for (std::size_t i = 0; i < kEach; ++i) {
          client.create("w" + std::to_string(w) + "/" + std::to_string(i), "x");
        }
      });
    }
  }
  const auto pod = cluster_.pods().get("self");
  EXPECT_THAT(decode_records(pod.annotations()[kAnnotation].as_string()).records,
              SizeIs(4 * kEach));
  // The other client's records arrive through the server.
  EXPECT_TRUE(eventually([&] { return first.get_children("w").size() == 4 * kEach; }));
}

TEST_F(DubboTest, AStopEndsTheWaitForAnotherWriter) {
  Gate patched;
  Gate answers;
  const std::string pod = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"self",
      "namespace":"default","uid":"1","resourceVersion":"5",
      "labels":{"dubbo.io/label":"dubbo.io.provider"}}})";
  const lookout::test::HttpServer server([&](lookout::test::HttpConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->method == "PATCH") {
        patched.open();
        EXPECT_TRUE(answers.wait());
      }
      connection.respond({.body = pod});
    }
  });
  rest::Config config;
  config.server = server.url();
  ClientOptions provider = options();
  provider.role = Role::kProvider;
  Client client{rest::Client(config), provider};
  auto first = lookout::test::start([&] { client.create("a", "1"); });
  ASSERT_TRUE(patched.wait());
  for (const bool removes : {false, true}) {
    std::stop_source stop;
    auto second = lookout::test::start([&, removes] {
      rest::CallOptions call;
      call.stop = stop.get_token();
      try {
        removes ? static_cast<void>(client.remove("b", call)) : client.create("b", "1", call);
      } catch (const rest::TransportError& e) {
        return e.kind() == rest::TransportError::Kind::kCancelled;
      }
      return false;
    });
    stop.request_stop();
    EXPECT_EQ(second.wait_for(10s), std::future_status::ready);
    if (second.wait_for(0s) != std::future_status::ready) answers.open();
    EXPECT_TRUE(second.get());
  }
  answers.open();
  first.get();
}

TEST_F(DubboTest, ReadsItsNamespaceAndThoseOfTheEnvironment) {
  for (const char* ns : {"shop", "bank", "town"}) {
    cluster_.create_namespace(ns);
    cluster_.create_pod("p",
                        {.labels = {{kLabel, "dubbo.io.provider"}},
                         .annotations = {{kAnnotation, encode_records({{ns, ""}})}}},
                        ns);
  }
  provider("here", {{"default", ""}});
  ClientOptions from_environment = options();
  from_environment.pod_sources.environment =
      [](const std::string& name) -> std::optional<std::string> {
    if (name == "DUBBO_NAMESPACE") return "shop, bank";
    return std::nullopt;
  };
  Client client(cluster_.client(), from_environment);
  EXPECT_THAT(client.get_children(""),
              ElementsAre(Record{"bank", ""}, Record{"default", ""}, Record{"shop", ""}));
}

TEST_F(DubboTest, AnObserverNeedsNoPod) {
  cluster_.create_namespace("shop");
  cluster_.create_pod("p",
                      {.labels = {{kLabel, "dubbo.io.provider"}},
                       .annotations = {{kAnnotation, encode_records({{"a", "1"}})}}},
                      "shop");
  ClientOptions observer;
  observer.observer = true;
  observer.namespaces = {kAllNamespaces};
  Client client(cluster_.client(), observer);
  EXPECT_THAT(client.get_children(""), ElementsAre(Record{"a", "1"}));
  EXPECT_THROW(client.create("b", "1"), InvalidArgument);
  EXPECT_THROW(client.set_label("b", "1"), InvalidArgument);
}

// ------------------------------------------------------------------------------------ events

TEST_F(DubboTest, AnUnreadableAnnotationKeepsItsRecords) {
  provider("p", {{"a", "1"}});
  Client client(cluster_.client(), options());
  auto watcher = client.watch_with_prefix("", Begin::kWithWhatIsThere);
  EXPECT_EQ(told(watcher.next_for(kLong)), "CREATE a=1");
  cluster_.annotate("p", kAnnotation, "%%%");
  EXPECT_TRUE(eventually([&] { return !reports_.all().empty(); }));
  EXPECT_THAT(reports_.all(), ElementsAre(HasSubstr("p: annotation dubbo.io/annotation: ")));
  EXPECT_THAT(client.get_children(""), ElementsAre(Record{"a", "1"}));
  write("p", {{"b", "2"}});
  EXPECT_EQ(told(watcher.next_for(kLong)), "DELETE a=1");
  EXPECT_EQ(told(watcher.next_for(kLong)), "CREATE b=2");
  cluster_.annotate("p", kAnnotation, "%%%");
  cluster_.remove_pod("p");
  EXPECT_EQ(told(watcher.next_for(kLong)), "DELETE b=2");
}

TEST_F(DubboTest, DeliversAdditionsUpdatesAndDeletions) {
  Client client(cluster_.client(), options());
  auto one = client.watch("a");
  auto all = client.watch_with_prefix("");
  provider("p", {{"a", "1"}, {"ab", "1"}});
  EXPECT_EQ(told(all.next_for(kLong)), "CREATE a=1");
  EXPECT_EQ(told(all.next_for(kLong)), "CREATE ab=1");
  write("p", {{"a", "2"}, {"ab", "1"}});
  EXPECT_EQ(told(all.next_for(kLong)), "UPDATE a=2");
  // A record that is removed from the annotation is deleted; dubbo-go never reports that.
  write("p", {{"ab", "1"}});
  EXPECT_EQ(told(all.next_for(kLong)), "DELETE a=2");
  cluster_.remove_pod("p");
  const auto last = all.next_for(kLong);
  EXPECT_EQ(told(last), "DELETE ab=1");
  EXPECT_EQ(last->pod, "default/p");
  EXPECT_THAT(until(one, "DELETE a=2"), ElementsAre("CREATE a=1", "UPDATE a=2", "DELETE a=2"));
  EXPECT_EQ(one.next_for(1ms).outcome(), NextOutcome::kTimedOut);
}

TEST_F(DubboTest, AKeyExistsWhileAnyPodHasIt) {
  // dubbo-go deletes the key with the first deleted pod, although others still have it.
  Client client(cluster_.client(), options());
  auto watcher = client.watch(kService);
  provider("p1", {{kService, ""}});
  EXPECT_EQ(told(watcher.next_for(kLong)), std::string("CREATE ") + kService + "=");
  provider("p2", {{kService, ""}, {"seen", ""}});
  ASSERT_TRUE(eventually([&] { return client.get("seen").has_value(); }));
  cluster_.remove_pod("p1");
  cluster_.annotate("p2", kAnnotation, encode_records({{kService, ""}}));
  ASSERT_TRUE(eventually([&] { return !client.get("seen"); }));
  EXPECT_EQ(client.get(kService), "");
  EXPECT_EQ(watcher.next_for(1ms).outcome(), NextOutcome::kTimedOut);
  cluster_.remove_pod("p2");
  EXPECT_EQ(told(watcher.next_for(kLong)), std::string("DELETE ") + kService + "=");
}

TEST_F(DubboTest, RecordsOfAPodThatLosesItsLabelAreDeleted) {
  provider("p", {{"a", "1"}});
  Client client(cluster_.client(), options());
  auto watcher = client.watch("a", Begin::kWithWhatIsThere);
  EXPECT_EQ(told(watcher.next_for(kLong)), "CREATE a=1");
  cluster_.label("p", kLabel, "other");
  EXPECT_EQ(told(watcher.next_for(kLong)), "DELETE a=1");
}

TEST_F(DubboTest, EventsOfAPodAreInOrder) {
  // dubbo-go handles each event on a goroutine, so one may overtake another; here the last state is
  // delivered last.
  Client client(cluster_.client(), options());
  auto watcher = client.watch_with_prefix("");
  provider("p", {{"n", "0"}});
  for (int i = 1; i <= 200; ++i) write("p", {{"n", std::to_string(i)}});
  int last = -1;
  for (const auto& event : until(watcher, "UPDATE n=200")) {
    const int now = std::stoi(event.substr(event.find('=') + 1));
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_EQ(last, 200);
}

TEST_F(DubboTest, ItsOwnWritesAreDeliveredOnce) {
  // Its own writes are delivered at once, and arrive again from the server later.
  Client client(cluster_.client(), options());
  client.get_children("");
  auto watcher = client.watch("a");
  for (int i = 0; i < 20; ++i) {
    const std::string value = std::to_string(i);
    client.create("a", value);
    client.create("a", value + "+");
    client.remove("a");
    EXPECT_EQ(told(watcher.next_for(kLong)), "CREATE a=" + value);
    EXPECT_EQ(told(watcher.next_for(kLong)), "UPDATE a=" + value + "+");
    EXPECT_EQ(told(watcher.next_for(kLong)), "DELETE a=" + value + "+");
  }
  client.create("b", "");
  ASSERT_TRUE(eventually([&] { return client.get("b").has_value(); }));
  EXPECT_EQ(client.get("a"), std::nullopt);
  // A later write of another program on the same pod wins.
  write("self", {{"a", "other"}});
  EXPECT_EQ(told(watcher.next_for(kLong)), "CREATE a=other");
  write("self", {{"b", ""}});
  EXPECT_EQ(told(watcher.next_for(kLong)), "DELETE a=other");
}

TEST_F(DubboTest, MalformedRecordsAreReportedAndDoNotAffectOthers) {
  provider("good", {{"a", "1"}});
  cluster_.create_pod("half", {.labels = {{kLabel, "dubbo.io.provider"}},
                               .annotations = {{kAnnotation, base64url(R"([{"k":"b"},3])")}}});
  cluster_.create_pod(
      "bad", {.labels = {{kLabel, "dubbo.io.provider"}}, .annotations = {{kAnnotation, "%%%"}}});
  Client client(cluster_.client(), options());
  EXPECT_THAT(client.get_children(""), ElementsAre(Record{"a", "1"}, Record{"b", ""}));
  cluster_.label("bad", "note", "x");
  write("good", {{"a", "2"}});
  ASSERT_TRUE(eventually([&] { return client.get("a") == "2" && reports_.all().size() >= 2; }));
  EXPECT_THAT(reports_.all(), testing::UnorderedElementsAre(
                                  "half: annotation dubbo.io/annotation: record 1 is not an object",
                                  "bad: annotation dubbo.io/annotation: it is not base64url"));
}

TEST_F(DubboTest, AnUnreadWatcherDoesNotBlockOthers) {
  // dubbo-go blocks on it, with the lock held, when a hundred events are unread.
  ClientOptions small = options();
  small.max_pending = 50;
  Client client(cluster_.client(), small);
  auto lazy = client.watch_with_prefix("");
  auto eager = client.watch("last");
  provider("p", {{"n", "0"}, {"gone", "x"}});
  for (int i = 1; i <= 300; ++i) write("p", {{"n", std::to_string(i)}});
  write("p", {{"n", "300"}, {"last", ""}});
  EXPECT_EQ(told(eager.next_for(kLong)), "CREATE last=");
  EXPECT_LE(lazy.pending(), 101u);
  // It receives a shorter equivalent: the key is created once, and its last value comes last.
  const auto events = until(lazy, "CREATE last=");
  EXPECT_EQ(std::ranges::count_if(events, [](auto& e) { return e.starts_with("CREATE n="); }), 1);
  std::string last;
  for (const std::string& event : events)
    if (event.find(" n=") != std::string::npos) last = event;
  EXPECT_THAT(last, testing::EndsWith(" n=300"));
}

TEST_F(DubboTest, WatchersHaveACoroutineForm) {
  Client client(cluster_.client(), options());
  auto watcher = client.watch("a");
  auto future = boost::asio::co_spawn(cluster_.client().loop().context(), watcher.async_next(),
                                      boost::asio::use_future);
  client.create("a", "1");
  EXPECT_EQ(told(lookout::test::get(future)), "CREATE a=1");
}

TEST_F(DubboTest, SurvivesARestartOfTheServer) {
  provider("p", {{"a", "1"}, {"b", "1"}});
  ClientOptions quick = options();
  quick.backoff = {.initial = 1ms, .max = 20ms};
  Client client(cluster_.client(), quick);
  ASSERT_EQ(client.get("a"), "1");
  auto watcher = client.watch_with_prefix("");
  cluster_.stop_server();
  ASSERT_TRUE(eventually([&] { return !client.freshness().live; }));
  EXPECT_EQ(client.get("a"), "1") << "what was known is still served";
  EXPECT_TRUE(client.valid());
  cluster_.start_server();
  ASSERT_TRUE(eventually([&] { return client.freshness().live; }));
  write("p", {{"b", "2"}});
  EXPECT_THAT(until(watcher, "UPDATE b=2"), ElementsAre("DELETE a=1", "UPDATE b=2"));
}

// ------------------------------------------------------------------------------------ the end

TEST_F(DubboTest, CloseEndsAllWatchers) {
  Client client(cluster_.client(), options());
  auto watcher = client.watch("a");
  auto stopped = client.watch("a");
  stopped.stop();
  EXPECT_TRUE(client.valid());
  EXPECT_FALSE(client.done().stop_requested());
  bool told_of_it = false;
  const std::stop_callback on_done(client.done(), [&] { told_of_it = true; });
  client.close();
  client.close();
  EXPECT_TRUE(told_of_it);
  EXPECT_FALSE(client.valid());
  EXPECT_EQ(watcher.next().outcome(), NextOutcome::kClosed);
  EXPECT_EQ(stopped.next().outcome(), NextOutcome::kStopped);
  EXPECT_THROW(client.get_children(""), InvalidArgument);
  EXPECT_THROW(client.watch("a"), InvalidArgument);
  EXPECT_THROW(client.create("a", ""), InvalidArgument);
}

TEST_F(DubboTest, ValidateReplacesOnlyLostClients) {
  // dubbo-go does the reverse: it replaces valid clients.
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::make_shared<Client>(cluster_.client(), options());
  };
  std::shared_ptr<Client> client;
  EXPECT_TRUE(validate_client(client, make));
  EXPECT_FALSE(validate_client(client, make));
  EXPECT_EQ(made, 1);
  client->close();
  EXPECT_TRUE(validate_client(client, make));
  EXPECT_TRUE(client->valid());
  EXPECT_EQ(made, 2);
}

TEST_F(DubboTest, GivesUpAfterTheConfiguredTime) {
  ClientOptions impatient = options();
  impatient.give_up_after = 50ms;
  impatient.backoff = {.initial = 1ms, .max = 5ms};
  Client client(cluster_.client(), impatient);
  client.get_children("");
  auto watcher = client.watch("a");
  cluster_.stop_server();
  EXPECT_EQ(watcher.next_for(kLong).outcome(), NextOutcome::kClosed);
  EXPECT_FALSE(client.valid());
}

TEST_F(DubboTest, AProviderThatReadsNothingDoesNotGiveUp) {
  ClientOptions provider = options();
  provider.role = Role::kProvider;
  provider.give_up_after = 20ms;
  Client client(cluster_.client(), provider);
  Gate done;
  const std::stop_callback on_done(client.done(), [&] { done.open(); });
  EXPECT_FALSE(done.wait(200ms)) << "it does not listen to the server";
  client.create("a", "1");
  EXPECT_TRUE(client.valid());
}

TEST_F(DubboTest, AWaitMayHaveNoLimit) {
  Client client(cluster_.client(), options());
  EXPECT_THAT(client.get_children("", {.timeout = std::chrono::milliseconds::max()}), IsEmpty());
  auto watcher = client.watch("a");
  client.create("a", "1");
  EXPECT_EQ(told(watcher.next_for(std::chrono::milliseconds::max())), "CREATE a=1");
}

TEST(DubboMockClient, HasAClusterOfItsOwn) {
  lookout::test::MockDubboClient mock(api::Object::parse(
      R"({"items":[{"metadata":{"name":"server","namespace":"team","resourceVersion":"517460",
          "uid":"f4fc811c","labels":{"dubbo.io/label":"dubbo.io.provider"},
          "annotations":{"dubbo.io/annotation":"W3siayI6Ii9kdWJiby9jb20uZXhhbXBsZS5Vc2VyUHJvdmlkZXIvcHJvdmlkZXJzIiwidiI6IiJ9LHsiayI6Ii9kdWJiby9jb20uZXhhbXBsZS5Vc2VyUHJvdmlkZXIvcHJvdmlkZXJzL2R1YmJvJTNBJTJGJTJGMTcyLjE3LjAuNiUzQTIwMDAwJTJGVXNlclByb3ZpZGVyJTNGaW50ZXJmYWNlJTNEY29tLmV4YW1wbGUuVXNlclByb3ZpZGVyJTI2c2lkZSUzRHByb3ZpZGVyIiwidiI6IiJ9XQ=="}},
          "spec":{"containers":[{"name":"server","image":"go-server"}]}}]})"));
  EXPECT_EQ(mock->pod(), (PodIdentity{"team", "server"}));
  EXPECT_THAT(mock->get_children("/dubbo"), SizeIs(2));
  mock->create("age", "27");
  EXPECT_EQ(mock->get("age"), "27");
}

class EventQueueTest : public testing::Test {
 protected:
  /// "CREATE a=1"
  void push(EventType type, const std::string& key, const std::string& value) {
    queue_.push({type, key, value, "default/p"});
  }
  std::vector<std::string> take_all() {
    std::vector<std::string> out;
    while (auto event = queue_.take()) out.push_back(told(*event));
    return out;
  }

  detail::EventQueue queue_{"", true, 4};
};

TEST_F(EventQueueTest, MergesTheEventsOfAKey) {
  push(EventType::kUpdate, "known", "2");
  push(EventType::kDelete, "known", "2");
  push(EventType::kCreate, "known", "3");
  push(EventType::kCreate, "short", "1");
  push(EventType::kDelete, "short", "1");
  EXPECT_EQ(queue_.pending(), 1u);
  EXPECT_THAT(take_all(), ElementsAre("UPDATE known=3"));
  push(EventType::kUpdate, "known", "4");
  push(EventType::kDelete, "known", "4");
  for (const char* value : {"1", "2", "3"}) push(EventType::kUpdate, "other", value);
  EXPECT_THAT(take_all(), ElementsAre("DELETE known=4", "UPDATE other=3"));
}

TEST_F(EventQueueTest, MergesAsEarlyAsBeforeWhenItsEventsAreTaken) {
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) push(EventType::kCreate, key, "1");
  EXPECT_EQ(take_all().size(), 6u);
  for (int i = 0; i < 5; ++i) push(EventType::kUpdate, "a", std::to_string(i));
  EXPECT_EQ(queue_.pending(), 1u);
}

}  // namespace
}  // namespace lookout::registry::dubbo

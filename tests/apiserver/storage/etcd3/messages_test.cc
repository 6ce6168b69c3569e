// Messages of etcd's gateway, split at every byte.
#include "apiserver/storage/etcd3/messages.h"

#include "lookout/base/base64.h"
#include "tests/support/matchers.h"
#include "tests/support/text_case.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

struct Read {
  std::vector<KeyValue> kvs;
  std::vector<KeyEvent> events;
  std::vector<Message> messages;
  bool good = true;
  bool complete = false;
  std::string error;
};

Read read(std::string_view text, std::size_t step,
          std::size_t max = MessageReader::kMaxValueBytes) {
  Read out;
  MessageReader::Callbacks callbacks;
  callbacks.key_value = [&](KeyValue kv) { out.kvs.push_back(std::move(kv)); };
  callbacks.event = [&](KeyEvent event) { out.events.push_back(std::move(event)); };
  callbacks.message = [&](Message message) { out.messages.push_back(std::move(message)); };
  MessageReader reader(std::move(callbacks), max);
  for (std::size_t at = 0; out.good && at < text.size(); at += step)
    out.good = reader.feed(text.substr(at, step));
  out.complete = reader.complete();
  out.error = reader.error();
  return out;
}

class MessagesTest : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Steps, MessagesTest, testing::Values(1, 2, 3, 7, 64, 100000));

TEST_P(MessagesTest, ARange) {
  const Read got = read(
      R"({"header":{"cluster_id":"3249525912006","member_id":"33","revision":"7","raft_term":"2"},)"
      R"("kvs":[{"key":"L2E=","create_revision":"2","mod_revision":"5","version":"4","value":"aGVsbG8="},)"
      R"({"key":"L2I=","create_revision":"3","mod_revision":"3","version":"1","value":"","lease":"-9"}],)"
      R"("more":true,"count":"12"})",
      GetParam());
  ASSERT_TRUE(got.good) << got.error;
  EXPECT_TRUE(got.complete);
  ASSERT_EQ(got.kvs.size(), 2u);
  EXPECT_EQ(got.kvs[0].key, "/a");
  EXPECT_EQ(got.kvs[0].value, "hello");
  EXPECT_EQ(got.kvs[0].create_revision, 2u);
  EXPECT_EQ(got.kvs[0].mod_revision, 5u);
  EXPECT_EQ(got.kvs[0].version, 4);
  EXPECT_EQ(got.kvs[1].lease, -9);
  ASSERT_EQ(got.messages.size(), 1u);
  EXPECT_EQ(got.messages[0].revision, 7u);
  EXPECT_EQ(got.messages[0].cluster_id, 3249525912006u);
  EXPECT_EQ(got.messages[0].count, 12);
  EXPECT_TRUE(got.messages[0].more);
}

TEST_P(MessagesTest, ATransactionGivesItsOwnRevisionAndWhatIsThere) {
  const Read got = read(
      R"({"header":{"revision":"9"},"responses":[{"response_range":{"header":{"revision":"8"},)"
      R"("kvs":[{"key":"L2E=","mod_revision":"2","value":"eA=="}],"count":"1"}}]})",
      GetParam());
  ASSERT_EQ(got.kvs.size(), 1u);
  EXPECT_EQ(got.kvs[0].value, "x");
  ASSERT_EQ(got.messages.size(), 1u);
  EXPECT_FALSE(got.messages[0].succeeded);
  EXPECT_EQ(got.messages[0].revision, 9u);
}

TEST_P(MessagesTest, AWatchIsFrames) {
  const Read got = read(
      R"({"result":{"header":{"revision":"4"},"created":true}})"
      "\n"
      R"({"result":{"header":{"revision":"6"},"fragment":true,"events":[)"
      R"({"kv":{"key":"L2E=","create_revision":"5","mod_revision":"5","version":"1","value":"eA=="}},)"
      R"({"type":"DELETE","kv":{"key":"L2E=","mod_revision":"6"},)"
      R"("prev_kv":{"key":"L2E=","mod_revision":"5","value":"eA=="}}]}})"
      "\n"
      R"({"result":{"header":{"revision":"8"}}})"
      "\n"
      R"({"result":{"header":{},"canceled":true,"compact_revision":"5"}})"
      "\n",
      GetParam());
  ASSERT_TRUE(got.good) << got.error;
  ASSERT_EQ(got.events.size(), 2u);
  EXPECT_FALSE(got.events[0].deleted);
  EXPECT_EQ(got.events[0].kv.value, "x");
  EXPECT_FALSE(got.events[0].previous);
  EXPECT_TRUE(got.events[1].deleted);
  EXPECT_EQ(got.events[1].kv.mod_revision, 6u);
  ASSERT_TRUE(got.events[1].previous);
  EXPECT_EQ(got.events[1].previous->value, "x");
  ASSERT_EQ(got.messages.size(), 4u);
  EXPECT_TRUE(got.messages[0].created);
  EXPECT_TRUE(got.messages[1].fragment);
  EXPECT_EQ(got.messages[1].events, 2u);
  EXPECT_EQ(got.messages[2].events, 0u);
  EXPECT_EQ(got.messages[2].revision, 8u);
  EXPECT_TRUE(got.messages[3].canceled);
  EXPECT_TRUE(got.messages[3].failure().is_compacted());
}

TEST_P(MessagesTest, FailuresOfRequestsAndOfStreams) {
  const Read unary = read(
      R"({"error":"etcdserver: mvcc: required revision has been compacted","message":"same","code":11})",
      GetParam());
  ASSERT_EQ(unary.messages.size(), 1u);
  EXPECT_TRUE(unary.messages[0].failed);
  EXPECT_EQ(unary.messages[0].code, EtcdError::kOutOfRange);
  EXPECT_TRUE(unary.messages[0].failure().is_compacted());
  const Read stream = read(
      R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader","http_status":"x"}})",
      GetParam());
  ASSERT_EQ(stream.messages.size(), 1u);
  EXPECT_TRUE(stream.messages[0].failure().is_no_leader());
  EXPECT_EQ(stream.messages[0].failure().code(), EtcdError::kUnavailable);
}

TEST_P(MessagesTest, FailuresAsThoseOfEtcd36) {
  const Read unary = read(
      R"({"code":11, "message":"etcdserver: mvcc: required revision has been compacted", "details":[]})",
      GetParam());
  ASSERT_EQ(unary.messages.size(), 1u);
  EXPECT_TRUE(unary.messages[0].failed);
  EXPECT_EQ(unary.messages[0].failure().code(), EtcdError::kOutOfRange);
  EXPECT_TRUE(unary.messages[0].failure().is_compacted());
  const Read token = read(R"({"message":"etcdserver: invalid auth token","code":16})", GetParam());
  ASSERT_EQ(token.messages.size(), 1u);
  EXPECT_TRUE(token.messages[0].failure().is_bad_token());
  const Read details =
      read(R"({"code":14,"message":"no","details":[{"@type":"x","code":5,"message":"other"}]})",
           GetParam());
  ASSERT_EQ(details.messages.size(), 1u);
  EXPECT_EQ(details.messages[0].failure().code(), EtcdError::kUnavailable);
  EXPECT_STREQ(details.messages[0].failure().what(), "no");
  const Read stream =
      read(R"({"error":{"code":14,"message":"etcdserver: no leader","details":[]}})", GetParam());
  ASSERT_EQ(stream.messages.size(), 1u);
  EXPECT_TRUE(stream.messages[0].failure().is_no_leader());
  EXPECT_EQ(stream.messages[0].failure().code(), EtcdError::kUnavailable);
}

TEST_P(MessagesTest, EscapesAreRead) {
  const Read got =
      read(R"({"error":"a\u002bb \"\\\/\n \u00e4 \u20ac \ud83d\ude00 \ud800 \udc00","code":2})",
           GetParam());
  ASSERT_EQ(got.messages.size(), 1u) << got.error;
  EXPECT_EQ(got.messages[0].error,
            "a+b \"\\/\n \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbd \xef\xbf\xbd");
}

TEST_P(MessagesTest, WhatNobodyKnowsIsSteppedOver) {
  const Read got = read(
      R"({"header":{"revision":"3","x":[1,{"revision":"99"}]},"new":{"kvs2":[[],{}]},"n":-1.5e3,"z":null,)"
      R"("kvs":[{"key":"L2E=","later":{"key":"L2I="},"value":"eA=="}],"count":1})",
      GetParam());
  ASSERT_TRUE(got.good) << got.error;
  ASSERT_EQ(got.kvs.size(), 1u);
  EXPECT_EQ(got.kvs[0].key, "/a");
  EXPECT_EQ(got.messages.at(0).revision, 3u);
}

using Hostile = lookout::test::NamedTextCase;

class HostileMessagesTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileMessagesTest, AreRefusedInWords) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{5}, std::size_t{100000}}) {
    const Read got = read(GetParam().text, step, 1000);
    EXPECT_FALSE(got.good && got.complete) << step;
    EXPECT_THAT(got.error, HasSubstr(GetParam().expected)) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Messages, HostileMessagesTest,
    testing::Values(Hostile{"Html", "<html>", "no JSON at byte 0"},
                    Hostile{"Comma", "{,}", "a comma"},
                    Hostile{"TwoValues", R"({"a" "b"})", "a key without a colon"},
                    Hostile{"NoColonValue", R"({"a"})", "a key without a colon"},
                    Hostile{"NoValue", R"({"a":})", "a key without a value"},
                    Hostile{"WrongBracket", R"({"a":[}])", "a closing bracket"},
                    Hostile{"ColonInArray", "[1:2]", "a colon"},
                    Hostile{"Word", "{\"a\":nothing }", "the word"},
                    Hostile{"LongWord", std::string(100, '1') + " ", "a long word"},
                    Hostile{"Escape", R"(["\x"])", "an unknown escape"},
                    Hostile{"Unicode", R"(["\u12g4"])", "not hexadecimal"},
                    Hostile{"Deep", std::string(100, '['), "nested too deeply"},
                    Hostile{"LongValue", "{\"kvs\":[{\"value\":\"" + std::string(5000, 'A'),
                            "a string of more than"},
                    Hostile{"NoBase64", R"({"kvs":[{"key":"?"}]})", "not base64"},
                    Hostile{"NoNumber", R"({"header":{"revision":"x"}})", "\"x\" is not a number"},
                    Hostile{"NegativeRevision", R"({"header":{"revision":"-1"}})",
                            "is not a number"},
                    Hostile{"HugeNumber", R"({"count":"99999999999999999999"})", "is not a number"},
                    Hostile{"Cut", R"({"header":{"revision":"3"})", ""}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(PrefixEndTest, IsTheKeyBehindAllThatBeginWithThePrefix) {
  EXPECT_EQ(prefix_end("/registry/pods/"), "/registry/pods0");
  EXPECT_EQ(prefix_end("a\xff"), "b");
  EXPECT_EQ(prefix_end("\xff"), std::string(1, '\0'));
  EXPECT_EQ(prefix_end(""), std::string(1, '\0'));
}

TEST(RequestTest, SaysWhatIsWanted) {
  RangeRequest range;
  range.key = "/a";
  range.range_end = "/b";
  range.limit = 5;
  range.revision = 7;
  EXPECT_EQ(to_json(range), R"({"key":"L2E=","range_end":"L2I=","limit":"5","revision":"7"})");
  WatchRequest watch;
  watch.key = "/a";
  watch.start_revision = 3;
  watch.progress = true;
  EXPECT_EQ(to_json(watch),
            R"({"create_request":{"key":"L2E=","start_revision":"3","prev_kv":true,)"
            R"("progress_notify":true,"fragment":true}})");
  EXPECT_EQ(optimistic_put("/a", "x", 0, 4),
            R"({"compare":[{"key":"L2E=","target":"MOD","result":"EQUAL","mod_revision":"0"}],)"
            R"("success":[{"request_put":{"key":"L2E=","value":"eA==","lease":"4"}}],)"
            R"("failure":[{"request_range":{"key":"L2E="}}]})");
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3

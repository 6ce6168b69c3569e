// Messages of etcd, split at every byte.
#include "apiserver/storage/etcd3/messages.h"

#include "apiserver/grpc/call.h"
#include "tests/apiserver/storage/etcd3/etcd_answers.h"
#include "tests/support/matchers.h"
#include "tests/support/text_case.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using grpc::framed;
using test::Proto;

struct Read {
  std::vector<KeyValue> kvs;
  std::vector<KeyEvent> events;
  std::vector<Message> messages;
  bool good = true;
  bool complete = false;
  std::string error;
};

Read read(AnswerKind kind, std::string_view text, std::size_t step,
          std::size_t max = MessageReader::kMaxValueBytes) {
  Read out;
  MessageReader::Callbacks callbacks;
  callbacks.key_value = [&](KeyValue kv) { out.kvs.push_back(std::move(kv)); };
  callbacks.event = [&](KeyEvent event) { out.events.push_back(std::move(event)); };
  callbacks.message = [&](Message message) { out.messages.push_back(std::move(message)); };
  MessageReader reader(kind, std::move(callbacks), max);
  for (std::size_t at = 0; out.good && at < text.size(); at += step)
    out.good = reader.feed(text.substr(at, step));
  out.complete = reader.complete();
  out.error = reader.error();
  return out;
}

Proto header() { return Proto().number(1, 3249525912006).number(2, 33).number(3, 7).number(4, 2); }

class MessagesTest : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Steps, MessagesTest, testing::Values(1, 2, 3, 7, 64, 100000));

TEST_P(MessagesTest, ReadsARange) {
  Proto answer;
  answer.message(1, header()).message(2, test::key_value("/a", "hello", 5, 2));
  Proto leased;
  leased.bytes(1, "/b").number(2, 3).number(3, 3).number(4, 1);
  leased.number(6, static_cast<std::uint64_t>(-9));
  answer.message(2, leased).number(3, 1).number(4, 12);
  const Read got = read(AnswerKind::kRange, framed(answer.text()), GetParam());
  ASSERT_TRUE(got.good) << got.error;
  EXPECT_TRUE(got.complete);
  ASSERT_EQ(got.kvs.size(), 2u);
  EXPECT_EQ(got.kvs[0].key, "/a");
  EXPECT_EQ(got.kvs[0].value, "hello");
  EXPECT_EQ(got.kvs[0].create_revision, 2u);
  EXPECT_EQ(got.kvs[0].mod_revision, 5u);
  EXPECT_EQ(got.kvs[0].version, 1);
  EXPECT_EQ(got.kvs[1].lease, -9);
  ASSERT_EQ(got.messages.size(), 1u);
  EXPECT_EQ(got.messages[0].revision, 7u);
  EXPECT_EQ(got.messages[0].cluster_id, 3249525912006u);
  EXPECT_EQ(got.messages[0].member_id, 33u);
  EXPECT_EQ(got.messages[0].count, 12);
  EXPECT_TRUE(got.messages[0].more);
}

TEST_P(MessagesTest, ReadsARangeInParts) {
  Proto first;
  first.message(2, test::key_value("/a", "hello", 5, 2));
  Proto last;
  last.message(1, header()).message(2, test::key_value("/b", "you", 6, 6)).number(4, 2);
  const Read got = read(AnswerKind::kRangeStream,
                        framed(Proto().message(1, first).text()) +
                            framed(Proto().message(1, last).bytes(9, "unknown").text()),
                        GetParam());
  ASSERT_TRUE(got.good) << got.error;
  EXPECT_TRUE(got.complete);
  ASSERT_EQ(got.kvs.size(), 2u);
  EXPECT_EQ(got.kvs[0].value, "hello");
  EXPECT_EQ(got.kvs[1].key, "/b");
  ASSERT_EQ(got.messages.size(), 2u);
  EXPECT_EQ(got.messages[0].revision, 0u);
  EXPECT_EQ(got.messages[1].revision, 7u);
  EXPECT_EQ(got.messages[1].count, 2);
  EXPECT_FALSE(got.messages[1].more);
}

TEST_P(MessagesTest, ReadsTheRevisionAndValuesOfATransaction) {
  Proto range;
  range.message(1, test::header(8)).message(2, test::key_value("/a", "x", 2, 2)).number(4, 1);
  Proto answer = test::answer(9);
  answer.message(3, Proto().message(1, range));
  const Read got = read(AnswerKind::kTxn, framed(answer.text()), GetParam());
  ASSERT_EQ(got.kvs.size(), 1u) << got.error;
  EXPECT_EQ(got.kvs[0].value, "x");
  ASSERT_EQ(got.messages.size(), 1u);
  EXPECT_FALSE(got.messages[0].succeeded);
  EXPECT_EQ(got.messages[0].revision, 9u);
  EXPECT_EQ(got.messages[0].count, 0) << "that of the range within";

  Proto written = test::answer(10);
  written.number(2, 1).message(3, Proto().message(2, test::answer(10)));
  const Read success = read(AnswerKind::kTxn, framed(written.text()), GetParam());
  EXPECT_TRUE(success.messages.at(0).succeeded);
}

TEST_P(MessagesTest, ReadsTheMessagesOfAWatch) {
  Proto events = test::answer(6).number(7, 1);
  events.message(11, test::put_event(test::key_value("/a", "x", 5, 5)));
  events.message(11, test::delete_event(Proto().bytes(1, "/a").number(3, 6),
                                        test::key_value("/a", "x", 5, 5)));
  const std::string text =
      framed(test::created(4).number(2, 3).text()) + framed(events.text()) +
      framed(test::answer(8).number(2, static_cast<std::uint64_t>(-1)).text()) +
      framed(test::canceled("", 5).text());
  const Read got = read(AnswerKind::kWatch, text, GetParam());
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
  EXPECT_EQ(got.messages[0].watch_id, 3);
  EXPECT_TRUE(got.messages[1].fragment);
  EXPECT_EQ(got.messages[1].events, 2u);
  EXPECT_EQ(got.messages[2].events, 0u);
  EXPECT_EQ(got.messages[2].revision, 8u);
  EXPECT_EQ(got.messages[2].watch_id, -1);
  EXPECT_TRUE(got.messages[3].canceled);
  EXPECT_TRUE(got.messages[3].failure().is_compacted());
}

TEST_P(MessagesTest, ReadsOtherMessages) {
  const Read lease = read(AnswerKind::kLease,
                          framed(test::answer(1).number(2, 77).number(3, 60).text()), GetParam());
  EXPECT_EQ(lease.messages.at(0).id, 77);
  EXPECT_EQ(lease.messages.at(0).ttl, 60);
  const Read token = read(AnswerKind::kAuthenticate,
                          framed(test::answer(1).bytes(2, "secret").text()), GetParam());
  EXPECT_EQ(token.messages.at(0).token, "secret");
  const Read status =
      read(AnswerKind::kStatus, framed(test::answer(1).bytes(2, "3.5.16").number(3, 9).text()),
           GetParam());
  EXPECT_EQ(status.messages.at(0).version, "3.5.16");
  Proto members = test::answer(1);
  members.message(2, Proto().number(1, 5).bytes(3, "http://peer").bytes(4, "http://one"));
  members.message(2, Proto().bytes(4, "http://two").bytes(4, "http://three"));
  members.message(2, Proto().bytes(4, "http://learner").number(5, 1));
  const Read urls = read(AnswerKind::kMembers, framed(members.text()), GetParam());
  EXPECT_THAT(urls.messages.at(0).client_urls,
              testing::ElementsAre("http://one", "http://two", "http://three"));
  const Read empty = read(AnswerKind::kCompact, framed(""), GetParam());
  EXPECT_THAT(empty.messages, SizeIs(1));
  EXPECT_TRUE(empty.complete);
}

TEST(MessageSizeTest, RejectsMessagesBeyondTheLimit) {
  const std::string message = test::answer(1).bytes(2, std::string(500, 'x')).text();
  for (const std::size_t limit : {message.size(), message.size() - 1}) {
    MessageReader reader(AnswerKind::kAuthenticate, {}, MessageReader::kMaxValueBytes, limit);
    // Its head is sufficient to detect it.
    const bool good = reader.feed(framed(message).substr(0, grpc::kMessageHead));
    EXPECT_EQ(good, limit == message.size());
    EXPECT_EQ(reader.is_too_large(), limit != message.size());
  }
}

TEST_P(MessagesTest, UnknownFieldsAreSkipped) {
  Proto answer;
  answer.message(1, header().bytes(9, "new"));
  answer.bytes(99, std::string(300, 'x')).number(50, ~std::uint64_t{0});
  answer
      .append(
          "\x9d\x06"
          "1234")
      .append(
          "\x99\x06"
          "12345678");  // 32 and 64 bits
  answer.message(2, test::key_value("/a", "x", 5, 5).bytes(77, "later"));
  const Read got = read(AnswerKind::kRange, framed(answer.text()), GetParam());
  ASSERT_TRUE(got.good) << got.error;
  ASSERT_EQ(got.kvs.size(), 1u);
  EXPECT_EQ(got.kvs[0].key, "/a");
  EXPECT_EQ(got.messages.at(0).revision, 7u);
}

using Hostile = lookout::test::NamedTextCase;

class HostileMessagesTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileMessagesTest, AreRejectedWithAMessage) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{5}, std::size_t{100000}}) {
    const Read got = read(AnswerKind::kRange, GetParam().text, step, 1000);
    EXPECT_FALSE(got.good && got.complete) << step;
    EXPECT_THAT(got.error, HasSubstr(GetParam().expected)) << step;
  }
}

std::string with_kv(const Proto& kv) { return framed(Proto().message(2, kv).text()); }

INSTANTIATE_TEST_SUITE_P(
    Messages, HostileMessagesTest,
    testing::Values(
        Hostile{"Html", "<html>", "not a gRPC message"},
        Hostile{"Compressed", std::string("\1\0\0\0\0", 5), "compressed"},
        Hostile{"FieldZero", framed(std::string("\0\1", 2)), "a wrong number"},
        Hostile{"Group", framed("\x0b\x01"), "an unknown type"},
        Hostile{"LongNumber", framed("\x18" + std::string(11, '\xff')), "a field is cut"},
        Hostile{"HugeNumber", framed("\x18" + std::string(9, '\xff') + "\x02"),
                "a number is too long"},
        Hostile{"CutTag", framed("\x98"), "a field is cut"},
        Hostile{"CutNumber", framed("\x18\x80"), "a field is cut"},
        Hostile{"LongerThanItsMessage",
                framed("\x12\x05"
                       "abc"),
                "longer than its message"},
        Hostile{"LargeValue", framed(Proto().bytes(2, std::string(5000, 'A')).text()),
                "a value of more than 1000 bytes"},
        Hostile{"NoHeader", framed(Proto().bytes(1, "\x18").text()), "a header is malformed"},
        Hostile{"NegativeRevision", framed(test::answer(~std::uint64_t{0}).text()),
                "a revision is negative"},
        Hostile{"NegativeRevisionOfAKey", with_kv(Proto().number(3, ~std::uint64_t{0})),
                "a revision is negative"},
        Hostile{"NoKey", with_kv(Proto().append("\x0a\x09k")), "a key with its value is malformed"},
        Hostile{"Cut", framed(test::answer(3).text()).substr(0, 8), ""}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(PrefixEndTest, IsTheFirstKeyBehindThePrefix) {
  EXPECT_EQ(prefix_end("/registry/pods/"), "/registry/pods0");
  EXPECT_EQ(prefix_end("a\xff"), "b");
  EXPECT_EQ(prefix_end("\xff"), std::string(1, '\0'));
  EXPECT_EQ(prefix_end(""), std::string(1, '\0'));
}

TEST(RequestTest, EncodesRequests) {
  RangeRequest range;
  range.key = "/a";
  range.range_end = "/b";
  range.limit = 5;
  range.revision = 7;
  EXPECT_EQ(encode(range), Proto().bytes(1, "/a").bytes(2, "/b").number(3, 5).number(4, 7).text());
  WatchRequest watch;
  watch.key = "/a";
  watch.start_revision = 3;
  watch.progress = true;
  Proto create;
  create.bytes(1, "/a").number(3, 3).number(4, 1).number(6, 1).number(8, 1);
  EXPECT_EQ(encode(watch), Proto().message(1, create).text());
  EXPECT_EQ(progress_request(), Proto().bytes(3, "").text());
  // A union's member is written even if it is 0.
  const Proto compare = Proto().number(2, 2).bytes(3, "/a").number(6, 0);
  const Proto put = Proto().bytes(1, "/a").bytes(2, "x").number(3, 4);
  Proto txn;
  txn.message(1, compare).message(2, Proto().message(2, put));
  txn.message(3, Proto().message(1, Proto().bytes(1, "/a")));
  EXPECT_EQ(optimistic_put("/a", "x", 0, 4), txn.text());
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3

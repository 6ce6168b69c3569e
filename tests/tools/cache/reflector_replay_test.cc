// Recorded responses of a real API server, in pieces and with breaks.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <map>
#include <set>

#include "lookout/api/json.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/reflector.h"
#include "tests/support/fake_lister_watcher.h"
#include "tests/support/files.h"

namespace lookout::cache {
namespace {

using namespace std::chrono_literals;
using Contents = std::map<std::string, api::Object>;

/// A recorded watch: its events, each with its position in the body.
struct Recording {
  struct Event {
    std::size_t end;  // behind its line
    std::string resource_version;
  };
  std::string body;
  std::vector<Event> events;
  Contents contents;  // the objects at its end, computed line by line

  explicit Recording(const std::string& name)
      : body(lookout::test::read_file(
            lookout::test::testdata("kube-1.36/watch/" + name + ".jsonl"))) {
    std::size_t end = 0;
    for (const auto& line : lookout::test::lines(body)) {
      end += line.size() + 1;
      const auto event = api::Object::parse(line);
      const auto object = api::Object::parse(to_json(line));
      events.push_back({end, std::string(object.resource_version())});
      const auto type = event["type"].as_string();
      if (type == "ADDED" || type == "MODIFIED") contents[object.key()] = object;
      if (type == "DELETED") contents.erase(object.key());
    }
  }

  /// The positions around the end of every event, and some in the middle. (Tests of the decoder
  /// split recordings at every position.)
  std::set<std::size_t> positions() const {
    constexpr std::size_t kStep = 29;
    std::set<std::size_t> out;
    for (std::size_t at = 1; at < body.size(); at += kStep) out.insert(at);
    for (const Event& event : events) {
      for (const std::size_t at : {event.end - 1, event.end, event.end + 1})
        if (at < body.size()) out.insert(at);
    }
    return out;
  }

  /// The body of a watch from that version.
  std::string_view from(std::string_view resource_version) const {
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
      if (event->resource_version == resource_version)
        return std::string_view(body).substr(event->end);
    }
    return body;
  }

 private:
  /// without the fields around the object.
  static std::string to_json(std::string_view line) {
    const std::size_t begin = line.find(R"("object":)") + 9;
    return std::string(line.substr(begin, line.rfind('}') - begin));
  }
};

/// The pieces in which a body arrives.
struct Arrival {
  std::vector<std::string_view> pieces;
  static Arrival whole(std::string_view body) { return {{body}}; }
  static Arrival in_two(std::string_view body, std::size_t at) {
    return {{body.substr(0, at), body.substr(at)}};
  }
  static Arrival byte_by_byte(std::string_view body) {
    Arrival out;
    for (std::size_t i = 0; i < body.size(); ++i) out.pieces.push_back(body.substr(i, 1));
    return out;
  }
};

class ReflectorReplayTest : public testing::TestWithParam<const char*> {
 protected:
  /// Reads the events of a response as rest::WatchStream does.
  lookout::test::FakeListerWatcher::NextEvents read(Arrival arrival) {
    struct Stream {
      explicit Stream(Arrival a)
          : arrival(std::move(a)),
            decoder(
                {}, [this](api::WatchEvent event) { pending.push_back(std::move(event)); },
                [](const api::MalformedObject& m) { ADD_FAILURE() << m.reason; }) {}
      Arrival arrival;
      std::size_t next = 0;
      std::vector<api::WatchEvent> pending;
      api::JsonWatchDecoder decoder;
    };
    const auto stream = std::make_shared<Stream>(std::move(arrival));
    return [this, stream](std::vector<api::WatchEvent>& events) {
      stream->pending.clear();
      while (stream->pending.empty()) {
        if (stream->next == stream->arrival.pieces.size()) {
          clock_->advance(2s);  // it was not a very short watch
          if (stream->decoder.finish()) return false;
          throw rest::TransportError(rest::TransportError::Kind::kBroken, stream->decoder.error());
        }
        EXPECT_TRUE(stream->decoder.feed(stream->arrival.pieces[stream->next++]));
      }
      events = stream->pending;
      return true;
    };
  }

  /// Watches until the reflector has seen everything; `answer` returns the body for the n-th watch.
  template <class Answer>
  Contents replay(Answer answer) {
    Indexer store;
    Controller controller(store, {}, [](const std::vector<Notification>&) {});
    const auto source = std::make_shared<lookout::test::FakeListerWatcher>();
    std::stop_source stop;
    bool done = false;
    ReflectorOptions options;
    options.clock = clock_;
    const auto reflector = Reflector::create(source, controller, options);
    boost::asio::co_spawn(boost::asio::make_strand(context_), reflector->run(stop.get_token()),
                          [&](std::exception_ptr) { done = true; });
    const auto settle = [&] {
      context_.restart();
      context_.poll();
    };
    source->list_returns({{}, list_version_});
    settle();
    watches_ = 0;
    while (!answered_all_) {
      source->watch_is(read(answer(source->watches().back().resource_version, watches_++)));
      settle();
    }
    answered_all_ = false;
    EXPECT_EQ(source->lists().size(), 1u);
    stop.request_stop();
    settle();
    EXPECT_TRUE(done);
    Contents out;
    for (const auto& object : store.snapshot()) out[object.key()] = object;
    return out;
  }

  Recording recording_{GetParam()};
  std::string list_version_ =
      std::string_view(GetParam()).starts_with("rv") ? "1" : "";  // else initial events come first
  boost::asio::io_context context_;
  const std::shared_ptr<lookout::test::FakeClock> clock_ =
      std::make_shared<lookout::test::FakeClock>();
  int watches_ = 0;
  bool answered_all_ = false;
};

TEST_P(ReflectorReplayTest, ASplitBodyGivesTheSameStore) {
  const auto expect_same = [&](const Arrival& arrival) {
    const auto contents = replay([&](std::string_view, int) {
      answered_all_ = true;
      return arrival;
    });
    return contents == recording_.contents;
  };
  ASSERT_GT(recording_.contents.size(), 2u);
  ASSERT_TRUE(expect_same(Arrival::whole(recording_.body)));
  ASSERT_TRUE(expect_same(Arrival::byte_by_byte(recording_.body)));
  for (const std::size_t at : recording_.positions())
    ASSERT_TRUE(expect_same(Arrival::in_two(recording_.body, at))) << "cut at " << at;
}

TEST_P(ReflectorReplayTest, ABrokenBodyGivesTheSameStore) {
  auto positions = recording_.positions();
  positions.insert(0);
  for (const std::size_t at : positions) {
    const auto contents = replay([&](std::string_view resource_version, int n) {
      if (n == 0) return Arrival::whole(std::string_view(recording_.body).substr(0, at));
      answered_all_ = true;
      return Arrival::whole(recording_.from(resource_version));
    });
    ASSERT_EQ(contents, recording_.contents) << "broken at " << at;
  }
}

TEST_P(ReflectorReplayTest, RepeatedBreaksGiveTheSameStore) {
  const auto contents = replay([&](std::string_view resource_version, int n) {
    // Each connection lives long enough for an event or two, or for all that is left.
    const auto rest = recording_.from(resource_version);
    const std::size_t length = 4000 + static_cast<std::size_t>(n) * 1000;
    answered_all_ = rest.size() <= length;
    return Arrival::whole(rest.substr(0, length));
  });
  EXPECT_EQ(contents, recording_.contents);
  EXPECT_GT(watches_, 2);
}

INSTANTIATE_TEST_SUITE_P(, ReflectorReplayTest,
                         testing::Values("rv", "rv_selector", "rv_metadata", "from_zero",
                                         "initial_events"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lookout::cache

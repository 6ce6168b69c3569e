// Random schedules of changes and faults of a cluster, and the expected notifications of a handler.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

#include "lookout/api/status.h"
#include "tests/support/fake_source.h"

namespace lookout::test {

/// The seeds of a model test: the next `count` seeds in each process. The environment variable
/// LOOKOUT_SEED selects the first one, and LOOKOUT_SEEDS the number (one by default).
class Seeds {
 public:
  template <class Run>
  static void each(unsigned count, Run run) {
    static unsigned next = 1;
    if (const char* only = std::getenv("LOOKOUT_SEED")) {
      const char* many = std::getenv("LOOKOUT_SEEDS");
      next = static_cast<unsigned>(std::stoul(only));
      count = many == nullptr ? 1 : static_cast<unsigned>(std::stoul(many));
    }
    for (const unsigned end = next + count; next < end; ++next) {
      SCOPED_TRACE("to run it again: LOOKOUT_SEED=" + std::to_string(next));
      run(next);
      if (testing::Test::HasFailure()) return;
    }
  }
};

/// Makes random changes and faults in a source.
class Fate {
 public:
  explicit Fate(unsigned seed) : random_(seed) {
    random_.discard(10);  // neighbouring seeds start with similar numbers
  }

  std::size_t below(std::size_t n) { return random_() % n; }
  bool once_in(std::size_t n) { return below(n) == 0; }

  /// Makes one change or fault.
  void strike(FakeSource& source) {
    switch (below(18)) {
      case 0:
        return source.disconnect();
      case 1:
        return source.break_connections();
      case 2:
        return source.send_error(error());
      case 3:
        return source.bookmark();
      case 4:
        return source.forget();
      case 5:
        if (once_in(2)) return source.fail_list(error());
        return source.fail_list(transport_error());
      case 6:
        if (once_in(2)) return source.fail_watch(error());
        return source.fail_watch(transport_error());
      case 7:
        return source.repeat();
      case 8:
        if (once_in(2)) return source.pause();
        return source.resume();
      case 9:
        return source.stream_state(once_in(2));
      case 10:
        return source.deliver_at_once(once_in(2) ? 1 + below(3) : 1000);
      case 11:
      case 12:
      case 13:
        return source.remove(key());
      default:
        source.put(key(), {{}, "n" + std::to_string(below(3)), {}});
    }
  }

 private:
  std::string key() { return "ns" + std::to_string(below(2)) + "/" + std::to_string(below(12)); }
  api::StatusError error() {
    switch (below(5)) {
      case 0:
        return api::StatusError::too_many_requests("slow down", 1);
      case 1:
        return api::StatusError::internal_error("oops");
      case 2:
        return api::StatusError::gone("gone");
      case 3:
        return api::StatusError::too_large_resource_version(1000, 1, 1);
      default:
        return api::StatusError::expired("too old");
    }
  }
  rest::TransportError transport_error() {
    return {once_in(2) ? rest::TransportError::Kind::kRefused : rest::TransportError::Kind::kBroken,
            "no answer"};
  }

  std::minstd_rand random_;
};

/// The state that a handler has learned from its notifications. Checks that they are consistent: an
/// addition of an unknown object, an update that starts from the last state, a deletion of a known
/// object.
class Told {
 public:
  void add(const api::Object& object, bool initial = false) {
    EXPECT_TRUE(known_.emplace(object.key(), version(object)).second)
        << object.key() << " added twice";
    if (!initial) note(version(object));
  }
  void update(const api::Object& before, const api::Object& after) {
    const auto it = known_.find(after.key());
    ASSERT_NE(it, known_.end()) << after.key() << " updated, but not known";
    EXPECT_EQ(it->second, version(before)) << after.key() << " updated from another state";
    EXPECT_GE(version(after), it->second) << after.key() << " went back in time";
    it->second = version(after);
    if (version(before) != version(after)) note(version(after));
  }
  void remove(const api::Object& object) {
    EXPECT_EQ(known_.erase(object.key()), 1u) << object.key() << " deleted, but not known";
    note(version(object));
  }

  bool knows(const api::Object& object) const {
    const auto it = known_.find(object.key());
    return it != known_.end() && it->second == version(object);
  }
  std::size_t size() const { return known_.size(); }
  std::set<std::string> keys() const {
    std::set<std::string> out;
    for (const auto& [key, version] : known_) out.insert(key);
    return out;
  }
  /// True if all notifications arrived in the order of the changes, across objects, which a watch
  /// guarantees. (A list has no order.)
  bool in_order() const { return in_order_; }

 private:
  void note(std::uint64_t version) {
    in_order_ = in_order_ && version > newest_;
    newest_ = version;
  }

  static std::uint64_t version(const api::Object& object) {
    return std::stoull(std::string(object.resource_version()));
  }
  std::map<std::string, std::uint64_t> known_;
  std::uint64_t newest_ = 0;
  bool in_order_ = true;
};

}  // namespace lookout::test

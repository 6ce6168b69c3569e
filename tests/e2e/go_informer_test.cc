// client-go's informer with `lookout serve --storage etcd`, while members of a cluster of three
// etcds are killed or shut down. Needs the program of tests/interop/informer: scripts/go-interop.sh
// builds it, $LOOKOUT_GO_INFORMER names it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <unistd.h>

#include <atomic>
#include <boost/algorithm/string/join.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/cmd/program.h"
#include "tests/support/eventually.h"
#include "tests/support/go_program.h"

namespace lookout {
namespace {

using test::eventually;
using State = std::map<std::string, std::uint64_t>;

constexpr std::size_t kRound = 30;

std::uint64_t number_of(std::string_view text) {
  return text.empty() ? 0 : std::stoull(std::string(text));
}

/// Writes continuously to its own five pods through one server, and records acknowledged writes.
class Writer {
 public:
  Writer(const std::string& url, int id) : id_(id) {
    rest::Config config;
    config.server = url;
    client_.emplace(config);
    thread_ = std::thread([this] { run(); });
  }
  ~Writer() { stop(); }

  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  struct Written {
    std::set<std::uint64_t> acknowledged;
    /// The expected resourceVersions of its pods, without those whose last write failed; 0:
    /// deleted.
    State certain;
    std::string wrong;
  };
  Written written() const {
    const std::lock_guard lock(mutex_);
    return written_;
  }

 private:
  void run() {
    const auto pods = client_->resource(k8s::core::v1::Pod::kResource, "default");
    std::mt19937 random(static_cast<unsigned>(id_));
    for (int i = 0; !stop_; ++i) {
      const std::string name = fmt::format("w{}-{}", id_, random() % 5);
      try {
        write(pods, name, i, random() % 4 == 0);
      } catch (const Error&) {
        // The outcome is unknown: the write may have happened, or may still happen.
        const std::lock_guard lock(mutex_);
        written_.certain.erase("default/" + name);
      }
    }
  }

  void write(const rest::ResourceClient& pods, const std::string& name, int i, bool removes) {
    const std::uint64_t present = look(pods, name);
    {
      const std::lock_guard lock(mutex_);
      const auto known = written_.certain.find("default/" + name);
      if (known != written_.certain.end() && known->second != present)
        written_.wrong = fmt::format("{} was {} and is {}", name, known->second, present);
    }
    if (present == 0) {
      note(
          name,
          pods.create(api::Object::parse(fmt::format(
              R"({{"metadata":{{"name":"{}"}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}})",
              name))));
    } else if (removes) {
      rest::DeleteOptions now;
      now.grace_period_seconds = 0;
      pods.remove(name, now);
      const std::lock_guard lock(mutex_);
      written_.certain["default/" + name] = 0;
    } else {
      note(name, pods.patch(name, rest::PatchType::kMerge,
                            fmt::format(R"({{"metadata":{{"labels":{{"i":"{}"}}}}}})", i)));
    }
  }

  static std::uint64_t look(const rest::ResourceClient& pods, const std::string& name) {
    try {
      return number_of(pods.get(name).resource_version());
    } catch (const api::StatusError& e) {
      if (api::is_not_found(e)) return 0;
      throw;
    }
  }

  void note(const std::string& name, const api::Object& stored) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t version = number_of(stored.resource_version());
    written_.acknowledged.insert(version);
    written_.certain["default/" + name] = version;
  }

  const int id_;
  std::optional<rest::Client> client_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  Written written_;
  std::thread thread_;
};

/// A running informer in Go, observed by its output.
class GoInformer {
 public:
  GoInformer(const std::string& program, const std::string& url, bool watch_list)
      : watch_list_(watch_list), log_(environment_.home() / "log") {
    environment_.set("KUBE_FEATURE_WatchListClient", watch_list ? "true" : "false");
    process_.emplace(environment_.start(program, {"-server", url}, log_));
  }

  /// Reads its new output.
  void read() {
    std::ifstream in(log_);
    in.seekg(read_);
    for (std::string line; std::getline(in, line) && !in.eof();) {
      read_ = in.tellg();
      take(line);
    }
  }

  bool has_seen(std::uint64_t version) {
    read();
    return seen_ >= version;
  }
  const State& store() const { return store_; }
  const State& told() const { return told_; }
  const std::set<std::uint64_t>& versions() const { return versions_; }
  /// The number of initial states that it requested.
  int states() const { return lists_ + streams_; }
  bool asked_as_it_should() const { return (watch_list_ ? lists_ : streams_) == 0; }
  std::uint64_t first() const { return first_; }
  const std::string& wrong() const { return wrong_; }
  std::string log() const { return test::read_file(log_); }

 private:
  void take(const std::string& text) {
    rapidjson::Document line;
    line.Parse(text.c_str());
    if (!line.IsObject() || !line.HasMember("type")) return;  // log lines of client-go
    const std::string type = line["type"].GetString();
    if (type == "GET") {
      const std::string url = line["url"].GetString();
      if (url.find("sendInitialEvents=true") != std::string::npos) {
        ++streams_;
      } else if (url.find("watch=true") == std::string::npos) {
        ++lists_;
      }
    } else if (type == "STORE") {
      store_.clear();
      if (!line.HasMember("store")) return;
      for (const auto& [key, version] : line["store"].GetObject())
        store_[key.GetString()] = number_of(version.GetString());
    } else {
      notified(type, line);
    }
  }

  void notified(const std::string& type, const rapidjson::Document& line) {
    const std::string key = line["key"].GetString();
    const std::uint64_t version = number_of(line["rv"].GetString());
    const bool unknown = line.HasMember("unknown");
    const bool was_there = told_.contains(key);
    std::uint64_t& newest = newest_[key];
    if (version < newest)
      wrong_ = fmt::format("{} of {} went back from {} to {}", type, key, newest, version);
    newest = version;
    if ((type == "ADDED") == was_there) wrong_ = fmt::format("{} of {} does not fit", type, key);
    if (line.HasMember("before") && told_[key] != number_of(line["before"].GetString()))
      wrong_ = fmt::format("{} of {} comes from another state", type, key);
    if (type == "DELETED") {
      told_.erase(key);
    } else {
      told_[key] = version;
    }
    if (!unknown) {
      versions_.insert(version);
      seen_ = std::max(seen_, version);
      if (!line.HasMember("initial") && first_ == 0) first_ = version;
    }
  }

  const bool watch_list_;
  test::ProgramEnvironment environment_;
  const std::filesystem::path log_;
  std::optional<test::Process> process_;
  std::streampos read_ = 0;
  State store_;
  State told_;    // from its handler's notifications
  State newest_;  // with deleted pods
  std::set<std::uint64_t> versions_;
  std::uint64_t seen_ = 0;
  std::uint64_t first_ = 0;
  int lists_ = 0;
  int streams_ = 0;
  std::string wrong_;
};

class GoInformerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
    program_ = lookout::test::go_program("LOOKOUT_GO_INFORMER", "go-interop-informer");
    if (access(program_.c_str(), X_OK) != 0) {
      GTEST_SKIP() << "there is no Go program: scripts/go-interop.sh builds it";
    }
    cluster_.emplace(test::EtcdCluster::Options{.members = 3});
  }

  std::unique_ptr<test::ServeProcess> serve(std::size_t first_member,
                                            const std::string& listen = "127.0.0.1:0") {
    std::vector<std::string> endpoints = cluster_->endpoints();
    std::rotate(endpoints.begin(), endpoints.begin() + static_cast<std::ptrdiff_t>(first_member),
                endpoints.end());
    return std::make_unique<test::ServeProcess>(
        environment_,
        std::vector<std::string>{"--storage", "etcd", "--etcd-endpoints",
                                 boost::algorithm::join(endpoints, ",")},
        listen);
  }

  void write_through(const std::string& url) {
    for (int i = 0; i < 2; ++i) writers_.push_back(std::make_unique<Writer>(url, i));
  }
  void follow(const std::string& url) {
    for (const bool watch_list : {false, true})
      informers_.push_back(std::make_unique<GoInformer>(program_, url, watch_list));
  }

  /// Waits until there are new writes and all informers have received them.
  bool progress() {
    const auto written = [&] {
      std::size_t out = 0;
      for (const auto& writer : writers_) out += writer->written().acknowledged.size();
      return out;
    };
    const std::size_t before = written();
    if (!eventually([&] { return written() >= before + kRound; })) return false;
    std::uint64_t last = 0;
    for (const auto& writer : writers_)
      last = std::max(last, *writer->written().acknowledged.rbegin());
    return eventually([&] {
      return std::all_of(informers_.begin(), informers_.end(),
                         [&](const auto& informer) { return informer->has_seen(last); });
    });
  }

  State present(const std::string& url) const {
    rest::Config config;
    config.server = url;
    const rest::Client client(config);
    State out;
    for (const auto& pod : client.resource(k8s::core::v1::Pod::kResource, "").list().items)
      out[pod.key()] = number_of(pod.resource_version());
    return out;
  }

  /// `always_watching`: the informer requested the state once, so it must have received every
  /// event.
  void end_and_compare(const std::string& url, bool always_watching) {
    for (const auto& writer : writers_) writer->stop();
    const State state = present(url);
    EXPECT_FALSE(state.empty());
    std::set<std::uint64_t> acknowledged;
    for (const auto& writer : writers_) {
      Writer::Written written = writer->written();
      EXPECT_EQ(written.wrong, "");
      acknowledged.merge(written.acknowledged);
      for (const auto& [key, version] : written.certain) {
        const auto found = state.find(key);
        EXPECT_EQ(found == state.end() ? 0 : found->second, version) << key;
      }
    }
    for (const auto& informer : informers_) {
      EXPECT_TRUE(eventually([&] {
        informer->read();
        return informer->store() == state && informer->told() == state;
      })) << informer->log();
      EXPECT_EQ(informer->wrong(), "");
      EXPECT_TRUE(informer->asked_as_it_should()) << informer->log();
      if (!always_watching) continue;
      EXPECT_EQ(informer->states(), 1);
      std::size_t missed = 0;
      for (const std::uint64_t version : acknowledged) {
        if (version >= informer->first() && !informer->versions().contains(version)) ++missed;
      }
      EXPECT_EQ(missed, 0u) << "of " << acknowledged.size();
    }
    RecordProperty("acknowledged", static_cast<int>(acknowledged.size()));
  }

  void kill_one_after_the_other() {
    for (int round = 0; round < 6; ++round) {
      // The leader every other time; some members are shut down regularly.
      std::optional<std::size_t> member;
      ASSERT_TRUE(eventually([&] { return (member = cluster_->leader()).has_value(); }));
      if (round % 2 == 1) member = (*member + 1) % 3;
      if (round < 4) {
        cluster_->kill(*member);
      } else {
        cluster_->stop(*member);
      }
      ASSERT_TRUE(progress()) << "without member " << *member << " in round " << round;
      cluster_->restart(*member);
      ASSERT_TRUE(progress()) << "in round " << round;
    }
  }
  void kill_a_majority() {
    cluster_->kill(0);
    cluster_->kill(1);
    cluster_->restart(0);
    cluster_->restart(1);
    cluster_->wait_until_ready();
    ASSERT_TRUE(progress());
  }

  void follow_while_etcds_are_killed(const std::string& written, const std::string& watched) {
    write_through(written);
    follow(watched);
    ASSERT_TRUE(progress());
    kill_one_after_the_other();
    kill_a_majority();
    end_and_compare(watched, true);
  }

  std::string program_;
  std::optional<test::EtcdCluster> cluster_;
  test::ProgramEnvironment environment_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<std::unique_ptr<GoInformer>> informers_;
};

TEST_F(GoInformerTest, FollowsAServerWhileItsEtcdsAreKilled) {
  const auto server = serve(0);
  follow_while_etcds_are_killed(server->url(), server->url());
}

TEST_F(GoInformerTest, SeesWritesThroughAnotherServer) {
  const auto written = serve(0);
  const auto watched = serve(1);
  follow_while_etcds_are_killed(written->url(), watched->url());
  EXPECT_EQ(present(written->url()), present(watched->url()));
}

TEST_F(GoInformerTest, RecoversWhenItsServerAndMembersAreKilled) {
  const auto written = serve(0);
  auto watched = serve(1);
  const std::string url = watched->url();
  write_through(written->url());
  follow(url);
  ASSERT_TRUE(progress());
  for (std::size_t round = 0; round < 3; ++round) {
    cluster_->kill(round);
    watched.reset();
    watched = serve((round + 1) % 3, url.substr(std::string("http://").size()));
    ASSERT_TRUE(progress()) << "in round " << round;
    cluster_->restart(round);
    ASSERT_TRUE(progress()) << "in round " << round;
  }
  end_and_compare(url, false);
}

}  // namespace
}  // namespace lookout

// Two replicas of a controller program, while the leader is killed, frozen, cut off and stopped, and
// objects are created, changed and deleted: with `lookout serve` and with a real kube-apiserver.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/base/pinned.h"
#include "lookout/controller/finalizers.h"
#include "lookout/controller/owner_references.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/apiextensions/v1.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/coordination/v1.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "tests/cmd/program.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/e2e/website.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tcp_relay.h"
#include "tests/support/website_definition.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;
using k8s::apps::v1::Deployment;
using k8s::apps::v1::ReplicaSet;
using k8s::coordination::v1::Lease;
using k8s::core::v1::ConfigMap;
using std::chrono::steady_clock;
using test::eventually;
using test::Website;

constexpr std::chrono::milliseconds kLeaseTime = test::kSanitized ? 6s : 3s;
/// Candidates retry after a tenth of it, with jitter up to 1.2 times longer.
constexpr std::chrono::milliseconds kRetry = kLeaseTime / 10 * 22 / 10;
/// For a busy machine.
constexpr std::chrono::milliseconds kSlack = test::kSanitized ? 20s : 5s;

/// The pause between two polls of the server.
constexpr std::chrono::milliseconds kPause = 50ms;

constexpr std::size_t kBatches = 4;
constexpr std::size_t kSitesInBatch = test::kSanitized ? 25 : 125;
/// The number of sites that the user works on concurrently; each hand has a share of a batch.
constexpr std::size_t kHands = 5;
/// The workers of a replica: the number of reconciles that may be about to write.
constexpr int kWorkers = 4;

// ---------------------------------------------------------------------------------- the servers

class ApiServer {
 public:
  virtual ~ApiServer() = default;
  virtual rest::Config config() const = 0;
  virtual int port() const = 0;
  virtual bool collects_garbage() const = 0;
};

class ServeProgram : public ApiServer {
 public:
  rest::Config config() const override {
    rest::Config out;
    out.server = server_.url();
    return out;
  }
  int port() const override {
    const std::string& url = server_.url();
    return std::stoi(url.substr(url.rfind(':') + 1));
  }
  bool collects_garbage() const override { return true; }

 private:
  const test::ProgramEnvironment environment_;
  const test::ServeProcess server_{environment_};
};

class RealServer : public ApiServer {
 public:
  explicit RealServer(const std::filesystem::path& program) : server_(program) {}
  rest::Config config() const override { return server_.config(); }
  int port() const override { return server_.port(); }
  /// kube-controller-manager does that.
  bool collects_garbage() const override { return false; }

 private:
  test::KubeApiserver server_;
};

/// Built with Go 1.18 or later, 1.20 crashes when it writes custom resources (modern-go/reflect2
/// before 1.0.2). Newer servers have this API; a 1.20 built from Debian's sources does not report
/// its version.
bool takes_custom_resources(const rest::Client& client) {
  try {
    return !client.get_raw("/apis/flowcontrol.apiserver.k8s.io/v1").empty();
  } catch (const api::StatusError& e) {
    if (!api::is_not_found(e)) throw;
    return false;
  }
}

// ------------------------------------------------------------------------------------- replicas

/// A replica and its connection; restarted whenever it has ended, as by a kubelet.
class Replica {
 public:
  Replica(const ApiServer& server, std::string name, std::string kind)
      : server_(server), relay_(server.port()), name_(std::move(name)), kind_(std::move(kind)) {
    start();
  }

  void start() {
    rest::Config config = server_.config();
    const std::string scheme = config.server.substr(0, config.server.find(':'));
    identity_ = fmt::format("{}-{}", name_, ++starts_);
    log_ = dir_ / identity_;
    process_.emplace(
        std::vector<std::string>{LOOKOUT_WEBSITE_CONTROLLER,
                                 fmt::format("{}://127.0.0.1:{}", scheme, relay_.port()),
                                 config.ca_file, config.bearer_token, identity_,
                                 std::to_string(kLeaseTime.count()), kind_},
        log_);
  }
  /// The exit status, once it has ended.
  std::optional<int> ended() {
    if (process_->running()) return std::nullopt;
    return process_->wait();
  }
  /// Restarts it if it has ended, for example after losing the lease.
  void tend() {
    const auto status = ended();
    if (!status) return;
    if (*status != test::kLostLease) ADD_FAILURE() << identity_ << " ended: " << *status << log();
    start();
  }

  const std::string& identity() const { return identity_; }
  std::string log() const { return test::read_file(log_); }
  test::Process& process() { return *process_; }
  test::TcpRelay& relay() { return relay_; }

 private:
  const ApiServer& server_;
  const test::TempDir dir_;
  test::TcpRelay relay_;
  const std::string name_;
  const std::string kind_;
  int starts_ = 0;
  std::string identity_;
  std::filesystem::path log_;
  std::optional<test::Process> process_;
};

// -------------------------------------------------------------------------------------- witness

std::uint64_t number_of(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

struct Write {
  std::uint64_t version = 0;
  std::string identity;
  std::int64_t token = 0;
  std::string object;
};

/// Observes the controllers' writes, and the holders of the lease.
class Witness : public base::Pinned {
 public:
  explicit Witness(const rest::Client& client) : factory_(client) {
    follow<Deployment>();
    follow<ConfigMap>();
    informer::EventHandler<Lease> handler;
    handler.name = "witness";
    handler.on_add = [this](const Lease& lease) { held_by(lease); };
    handler.on_update = [this](const Lease&, const Lease& lease) { held_by(lease); };
    factory_.informer<Lease>().add_handler(std::move(handler)).release();
    factory_.start();
    if (!factory_.wait_for_cache_sync(stop_.get_token()))
      throw std::runtime_error("the witness has no caches");
  }
  ~Witness() { factory_.shutdown(); }

  std::vector<Write> writes() const {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return writes_.size();
  }
  bool has_written(const std::function<bool(const std::string& identity)>& who,
                   std::size_t since) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(writes_.begin() + static_cast<std::ptrdiff_t>(since), writes_.end(),
                       [&](const Write& write) { return who(write.identity); });
  }
  /// The holder of the lease; empty if there is none.
  std::string leader() const {
    const std::lock_guard lock(mutex_);
    return holders_.empty() ? "" : holders_.back();
  }
  /// All holders in order; empty after a release.
  std::vector<std::string> holders() const {
    const std::lock_guard lock(mutex_);
    return holders_;
  }

 private:
  template <class T>
  void follow() {
    informer::EventHandler<T> handler;
    handler.name = "witness";
    handler.on_add = [this](const T& object) { written(object, ""); };
    handler.on_update = [this](const T& before, const T& after) {
      written(after, before.annotations()[test::kWriter].as_string());
    };
    factory_.informer<T>().add_handler(std::move(handler)).release();
  }

  void written(const api::Object& object, std::string_view before) {
    const std::string_view stamp = object.annotations()[test::kWriter].as_string();
    if (stamp.empty() || stamp == before) return;  // not by a controller
    const std::size_t end = stamp.find(' ');
    Write write;
    write.version = number_of(object.resource_version());
    write.identity = stamp.substr(0, end);
    write.token = static_cast<std::int64_t>(number_of(stamp.substr(end + 1)));
    write.object = fmt::format("{} {}", object.kind(), object.key());
    const std::lock_guard lock(mutex_);
    writes_.push_back(std::move(write));
  }

  void held_by(const Lease& lease) {
    if (lease.name() != test::kLease) return;
    const std::string_view holder = lease.spec().holder_identity();
    const std::lock_guard lock(mutex_);
    if (holders_.empty() || holders_.back() != holder) holders_.emplace_back(holder);
  }

  const std::stop_source stop_;
  informer::SharedInformerFactory factory_;
  mutable std::mutex mutex_;
  std::vector<Write> writes_;
  std::vector<std::string> holders_;
};

// ----------------------------------------------------------------------------------------- user

template <class Site>
std::string site_json(const std::string& name, const std::string& image, int replicas) {
  if constexpr (std::is_same_v<Site, Website>) {
    return fmt::format(
        R"({{"apiVersion":"example.com/v1","kind":"Website","metadata":{{"name":"{}"}},)"
        R"("spec":{{"image":"{}","replicas":{}}}}})",
        name, image, replicas);
  }
  return fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{{"name":"{0}"}},)"
      R"("spec":{{"replicas":{2},"selector":{{"matchLabels":{{"site":"{0}"}}}},)"
      R"("template":{{"metadata":{{"labels":{{"site":"{0}"}}}},"spec":{{"containers":[)"
      R"({{"name":"web","image":"{1}"}}]}}}}}}}})",
      name, image, replicas);
}

api::Object definition() {
  return test::website_definition(R"([{
      "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
      "schema": {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
          "image": {"type": "string"}, "replicas": {"type": "integer"}}},
        "status": {"type": "object", "properties": {
          "observedGeneration": {"type": "integer"}, "replicas": {"type": "integer"}}}}}}}])");
}

struct Want {
  std::string image;
  int replicas = 1;
};
using Wants = std::map<std::string, Want>;

/// Creates, changes and deletes its own sites.
template <class Site>
class Hand {
 public:
  Hand(const rest::Client& client, unsigned number)
      : sites_(client.resource<Site>("default")), number_(number), random_(number) {}

  void work(std::size_t batch) {
    const std::vector<std::string> again = std::exchange(deleted_, {});
    for (std::size_t i = 0; i < kSitesInBatch / kHands; ++i) {
      make(fmt::format("site-{}-{}-{:03}", number_, batch, i));
      if (i % 2 == 0) change(any());
      if (i % 4 == 0) remove(any());
      // Another object under the same name. The name is in use until the finalizer of the previous
      // object is removed, so this happens a batch later.
      if (const std::size_t at = i / 8; i % 8 == 0 && at < again.size()) make_again(again[at]);
    }
  }
  void remove_all() {
    while (!want_.empty()) remove(want_.begin()->first);
  }
  const Wants& want() const { return want_; }

 private:
  void make(const std::string& name) {
    const Want want{fmt::format("image:{}", random_() % 100), static_cast<int>(random_() % 5)};
    sites_.create(api::Object::parse(site_json<Site>(name, want.image, want.replicas)));
    want_[name] = want;
  }
  void make_again(const std::string& name) {
    const auto gone = [&] {
      if (!sites_.find(name)) return true;
      std::this_thread::sleep_for(kPause);
      return false;
    };
    if (!eventually(gone)) throw std::runtime_error(name + " does not go");
    make(name);
  }
  void change(const std::string& name) {
    Want& want = want_.at(name);
    want.replicas = static_cast<int>(random_() % 5);
    sites_.patch(name, rest::PatchType::kMerge,
                 fmt::format(R"({{"spec":{{"replicas":{}}}}})", want.replicas));
  }
  void remove(const std::string& name) {
    sites_.remove(name);
    deleted_.push_back(name);
    want_.erase(name);
  }
  std::string any() {
    auto at = want_.begin();
    std::advance(at, random_() % want_.size());
    return at->first;
  }

  const rest::TypedClient<Site> sites_;
  const unsigned number_;
  std::mt19937 random_;
  Wants want_;
  std::vector<std::string> deleted_;
};

/// Works with several hands concurrently, and knows the expected result.
template <class Site>
class User {
 public:
  explicit User(const rest::Client& client) {
    for (unsigned i = 0; i < kHands; ++i) hands_.emplace_back(client, i);
  }

  /// Runs concurrently with the test, which may call want() only afterwards.
  void work(std::size_t batch) {
    with_all([batch](Hand<Site>& hand) { hand.work(batch); });
  }
  void remove_all() {
    with_all([](Hand<Site>& hand) { hand.remove_all(); });
  }
  Wants want() const {
    Wants out;
    for (const auto& hand : hands_) out.insert(hand.want().begin(), hand.want().end());
    return out;
  }

 private:
  void with_all(const std::function<void(Hand<Site>&)>& task) {
    std::vector<std::future<void>> tasks;
    for (auto& hand : hands_)
      tasks.push_back(std::async(std::launch::async, [&task, &hand] { task(hand); }));
    for (auto& each : tasks) each.get();
  }

  std::vector<Hand<Site>> hands_;
};

// ---------------------------------------------------------------------------------------- tests

/// A scenario for one server and one kind of sites.
template <class Site>
class Scenario {
 public:
  explicit Scenario(const ApiServer& server)
      : server_(server), client_(server.config()), witness_(client_), user_(client_) {
    const std::string kind = std::is_same_v<Site, Website> ? "websites" : "replicasets";
    replicas_.push_back(std::make_unique<Replica>(server, "a", kind));
    replicas_.push_back(std::make_unique<Replica>(server, "b", kind));
  }

  void run() {
    ASSERT_TRUE(tended([&] { return leading() != nullptr; })) << "nobody leads";

    during_a_batch("kill -9", [&](Replica& leader) {
      leader.process().signal(SIGKILL);
      const auto took = failover_from(leader);
      EXPECT_LE(took, kLeaseTime + kRetry + kSlack);
      leader.start();
    });
    during_a_batch("SIGSTOP", [&](Replica& leader) {
      leader.process().signal(SIGSTOP);
      frozen_ = leader.identity();
      const auto took = failover_from(leader);
      EXPECT_LE(took, kLeaseTime + kRetry + kSlack);
      leader.process().signal(SIGCONT);
      // The replica notices that it has lost the lease, and ends. Tokens show whether it wrote
      // before.
      EXPECT_TRUE(eventually([&] { return leader.ended().has_value(); }, 30s));
      EXPECT_EQ(leader.ended(), test::kLostLease) << leader.log();
      leader.start();
    });
    during_a_batch("a cut", [&](Replica& leader) {
      leader.relay().cut();
      const auto took = failover_from(leader);
      EXPECT_LE(took, kLeaseTime + kRetry + kSlack);
      EXPECT_TRUE(eventually([&] { return leader.ended().has_value(); }, 30s));
      EXPECT_EQ(leader.ended(), test::kLostLease) << leader.log();
      leader.relay().mend();
      leader.start();
    });
    during_a_batch("SIGTERM", [&](Replica& leader) {
      const std::string before = leader.identity();
      leader.process().signal(SIGTERM);
      EXPECT_EQ(leader.ended(), 0) << leader.log();
      const auto took = failover_from(leader);
      // The standby does not have to wait until the lease expires.
      if (!test::kSanitized) {
        EXPECT_LT(took, kLeaseTime);
      }
      const auto holders = witness_.holders();
      const auto at = std::find(holders.begin(), holders.end(), before);
      ASSERT_LT(at + 1, holders.end());
      EXPECT_EQ(at[1], "") << "the lease was not released";
      leader.start();
    });

    EXPECT_TRUE(settled()) << difference() << logs();
    // There are no further writes in the desired state.
    const std::size_t writes = witness_.count();
    EXPECT_FALSE(eventually([&] { return witness_.count() != writes; }, 1s));
    expect_one_writer_at_a_time();

    user_.remove_all();
    EXPECT_TRUE(settled()) << difference() << logs();
    for (const auto& replica : replicas_) {
      replica->process().signal(SIGTERM);
      EXPECT_EQ(replica->ended(), 0) << replica->log();
    }
  }

 private:
  /// Disturbs the leader while the user works.
  void during_a_batch(const char* what, const std::function<void(Replica&)>& fault) {
    SCOPED_TRACE(what);
    const std::size_t written = witness_.count();
    auto work = std::async(std::launch::async, [&] { user_.work(batch_); });
    EXPECT_TRUE(tended([&] { return witness_.count() >= written + kSitesInBatch / 4; }));
    EXPECT_TRUE(tended([&] { return leading() != nullptr; }));
    if (Replica* const leader = leading()) fault(*leader);
    EXPECT_TRUE(tended([&] { return work.wait_for(0s) == std::future_status::ready; }, 120s));
    test::get(work);
    ++batch_;
  }

  /// Waits, and restarts replicas that have ended.
  template <class Condition>
  bool tended(Condition condition, std::chrono::seconds time = 60s) {
    return eventually(
        [&] {
          for (const auto& replica : replicas_) replica->tend();
          return condition();
        },
        time);
  }

  /// Waits for the expected state. A check lists all objects, which costs the server as much as
  /// many writes; so this checks rarely, and only while the controllers write nothing.
  bool settled() {
    std::size_t seen = 0;
    return tended([&] {
      std::this_thread::sleep_for(4 * kPause);
      const std::size_t written = witness_.count();
      if (std::exchange(seen, written) != written) return false;
      if (!server_.collects_garbage()) collect_garbage();
      return difference().empty();
    });
  }

  /// kube-apiserver deletes an object to which a finalizer is added at the same moment, so the
  /// controller's objects may be owned by a deleted site; so may those of a leader that was killed
  /// with a request in flight. Such garbage blocks the next site of that name until it is
  /// collected.
  void collect_garbage() {
    collect_garbage_of<ConfigMap>();
    collect_garbage_of<Deployment>();
    EXPECT_LE(garbage_, kBatches * kSitesInBatch / 10) << "more than races and faults can leave";
  }
  template <class T>
  void collect_garbage_of() {
    // Owners are listed after their dependents, so missing owners have been deleted.
    const auto children = client_.resource<T>("default").list();
    const auto sites = client_.resource<Site>("default").list();
    std::set<std::string> uids;
    for (const Site& site : sites.items) uids.emplace(site.uid());
    for (const T& child : children.items) {
      const auto owner = controller::controller_of(child);
      if (!owner || uids.contains(std::string(owner->uid()))) continue;
      rest::DeleteOptions options;
      options.precondition_uid = child.uid();
      try {
        client_.resource<T>("default").remove(std::string(child.name()), options);
      } catch (const api::StatusError& e) {
        // The controller deleted it first, and its site was deleted after the children were listed.
        if (!api::is_not_found(e)) throw;
        continue;
      }
      fmt::print("garbage: {} {} by {}\n", child.kind(), child.name(),
                 child.annotations()[test::kWriter].as_string());
      ++garbage_;
    }
  }

  Replica* leading() {
    const std::string holder = witness_.leader();
    for (const auto& replica : replicas_) {
      if (replica->identity() == holder) return replica.get();
    }
    return nullptr;
  }

  /// The time until another replica than this one has written. The user continues, so there are
  /// always writes to make.
  std::chrono::milliseconds failover_from(const Replica& leader) {
    const auto begin = steady_clock::now();
    const std::size_t since = witness_.count();
    const auto another = [&](const std::string& identity) { return identity != leader.identity(); };
    EXPECT_TRUE(eventually([&] { return witness_.has_written(another, since); }));
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin);
    fmt::print("{}: another one writes after {} ms\n", leader.identity(), took.count());
    return took;
  }

  /// A former leader does not write after a later leader has started to write. Only requests in
  /// flight when the leader was frozen may arrive late, one per worker: only the fencing token
  /// could reject them.
  void expect_one_writer_at_a_time() const {
    auto writes = witness_.writes();
    std::sort(writes.begin(), writes.end(),
              [](const Write& a, const Write& b) { return a.version < b.version; });
    std::map<std::int64_t, std::string> leaders;
    std::int64_t newest = -1;
    int under_way = kWorkers;
    for (const Write& write : writes) {
      if (write.identity == frozen_ && write.token < newest && under_way-- > 0) continue;
      EXPECT_GE(write.token, newest)
          << write.identity << " wrote " << write.object << " in version " << write.version;
      newest = std::max(newest, write.token);
      EXPECT_EQ(leaders.emplace(write.token, write.identity).first->second, write.identity);
    }
    EXPECT_GE(leaders.size(), kBatches + 1);
    fmt::print("{} writes by {} leaders\n", writes.size(), leaders.size());
  }

  /// The ends of the replicas' logs.
  std::string logs() const {
    constexpr std::size_t kEnough = 4000;
    std::string out;
    for (const auto& replica : replicas_) {
      std::string log = replica->log();
      if (log.size() > kEnough) log.erase(0, log.size() - kEnough);
      out += fmt::format("\n--- {}:\n{}", replica->identity(), log);
    }
    return out;
  }

  /// The first difference from the expected state; empty if there is none.
  std::string difference() const {
    const Wants wanted = user_.want();
    std::map<std::string, Site> sites;
    const auto listed = client_.resource<Site>("default").list();
    for (const Site& site : listed.items) {
      const auto want = wanted.find(std::string(site.name()));
      if (want == wanted.end()) return fmt::format("{} is left", site.name());
      if (controller::is_being_deleted(site)) return fmt::format("{} stays", site.name());
      if (site.metadata().finalizers().size() != 1 ||
          !controller::has_finalizer(site, test::kFinalizer))
        return fmt::format("{} has not one finalizer", site.name());
      const auto status = site["status"];
      if (status["replicas"].as_int(-1) != want->second.replicas ||
          status["observedGeneration"].as_int() != site.metadata().generation())
        return fmt::format("the status of {} is old", site.name());
      sites.emplace(site.name(), site);
    }
    if (sites.size() != wanted.size())
      return fmt::format("{} sites of {}", sites.size(), wanted.size());

    std::size_t pages = 0;
    const auto maps = client_.resource<ConfigMap>("default").list();
    for (const ConfigMap& page : maps.items) {
      if (page.annotations()[test::kWriter].as_string().empty())
        continue;  // a real server has other ConfigMaps
      ++pages;
      if (auto wrong = wrong_with(sites, page); !wrong.empty()) return wrong;
      const auto& want = wanted.at(std::string(page.name()));
      if (page.data()["page"] != fmt::format("{} x{}", want.image, want.replicas))
        return fmt::format("page {} is old", page.name());
    }
    std::size_t deployments = 0;
    const auto webs = client_.resource<Deployment>("default").list();
    for (const Deployment& web : webs.items) {
      ++deployments;
      if (auto wrong = wrong_with(sites, web); !wrong.empty()) return wrong;
      const auto& want = wanted.at(std::string(web.name()));
      if (web.spec().replicas() != want.replicas ||
          web["spec"]["template"]["spec"]["containers"][0]["image"].as_string() != want.image)
        return fmt::format("deployment {} is old", web.name());
    }
    if (pages != sites.size() || deployments != sites.size()) {
      return fmt::format("{} sites, {} pages, {} deployments", sites.size(), pages, deployments);
    }
    return "";
  }

  static std::string wrong_with(const std::map<std::string, Site>& sites,
                                const api::Object& child) {
    const auto site = sites.find(std::string(child.name()));
    if (site == sites.end()) return fmt::format("{} {} is an orphan", child.kind(), child.name());
    const auto owner = controller::controller_of(child);
    if (!owner || owner->uid() != site->second.uid() ||
        child.metadata().owner_references().size() != 1)
      return fmt::format("{} {} belongs to another site", child.kind(), child.name());
    return "";
  }

  const ApiServer& server_;
  const rest::Client client_;
  Witness witness_;
  User<Site> user_;
  std::size_t garbage_ = 0;
  std::size_t batch_ = 0;
  std::string frozen_;  // the replica stopped by SIGSTOP
  std::vector<std::unique_ptr<Replica>> replicas_;
};

TEST(ControllerReplicas, ActAsOneControllerDuringFaultsOfTheLeader) {
  const ServeProgram server;
  const rest::Client client{server.config()};
  client.resource<k8s::apiextensions::v1::CustomResourceDefinition>().create(definition());
  Scenario<Website>(server).run();
}

TEST(ControllerReplicas, ActAsOneControllerOnARealServer) {
  const auto program = test::KubeApiserver::find_program();
  if (!program) GTEST_SKIP() << "*** no kube-apiserver or no etcd ***";
  const RealServer server(*program);
  const rest::Client client{server.config()};
  if (!takes_custom_resources(client)) return Scenario<ReplicaSet>(server).run();
  client.resource<k8s::apiextensions::v1::CustomResourceDefinition>().create(definition());
  ASSERT_TRUE(eventually([&] {
    try {
      return client.resource<Website>("default").list().items.empty();
    } catch (const api::StatusError&) {
      return false;  // the definition is not served yet
    }
  }));
  Scenario<Website>(server).run();
}

}  // namespace
}  // namespace lookout

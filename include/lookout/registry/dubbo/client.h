// Keys and values on pods, in the manner of dubbo-go.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/registry/dubbo/record.h"
#include "lookout/registry/options.h"
#include "lookout/registry/pod_identity.h"
#include "lookout/registry/registry.h"
#include "lookout/rest/client.h"

/// The wire format of dubbo-go's remoting/kubernetes: programs with either see each other's
/// records.
namespace lookout::registry::dubbo {

/// The role of dubbo-go in a pod. Both roles read and write records.
enum class Role { kConsumer, kProvider };

/// The generations of dubbo-go, which label pods differently. A program of one generation finds only
/// pods with its own labels; Lookout finds all of them.
enum class Generation {
  kDetect,   ///< that of the other pods in the namespace; kDubbo15 if there are none or both
  kDubbo14,  ///< up to 1.4: common_label_value for every role
  kDubbo15,  ///< from 1.5 on, 3.x included: a value for each role
};

struct ClientOptions {
  Role role = Role::kConsumer;
  /// Decides on the label of this pod. kDetect lists pods; a client that must not labels as kDubbo15.
  Generation generation = Generation::kDetect;
  /// Only looks: it needs no pod, labels none and writes nothing (create() throws InvalidArgument);
  /// it looks in `namespaces`, which may be {kAllNamespaces}, else in the client's default one.
  bool observer = false;
  /// The pod that this is; what is empty is found (PodIdentity::find), with the client's default
  /// namespace as the last resort.
  LOOKOUT_OPTION PodIdentity pod = {};
  LOOKOUT_OPTION PodIdentitySources pod_sources = {};
  /// Where to look. Empty: the namespaces in $DUBBO_NAMESPACE, separated by commas. The pod's own
  /// is always among them.
  LOOKOUT_OPTION std::vector<std::string> namespaces = {};

  /// Pods with one of these values of this label take part.
  LOOKOUT_OPTION std::string label = "dubbo.io/label";
  LOOKOUT_OPTION std::string consumer_label_value = "dubbo.io.consumer";
  LOOKOUT_OPTION std::string provider_label_value = "dubbo.io.provider";
  LOOKOUT_OPTION std::string common_label_value = "dubbo.io-value";
  /// Where the records are.
  LOOKOUT_OPTION std::string annotation = "dubbo.io/annotation";

  /// Told once of every version of an annotation that cannot be read, or not in full, for
  /// each of its defects; otherwise as Options::on_malformed.
  LOOKOUT_OPTION std::function<void(const Malformed&)> on_malformed = {};
  /// As Options::on_error.
  LOOKOUT_OPTION std::function<void(const WatchFailure&)> on_error = {};
  /// How long the first look waits for the first data.
  std::chrono::milliseconds sync_timeout{30'000};
  /// How many events may wait for a watcher. Beyond that, events of one key become one.
  std::size_t max_pending = 10'000;
  /// When the server has not been heard for so long, the client ends: valid() is false, done() is
  /// stopped, and validate_client() makes a new one. 0: it goes on trying, with what it has.
  std::chrono::milliseconds give_up_after{0};
  informer::HandlerPoolOptions handlers = kCallbackThreads;
  BackoffOptions backoff = {};
};

enum class EventType { kCreate, kUpdate, kDelete };

/// "CREATE", "UPDATE", "DELETE".
const char* to_string(EventType type);

/// A key has come, has another value, or has gone.
struct Event {
  EventType type = EventType::kCreate;
  std::string key = {};
  /// The value; for a deletion, the last one.
  std::string value = {};
  /// The pod that brought it, "namespace/name".
  std::string pod = {};
};

/// The next event, or why there is none.
class NextEvent {
 public:
  NextEvent() : outcome_(NextOutcome::kStopped) {}
  explicit NextEvent(Event event) : event_(std::move(event)) {}
  explicit NextEvent(NextOutcome outcome) : outcome_(outcome) {}

  /// kInstances stands for an event.
  NextOutcome outcome() const { return outcome_; }
  explicit operator bool() const { return event_.has_value(); }
  const Event& operator*() const { return *event_; }
  const Event* operator->() const { return &*event_; }

 private:
  NextOutcome outcome_ = NextOutcome::kInstances;
  std::optional<Event> event_;
};

namespace detail {
class EventQueue;
class ClientState;
}  // namespace detail

/// Follows a key, or all keys with a prefix. Events come in the order in which they happened, for
/// each pod and for each key. A watcher that does not read keeps nobody waiting: when more than
/// max_pending events wait, those of one key become one that says the same.
///
/// Letting go of it stops it. next() and async_next() are for one caller at a time.
class EventWatcher {
 public:
  EventWatcher(std::shared_ptr<detail::ClientState> client,
               std::shared_ptr<detail::EventQueue> queue);
  EventWatcher(EventWatcher&&) noexcept = default;
  EventWatcher& operator=(EventWatcher&& other) noexcept;
  ~EventWatcher();

  /// Blocks until there is an event. Throws InvalidArgument on the event loop.
  NextEvent next(std::stop_token stop = {}, Deadline deadline = kNoDeadline);
  NextEvent next_for(std::chrono::milliseconds time, std::stop_token stop = {}) {
    return next(std::move(stop), std::chrono::steady_clock::now() + time);
  }
  Awaitable<NextEvent> async_next(std::stop_token stop, Deadline deadline);
  Awaitable<NextEvent> async_next(std::stop_token stop) {
    return async_next(std::move(stop), kNoDeadline);
  }
  Awaitable<NextEvent> async_next() { return async_next(std::stop_token()); }

  /// How many events wait.
  std::size_t pending() const;
  void stop();

 private:
  std::shared_ptr<detail::ClientState> client_;
  std::shared_ptr<detail::EventQueue> queue_;
};

/// Whether a watcher first gets the existing records, as creations. (Records that this client does
/// not know yet, because the first data has not come in, go to every watcher when they come.)
enum class Begin { kWithChanges, kWithWhatIsThere };

/// Records of all pods that take part, by key; and the means to put some on this pod.
///
/// A key is there as long as some pod has it. Where pods disagree about a value, the one that came
/// last counts.
///
/// Safe to use from any thread. Functions that ask the server must not be called on the event loop.
class Client {
 public:
  /// Reads this pod and gives it the label of its role. A pod that has the label already keeps it,
  /// whatever its value: that is how dubbo-go does it. Throws Error if it is not known which pod
  /// this is, and what rest::Client throws.
  ///
  /// A consumer begins to watch pods at once, a provider when it is first asked for records.
  explicit Client(rest::Client client, ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Puts a record on this pod: one patch, refused by the server if the pod has changed since it
  /// was read, and then tried again after a pause that grows. The same record again changes nothing; another value for the
  /// key takes the place of the first. Watchers of this client get the event before it returns.
  void create(const std::string& key, const std::string& value, rest::CallOptions call = {});
  /// Takes the records of a key off this pod.
  void remove(const std::string& key, rest::CallOptions call = {});
  void set_label(const std::string& label, const std::string& value, rest::CallOptions call = {});

  /// All records whose keys begin so, in the order of the keys. Waits for the first data: throws
  /// NotSynced. Throws InvalidArgument if the client is closed, as all below.
  std::vector<Record> get_children(const std::string& prefix, const WaitOptions& wait = {});
  std::optional<std::string> get(const std::string& key, const WaitOptions& wait = {});

  EventWatcher watch(const std::string& key, Begin begin = Begin::kWithChanges);
  EventWatcher watch_with_prefix(const std::string& prefix, Begin begin = Begin::kWithChanges);

  /// False when it has been closed, or has given up.
  bool valid() const;
  /// Stopped when it is no longer valid.
  std::stop_token done() const;
  /// Ends all watchers, and waits for user code as Discovery::close() does.
  void close();

  Freshness freshness() const;
  /// The namespaces that are not followed at present, with the last failure of each.
  std::vector<WatchFailure> failures() const;
  const PodIdentity& pod() const;

 private:
  std::shared_ptr<detail::ClientState> state_;
};

/// Puts a new client in the place of one that is not there or no longer valid; true if it did.
/// Throws what `make` throws.
bool validate_client(std::shared_ptr<Client>& client,
                     const std::function<std::shared_ptr<Client>()>& make);

}  // namespace lookout::registry::dubbo

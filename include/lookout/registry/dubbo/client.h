// Client: keys and values on pods, in the style of dubbo-go.
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

/// The wire format of dubbo-go's remoting/kubernetes: programs with either library see each other's
/// records.
namespace lookout::registry::dubbo {

/// The role of dubbo-go in a pod. Both roles read and write records.
enum class Role { kConsumer, kProvider };

/// The generations of dubbo-go, which label pods differently. A program of one generation finds
/// only pods with its own labels; Lookout finds both.
enum class Generation {
  kDetect,   ///< that of the other pods in the namespace; kDubbo15 if there are none or both
  kDubbo14,  ///< up to 1.4: common_label_value for every role
  kDubbo15,  ///< since 1.5, including 3.x: a value for each role
};

struct ClientOptions {
  Role role = Role::kConsumer;
  /// Selects the label of this pod. kDetect lists pods; if the client may not, it labels as
  /// kDubbo15.
  Generation generation = Generation::kDetect;
  /// False: sets no label. Clients find the pod's records only if it already has one.
  bool label_pod = true;
  /// Only reads: needs no pod, sets no label and writes nothing (create() throws InvalidArgument).
  /// It looks in `namespaces`, which may be {kAllNamespaces}, or else in the client's default
  /// namespace.
  bool observer = false;
  /// The pod that the program runs in. Empty fields are filled in by PodIdentity::find(), with the
  /// client's default namespace as the last resort.
  LOOKOUT_OPTION PodIdentity pod = {};
  LOOKOUT_OPTION PodIdentitySources pod_sources = {};
  /// The namespaces to look in. Empty: those in $DUBBO_NAMESPACE, separated by commas. The pod's
  /// own namespace is always included.
  LOOKOUT_OPTION std::vector<std::string> namespaces = {};

  /// Pods whose label has one of these values participate.
  LOOKOUT_OPTION std::string label = "dubbo.io/label";
  LOOKOUT_OPTION std::string consumer_label_value = "dubbo.io.consumer";
  LOOKOUT_OPTION std::string provider_label_value = "dubbo.io.provider";
  LOOKOUT_OPTION std::string common_label_value = "dubbo.io-value";
  /// The annotation that holds the records.
  LOOKOUT_OPTION std::string annotation = "dubbo.io/annotation";

  /// Called once for each defect of each version of an annotation that is not completely readable;
  /// otherwise like Options::on_malformed.
  LOOKOUT_OPTION std::function<void(const Malformed&)> on_malformed = {};
  /// Like Options::on_error.
  LOOKOUT_OPTION std::function<void(const WatchFailure&)> on_error = {};
  /// How long the first read waits for the first data.
  std::chrono::milliseconds sync_timeout{30'000};
  /// The number of events that may wait for a watcher. Beyond that, events of one key are
  /// coalesced.
  std::size_t max_pending = 10'000;
  /// If the server has been silent for this long, the client closes itself: valid() is false,
  /// done() is stopped, and validate_client() creates a new one. 0: it keeps retrying, with the data
  /// that it has. A provider that has read nothing yet does not listen to the server, and stays
  /// valid.
  std::chrono::milliseconds give_up_after{0};
  informer::HandlerPoolOptions handlers = kCallbackThreads;
  BackoffOptions backoff = {};
};

enum class EventType { kCreate, kUpdate, kDelete };

/// "CREATE", "UPDATE", "DELETE".
const char* to_string(EventType type);

/// A key was added, changed its value, or was removed.
struct Event {
  EventType type = EventType::kCreate;
  std::string key = {};
  /// The value; for a deletion, the last one.
  std::string value = {};
  /// The pod that caused the event, "namespace/name".
  std::string pod = {};
};

/// The next event, or the reason why there is none.
class NextEvent {
 public:
  NextEvent() : outcome_(NextOutcome::kStopped) {}
  explicit NextEvent(Event event) : event_(std::move(event)) {}
  explicit NextEvent(NextOutcome outcome) : outcome_(outcome) {}

  /// kInstances means that there is an event.
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

/// Follows a key, or all keys with a prefix. Events arrive in order for each pod and for each key.
/// A watcher that does not read blocks nothing: when more than max_pending events wait, those of
/// one key are coalesced.
///
/// The destructor stops the watcher. next() and async_next() are for one caller at a time.
class EventWatcher {
 public:
  EventWatcher(std::shared_ptr<detail::ClientState> client,
               std::shared_ptr<detail::EventQueue> queue);
  EventWatcher(EventWatcher&&) noexcept = default;
  EventWatcher& operator=(EventWatcher&& other) noexcept;
  ~EventWatcher();

  /// Waits for an event. Throws InvalidArgument on the event loop.
  NextEvent next(std::stop_token stop = {}, Deadline deadline = kNoDeadline);
  NextEvent next_for(std::chrono::milliseconds time, std::stop_token stop = {}) {
    return next(std::move(stop), std::chrono::steady_clock::now() + Clock::limited(time));
  }
  Awaitable<NextEvent> async_next(std::stop_token stop, Deadline deadline);
  Awaitable<NextEvent> async_next(std::stop_token stop) {
    return async_next(std::move(stop), kNoDeadline);
  }
  Awaitable<NextEvent> async_next() { return async_next(std::stop_token()); }

  /// The number of waiting events.
  std::size_t pending() const;
  void stop();

 private:
  std::shared_ptr<detail::ClientState> client_;
  std::shared_ptr<detail::EventQueue> queue_;
};

/// Whether a watcher first receives the existing records, as creations. (Records that this client does
/// not know yet, because the first data has not arrived, go to every watcher.)
enum class Begin { kWithChanges, kWithWhatIsThere };

/// The records of all participating pods, by key. Also writes records on this pod.
///
/// A key exists as long as some pod has it. If pods disagree about a value, the latest one counts.
/// A pod whose annotation becomes unreadable keeps its last records, as in dubbo-go.
///
/// Safe to use from any thread. Functions that send requests must not be called on the event loop.
class Client {
 public:
  /// Reads this pod and gives it the label of its role (ClientOptions::label_pod). A pod that
  /// already has the label keeps it, whatever its value, as in dubbo-go. Throws Error if the pod
  /// cannot be determined, and what rest::Client throws.
  ///
  /// A consumer starts to watch pods immediately, a provider when records are first read.
  explicit Client(rest::Client client, ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Adds a record to this pod with one patch. If the pod has changed since it was read, the server
  /// rejects the patch, and the client retries with back-off. An equal record changes nothing;
  /// another value for the key replaces the first. Watchers of this client get the event before
  /// this function returns. Throws InvalidArgument for a key or a value that is not UTF-8.
  void create(const std::string& key, const std::string& value, rest::CallOptions call = {});
  /// Removes the records of a key from this pod. Returns false if there are none.
  bool remove(const std::string& key, rest::CallOptions call = {});
  void set_label(const std::string& label, const std::string& value, rest::CallOptions call = {});

  /// All records whose keys begin with the prefix, ordered by key. Waits for the first data: throws
  /// NotSynced. Like all functions below, throws InvalidArgument if the client is closed.
  std::vector<Record> get_children(const std::string& prefix, const WaitOptions& wait = {});
  std::optional<std::string> get(const std::string& key, const WaitOptions& wait = {});

  EventWatcher watch(const std::string& key, Begin begin = Begin::kWithChanges);
  EventWatcher watch_with_prefix(const std::string& prefix, Begin begin = Begin::kWithChanges);

  /// False once the client has been closed or has given up.
  bool valid() const;
  /// Stopped when the client is no longer valid.
  std::stop_token done() const;
  /// Ends all watchers and waits for user code, like Discovery::close().
  void close();

  Freshness freshness() const;
  /// The namespaces that are not followed at the moment, with the last failure of each.
  std::vector<WatchFailure> failures() const;
  const PodIdentity& pod() const;

 private:
  std::shared_ptr<detail::ClientState> state_;
};

/// Replaces a client that is null or no longer valid with a new one; returns true if it did. Throws
/// what `make` throws.
bool validate_client(std::shared_ptr<Client>& client,
                     const std::function<std::shared_ptr<Client>()>& make);

}  // namespace lookout::registry::dubbo

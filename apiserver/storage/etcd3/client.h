// Talking to etcd through its JSON gateway.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "apiserver/storage/etcd3/messages.h"
#include "apiserver/storage/etcd3/metrics.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/base/event_loop.h"
#include "lookout/rest/credentials.h"
#include "lookout/rest/detail/http_transport.h"

namespace lookout::apiserver::storage::etcd3 {

/// The result of a range request or of a transaction.
struct RangeResponse {
  Revision revision = 0;
  std::vector<KeyValue> kvs;
  /// The size of the whole range, regardless of the limit.
  std::size_t count = 0;
  bool more = false;
};

struct TxnResponse {
  bool succeeded = false;
  Revision revision = 0;
  /// The existing value if the transaction failed.
  std::vector<KeyValue> kvs;
};

struct Lease {
  std::int64_t id = 0;
  std::chrono::seconds ttl{0};
};

/// The history of one etcd cluster: revisions only grow. A cluster that was set up again, or
/// restored from a backup, starts another history, in which the same revision has another meaning.
struct Lineage {
  /// 1, 2, 3 ...
  std::uint64_t number = 0;
  /// Stopped when it turns out that there is another history now.
  std::stop_token ends = {};
};

/// How far etcd had come when something was asked.
struct Seen {
  std::uint64_t lineage = 0;
  Revision revision = 0;
};

class Client;

/// One watch as it comes in: frames, read one by one.
class WatchConnection {
 public:
  /// Throws EtcdError if etcd refuses, TransportError if there is no answer.
  static Awaitable<std::unique_ptr<WatchConnection>> open(std::shared_ptr<Client> client,
                                                          WatchRequest request,
                                                          std::stop_token stop);

  /// The next part of the stream: events, with a message at the end of each frame. A part holds a
  /// limited number of events, because a frame may be larger than memory.
  using Piece = std::vector<std::variant<KeyEvent, Message>>;
  /// False at the end of the stream. Throws EtcdError and TransportError.
  Awaitable<bool> read(Piece& piece);
  /// Which endpoint it leads to.
  const std::string& endpoint() const { return endpoint_; }
  std::size_t endpoint_index() const { return endpoint_index_; }
  /// After etcd has refused the watch within the stream: true if the token may be why. The next
  /// connection shows a new one.
  bool renew_token(const EtcdError& refusal);

 private:
  WatchConnection(std::shared_ptr<Client> client, std::size_t endpoint_index);

  const std::shared_ptr<Client> client_;
  const std::size_t endpoint_index_;
  const std::string endpoint_;
  std::shared_ptr<rest::detail::HttpExchange> exchange_;
  std::unique_ptr<std::stop_callback<std::function<void()>>> cancel_;
  Piece piece_;
  MessageReader reader_;
  const Seen seen_;
  std::string token_;
  std::string buffer_;
};

/// All members of a cluster as one. It stays with a member as long as that answers, and goes on to
/// the next one when it does not. Thread-safe; coroutines run on their caller's executor, which may
/// go away together with them: requests themselves run on the loop.
///
/// Read requests are retried, on other members, until the timeout. Write requests are retried only
/// if the member was not reached: otherwise they may have been executed.
///
/// Every answer says which cluster it comes from and how far that has come. Another cluster, or one
/// that has not come as far as it had, is another history: see lineage().
///
/// Throws EtcdError for what etcd answers, rest::TransportError for what gets no answer, and
/// api::DecodeError for answers that are none of etcd's.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(const EtcdOptions& options, EventLoop& loop);
  ~Client();

  const EtcdOptions& options() const { return options_; }
  boost::asio::io_context& context() const { return context_; }
  /// The counters for requests and watches.
  Metrics& metrics() { return metrics_; }

  /// The history that etcd tells now.
  Lineage lineage() const;
  bool is_now(const Lineage& lineage) const { return lineage.number == lineage_number(); }
  std::uint64_t lineage_number() const { return lineage_.load(std::memory_order_acquire); }
  /// As far as etcd is known to have come in it.
  Revision newest_known() const { return seen().revision; }

  /// With a `timeout` of its own, instead of the one of the options.
  Awaitable<RangeResponse> range(RangeRequest request,
                                 std::optional<std::chrono::milliseconds> timeout = {});
  /// Whether one member answers, and has a leader: one small request, without another try.
  Awaitable<bool> answers(std::size_t endpoint_index);
  /// With the requests of messages.h.
  Awaitable<TxnResponse> txn(std::string request);
  Awaitable<Revision> put(std::string key, std::string value, std::int64_t lease = 0);
  Awaitable<Revision> remove(std::string key, std::string range_end = {});
  Awaitable<void> compact(Revision revision);
  Awaitable<Lease> grant_lease(std::chrono::seconds ttl);
  /// The time that the lease has left now; 0 if there is none.
  Awaitable<std::chrono::seconds> keep_alive(std::int64_t lease);
  Awaitable<void> revoke_lease(std::int64_t lease);
  /// The status of the member that answers.
  Awaitable<Message> status();
  /// Where the members of the cluster listen.
  Awaitable<std::vector<std::string>> member_urls();

  /// Runs a coroutine on its own; wait_for_tasks() waits until all of them have ended.
  void spawn(boost::asio::any_io_executor executor, Awaitable<void> task);
  void wait_for_tasks();

  /// Cuts off all requests; later ones fail at once.
  void shutdown();

 private:
  friend class WatchConnection;

  enum class Kind { kRead, kWrite };
  struct Call {
    Kind kind = Kind::kRead;
    const char* path = "";
    std::string body;
    /// The revision of the answer is not older than that of any answer that came before the call.
    bool linearizable = false;
    std::chrono::milliseconds timeout{0};
    /// Only this member is asked, once.
    std::optional<std::size_t> only = {};
  };
  struct Answer {
    Message message;
    std::vector<KeyValue> kvs;
  };
  struct Slot;

  Awaitable<Answer> call(Call call);
  Awaitable<void> run(Call call, std::shared_ptr<Slot> slot);
  Awaitable<Answer> carry_out(const Call& call);
  Awaitable<Answer> attempt(std::size_t endpoint, const Call& call, std::string token,
                            std::chrono::milliseconds timeout);
  rest::detail::HttpRequest prepare(const char* path, std::string body, const std::string& token);
  /// The token for requests; empty if there is no user. `refused` is one that is no longer good.
  Awaitable<std::string> token(std::size_t endpoint, std::string refused);
  void forget_token(const std::string& token);
  std::size_t endpoint() const { return current_.load(std::memory_order_relaxed); }
  /// From the endpoint that did not answer to the next one.
  void leave(std::size_t endpoint, const std::string& why);

  Seen seen() const;
  /// Records the history in an answer; `revision` is 0 if it may lag behind.
  void observe(std::uint64_t cluster_id, Revision revision, const Seen& before);

  const EtcdOptions options_;
  boost::asio::io_context& context_;
  std::unique_ptr<rest::Credentials> certificate_;  // null: none
  Metrics metrics_;
  std::vector<std::shared_ptr<rest::detail::HttpTransport>> transports_;
  std::atomic<std::size_t> current_{0};
  std::atomic<std::uint64_t> lineage_{1};  // changed with mutex_ locked
  mutable std::mutex mutex_;
  std::string token_;  // guarded by mutex_, as are those below
  std::uint64_t cluster_id_ = 0;
  Revision newest_ = 0;
  std::stop_source lineage_ends_;
  std::chrono::steady_clock::time_point next_log_;
  std::size_t tasks_ = 0;
  std::condition_variable no_tasks_;
};

/// Whether it may be better at another member, or later.
bool is_unavailable(const std::exception& e);

}  // namespace lookout::apiserver::storage::etcd3

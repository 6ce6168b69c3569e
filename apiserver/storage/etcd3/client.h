// Client: a client of etcd over gRPC.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apiserver/grpc/channel.h"
#include "apiserver/storage/etcd3/members.h"
#include "apiserver/storage/etcd3/messages.h"
#include "apiserver/storage/etcd3/metrics.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/base/event_loop.h"
#include "lookout/rest/credentials.h"
#include "lookout/rest/error.h"

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
  /// Stopped when a new history is detected.
  std::stop_token ends = {};
};

/// etcd's revision at the time of a request.
struct Seen {
  std::uint64_t lineage = 0;
  Revision revision = 0;
};

/// How often in a row etcd may reject a new token, or a request because users or roles have changed: a
/// lagging member does not know a new token yet.
constexpr int kTokenTries = 5;

class Client;

/// The incoming messages of a watch, which has its own stream on the shared connection to a member.
class WatchConnection {
 public:
  /// Throws EtcdError and TransportError if there is no token for it.
  static Awaitable<std::unique_ptr<WatchConnection>> open(std::shared_ptr<Client> client,
                                                          WatchRequest request,
                                                          std::stop_token stop);

  /// The next part of the stream: events, with a message at the end of each response. A part has a
  /// limited number of events, because a response may be larger than memory. A failed message is the
  /// last one.
  using Piece = std::vector<std::variant<KeyEvent, Message>>;
  /// False at the end of the stream. Throws TransportError, and api::DecodeError for a malformed
  /// response.
  Awaitable<bool> read(Piece& piece);
  /// A function that requests progress. The response is a message without events, after all events up
  /// to its revision. Thread-safe; may outlive the watch. Call it only for created watches at a member
  /// that tells_progress().
  std::function<void()> progress_asker() const;
  /// The member at the other end of the connection.
  const Member& member() const { return member_; }
  /// After etcd has rejected the watch in the stream: whether the token may be the reason, or a change of
  /// users and roles. The next connection uses a new token.
  bool renew_token(const EtcdError& refusal);

 private:
  WatchConnection(std::shared_ptr<Client> client, Member member);
  void end(Piece& piece);

  const std::shared_ptr<Client> client_;
  const Member member_;
  std::shared_ptr<grpc::Call> call_;
  std::unique_ptr<std::stop_callback<std::function<void()>>> cancel_;
  Piece piece_;
  MessageReader reader_;
  const Seen seen_;
  std::string token_;
  std::string buffer_;
  bool ended_ = false;
};

/// A client of all members of a cluster. Uses one member until it does not respond, then the next one.
/// Thread-safe. Coroutines run on their caller's executor, which may be destroyed together with them;
/// only the connections are on the loop. Destroying a request's coroutine cancels the request.
///
/// Reads (and grants of leases) are retried on other members until the timeout. Writes are retried only
/// if the member has not started them: otherwise they may have been executed. A member with a wrong
/// certificate or protocol is skipped, and so is a learner; if there is no other, the request fails
/// immediately.
///
/// Every response has the cluster ID and revision. A different cluster, or a lower revision than
/// before, is a new history: see lineage(). (kine's responses have no cluster ID: it has one history.)
///
/// Throws EtcdError for etcd's errors, rest::TransportError if there is no response, and
/// api::DecodeError for malformed responses.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(const EtcdOptions& options, EventLoop& loop);
  ~Client();

  const EtcdOptions& options() const { return options_; }
  boost::asio::io_context& context() const { return context_; }
  /// The counters for requests and watches.
  Metrics& metrics() { return metrics_; }

  /// etcd's current history.
  Lineage lineage() const;
  bool is_now(const Lineage& lineage) const { return lineage.number == lineage_number(); }
  std::uint64_t lineage_number() const { return lineage_.load(std::memory_order_acquire); }
  /// The highest known revision of the current history.
  Revision newest_known() const { return seen().revision; }

  /// `timeout` overrides the one in the options.
  Awaitable<RangeResponse> range(RangeRequest request,
                                 std::optional<std::chrono::milliseconds> timeout = {});
  /// Whether a member responds and has a leader. Sends one small request without retries.
  Awaitable<bool> answers(Member member);
  /// Whether a member supports progress requests, with responses only after earlier events: etcd from
  /// 3.4.31 and 3.5.13. False for members without a version. Throws if it does not respond.
  Awaitable<bool> tells_progress(Member member);
  /// `request` comes from a function of messages.h.
  Awaitable<TxnResponse> txn(std::string request);
  Awaitable<Revision> put(std::string key, std::string value, std::int64_t lease = 0);
  Awaitable<Revision> remove(std::string key, std::string range_end = {});
  Awaitable<void> compact(Revision revision);
  Awaitable<Lease> grant_lease(std::chrono::seconds ttl);
  /// Renews the lease. Returns its remaining time; 0 if there is no such lease.
  Awaitable<std::chrono::seconds> keep_alive(std::int64_t lease);
  Awaitable<void> revoke_lease(std::int64_t lease);
  /// The status of the first member that responds.
  Awaitable<Message> status();
  /// The client URLs of the cluster's voting members (learners reject most requests).
  Awaitable<std::vector<std::string>> member_urls();
  /// Later requests and watches use these members (clientv3's Sync).
  Awaitable<void> sync_members();

  /// Starts a background coroutine; wait_for_tasks() waits until all of them have ended.
  void spawn(boost::asio::any_io_executor executor, Awaitable<void> task);
  void wait_for_tasks();

  /// Cancels all requests; later ones fail immediately.
  void shutdown();
  /// Stopped by shutdown().
  std::stop_token closing() const { return closing_.get_token(); }

 private:
  friend class RangeStream;
  friend class WatchConnection;

  enum class Kind { kRepeatable, kWrite };
  struct Request {
    Kind kind = Kind::kRepeatable;
    const char* method = "";  // "KV/Range"
    AnswerKind answer = AnswerKind::kRange;
    std::string message;
    /// The response's revision is not older than that of any response before the call.
    bool linearizable = false;
    std::chrono::milliseconds timeout{0};
    /// Sends one request to this member only.
    Member only = {};
  };
  struct Answer {
    Message message;
    std::vector<KeyValue> kvs;
  };

  static Request write(const char* method, AnswerKind answer, std::string message);
  Awaitable<Answer> call(Request request);
  Awaitable<Answer> attempt(Member member, const Request& request, std::string token,
                            std::chrono::steady_clock::time_point deadline);
  /// Throws EtcdError if the message is larger than EtcdOptions::max_send_bytes.
  grpc::CallRequest prepare(const char* method, std::string message, const std::string& token);
  Member connect(std::string url);
  bool has_user() const;
  /// An Authenticate request, whose result concurrent requests share: etcd needs much time for each.
  /// Guarded by mutex_.
  struct Authentication {
    bool ended = false;
    std::exception_ptr failure = {};
  };
  /// The token for requests; empty without a user, or if authentication is disabled in etcd. `refused`
  /// is a token that is no longer valid.
  Awaitable<std::string> token(Member member, std::optional<std::string> refused,
                               std::chrono::steady_clock::time_point deadline);
  Awaitable<std::string> authenticate(Member member, std::shared_ptr<Authentication> shared,
                                      std::chrono::steady_clock::time_point deadline);
  void forget_token(const std::string& token);
  /// Whether a request that was rejected with this error, without being executed, should be repeated.
  bool is_settled_by_a_retry(const EtcdError& e) const;

  /// Whether a member may support RangeStream: false for some time after it has rejected one.
  bool may_stream(const Member& member) const;
  void remember_no_streams(const Member& member);

  Seen seen() const;
  /// Records a response's history; `revision` is 0 if it may lag.
  void observe(std::uint64_t cluster_id, Revision revision, const Seen& before);

  const EtcdOptions options_;
  boost::asio::io_context& context_;
  std::unique_ptr<rest::Credentials> certificate_;  // null: none
  const std::function<std::shared_ptr<const std::string>()> ca_;
  Metrics metrics_;
  Members members_;
  std::atomic<std::uint64_t> lineage_{1};  // changed with mutex_ locked
  mutable std::mutex mutex_;
  std::optional<std::string> token_;  // guarded by mutex_, as are those below
  std::map<std::string, std::shared_ptr<Authentication>> authentications_;  // by URL: running ones
  std::uint64_t cluster_id_ = 0;
  Revision newest_ = 0;
  std::stop_source lineage_ends_;
  std::map<std::string, std::chrono::steady_clock::time_point> no_streams_;  // until when, by URL
  std::size_t tasks_ = 0;
  std::condition_variable no_tasks_;
  std::stop_source closing_;
};

/// Whether an etcd of that version ("3.5.16") sends progress notifications only after the events
/// that they cover (etcd issues 15220 and 17507; Kubernetes requires the same versions).
bool has_sound_progress(std::string_view version);

/// Whether another member, or a later attempt, may succeed.
bool is_unavailable(const std::exception& e);

}  // namespace lookout::apiserver::storage::etcd3

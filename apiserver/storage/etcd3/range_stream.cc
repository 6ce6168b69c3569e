#include "apiserver/storage/etcd3/range_stream.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "apiserver/storage/etcd3/bounded_queue.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using std::chrono::steady_clock;

constexpr const char* kMethod = "KV/RangeStream";
// The queue for the caller: pieces of a response, and their bytes.
constexpr std::size_t kWaitingPieces = 1024;
constexpr std::size_t kWaitingBytes = 8u << 20;

}  // namespace

/// The shared state of reader and caller. The reader keeps it alive after the caller's end.
class RangeStream::State {
 public:
  State(std::shared_ptr<Client> client, Member member, RangeRequest request,
        boost::asio::any_io_executor reader, std::shared_ptr<ResourceMetrics> metrics)
      : client_(std::move(client)),
        member_(std::move(member)),
        request_(std::move(request)),
        metrics_(std::move(metrics)),
        reading_(boost::asio::make_strand(client_->context())),
        pieces_(reading_, std::move(reader), kWaitingPieces, kWaitingBytes),
        cancel_at_close_(client_->closing(), [this] { pieces_.cancel(); }) {}

  static void start(const std::shared_ptr<State>& self) {
    self->client_->spawn(self->reading_, read(self));
  }

  Awaitable<std::vector<KeyValue>> next() {
    std::vector<std::vector<KeyValue>> some;
    co_await pieces_.pop(some, 1, steady_clock::time_point::max());
    if (some.empty()) co_return std::vector<KeyValue>();
    co_return std::move(some.front());
  }
  bool is_complete() const { return complete_; }

  /// The caller has ended, and its executor may end, too.
  void leave() {
    stop_.request_stop();
    pieces_.leave();
  }

 private:
  static Awaitable<void> read(std::shared_ptr<State> self) {
    const auto begin = steady_clock::now();
    bool counts = true;
    try {
      co_await self->read_parts();
    } catch (const std::exception& e) {
      counts = self->failed(e);
    }
    if (counts && self->metrics_ != nullptr)
      self->metrics_->request("list", steady_clock::now() - begin, !self->complete_);
    self->pieces_.finish();
  }

  /// Handles an error. Returns whether the request counts: not if the member does not support
  /// streams.
  bool failed(const std::exception& e) const {
    const auto* refusal = dynamic_cast<const EtcdError*>(&e);
    if (refusal != nullptr && refusal->code() == EtcdError::kUnimplemented) {
      log::debug("etcd: {} does not support RangeStream", member_->url());
      client_->remember_no_streams(member_);
      return false;
    }
    if (stop_.stop_requested()) return true;
    log::info("etcd: the RangeStream of {} ended early: {}", request_.key, e.what());
    if (is_unavailable(e)) client_->members_.leave(member_, e.what());
    return true;
  }

  Awaitable<void> read_parts() {
    std::optional<std::string> none;
    const auto deadline = steady_clock::now() + client_->options().request_timeout;
    const std::string token = co_await client_->token(member_, std::move(none), deadline);
    const Seen before = client_->seen();
    const auto executor = co_await boost::asio::this_coro::executor;
    const auto call = member_->start(client_->prepare(kMethod, encode(request_), token), executor);
    const std::stop_callback cancel(stop_.get_token(), [&call] { call->cancel(); });
    std::vector<KeyValue> piece;
    std::size_t weight = 0;
    std::size_t count = 0;
    std::optional<Message> last;
    MessageReader::Callbacks callbacks;
    callbacks.key_value = [&](KeyValue kv) {
      weight += kv.key.size() + kv.value.size();
      piece.push_back(std::move(kv));
    };
    callbacks.message = [&](Message message) { last = std::move(message); };
    MessageReader reader(AnswerKind::kRangeStream, std::move(callbacks),
                         MessageReader::kMaxValueBytes, client_->options().max_receive_bytes);
    std::string bytes;
    for (;;) {
      const auto until = steady_clock::now() + client_->options().request_timeout;
      bytes = co_await call->read(std::move(bytes), until);
      if (bytes.empty()) break;
      if (!reader.feed(bytes)) throw Error(reader.error());
      if (piece.empty()) continue;
      count += piece.size();
      std::vector<KeyValue> full = std::exchange(piece, {});
      const std::size_t bytes_of_keys = std::exchange(weight, 0);
      const bool wanted = co_await pieces_.push(std::move(full), bytes_of_keys);
      if (!wanted) co_return;
    }
    const grpc::Status status = call->status();
    if (status.code != 0) throw EtcdError(status.code, status.message);
    // Only the last part has a header and the number of keys.
    if (!reader.complete() || !last || last->revision == 0 || last->more ||
        last->count != static_cast<std::int64_t>(count))
      throw Error(fmt::format("it ended after {} keys", count));
    client_->observe(last->cluster_id, last->revision, before);
    complete_ = true;
  }

  const std::shared_ptr<Client> client_;
  const Member member_;
  const RangeRequest request_;
  const std::shared_ptr<ResourceMetrics> metrics_;
  const boost::asio::any_io_executor reading_;
  BoundedQueue<std::vector<KeyValue>> pieces_;
  std::atomic<bool> complete_{false};
  std::stop_source stop_;
  const std::stop_callback<std::function<void()>> cancel_at_close_;
};

RangeStream::RangeStream(std::shared_ptr<State> state) : state_(std::move(state)) {}

RangeStream::~RangeStream() { state_->leave(); }

std::unique_ptr<RangeStream> RangeStream::open(const std::shared_ptr<Client>& client,
                                               RangeRequest request,
                                               boost::asio::any_io_executor reader,
                                               std::shared_ptr<ResourceMetrics> metrics) {
  const Member member = client->members_.current();
  if (!client->may_stream(member)) return nullptr;
  auto state = std::make_shared<State>(client, member, std::move(request), std::move(reader),
                                       std::move(metrics));
  State::start(state);
  return std::unique_ptr<RangeStream>(new RangeStream(std::move(state)));
}

Awaitable<std::vector<KeyValue>> RangeStream::next() { return state_->next(); }

bool RangeStream::is_complete() const { return state_->is_complete(); }

}  // namespace lookout::apiserver::storage::etcd3

// A watch as the body of an answer.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "apiserver/endpoints/negotiation.h"
#include "apiserver/metrics.h"
#include "apiserver/resources/served_resource.h"
#include "apiserver/stats.h"
#include "lookout/apiserver/storage/interface.h"
#include "lookout/base/attributes.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

struct WatchStreamOptions {
  /// When the watch ends by itself.
  std::chrono::steady_clock::time_point deadline;
  bool bookmarks = false;
  std::chrono::milliseconds bookmark_interval{60000};
  OutputFormat format = {};
  LOOKOUT_OPTION std::shared_ptr<WatcherMetrics> metrics = {};
  /// For the log: who watches what.
  LOOKOUT_OPTION std::string description = {};
};

/// Events as lines of JSON, or as frames of protobuf. An event is encoded once for all watches that
/// show it alike.
class WatchStream final : public http::BodyStream {
 public:
  WatchStream(resources::ServedResourcePtr resource, std::unique_ptr<storage::Watch> watch,
              WatchStreamOptions options, std::shared_ptr<Counters> counters);
  ~WatchStream() override;

  Awaitable<bool> next(std::vector<http::Piece>& pieces) override;
  void end() override;
  bool is_open_ended() const override { return true; }
  void on_slow_client() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Cancel {
    storage::Watch* watch;
    void operator()() const { watch->cancel(); }
  };

  void encode_some(std::vector<http::Piece>& pieces);
  http::Piece encode(const storage::Event& event);
  std::string line(const storage::Event& event);
  api::Object bookmark(const storage::Event& event) const;

  const resources::ServedResourcePtr resource_;
  const std::unique_ptr<storage::Watch> watch_;
  const WatchStreamOptions options_;
  const std::shared_ptr<Counters> counters_;
  /// Names the form in which this watch shows events.
  std::string form_;
  std::vector<storage::Event> events_;
  /// How many of them have been given out.
  std::size_t encoded_ = 0;
  Clock::time_point next_bookmark_ = Clock::time_point::max();
  bool prepared_ = false;
  /// Only the first table says what its columns are.
  bool columns_shown_ = false;
  bool ending_ = false;
  /// Nothing comes after the events that are here.
  bool last_ = false;
  bool finished_ = false;
  /// Last: it must not call when the watch has gone.
  const std::stop_callback<Cancel> retired_;
};

}  // namespace lookout::apiserver::endpoints

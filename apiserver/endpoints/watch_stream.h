// A watch as a response body.
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
  /// When the watch times out.
  std::chrono::steady_clock::time_point deadline;
  bool bookmarks = false;
  std::chrono::milliseconds bookmark_interval{60000};
  OutputFormat format = {};
  LOOKOUT_OPTION std::shared_ptr<WatcherMetrics> metrics = {};
  /// The user and the resource, for the log.
  LOOKOUT_OPTION std::string description = {};
};

/// Events as lines of JSON or protobuf frames. An event is encoded once for all watches with the same
/// form.
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
  /// The key of this watch's form of events.
  std::string form_;
  std::vector<storage::Event> events_;
  /// The number of returned events.
  std::size_t encoded_ = 0;
  Clock::time_point next_bookmark_ = Clock::time_point::max();
  bool prepared_ = false;
  /// Only the first table has column definitions.
  bool columns_shown_ = false;
  bool ending_ = false;
  /// The pending events are the last ones.
  bool last_ = false;
  bool finished_ = false;
  /// Last: its callback uses the other members.
  const std::stop_callback<Cancel> retired_;
};

}  // namespace lookout::apiserver::endpoints

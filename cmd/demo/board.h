// Board: the display of the demo.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cmd/terminal.h"
#include "lookout/api/object.h"
#include "lookout/base/pinned.h"

namespace lookout::cmd {

/// Collects events from handlers and draws them: a live view on a terminal, plain lines elsewhere.
/// Handlers call event() from their threads; one thread calls draw().
class Board : public base::Pinned {
 public:
  /// `live`: true if standard output is a terminal with cursor movement.
  Board(std::string server, bool live);
  ~Board();

  void event(std::string_view type, std::string_view kind, const api::Object& object,
             std::string detail);

  struct Figures {
    std::size_t pods = 0;
    std::size_t deployments = 0;
    std::size_t services = 0;
    std::map<std::string, std::size_t, std::less<>> pods_by_status;
  };
  /// Shows the current state.
  void draw(const Figures& figures);
  /// Releases the terminal; later output goes below.
  void finish();

  std::uint64_t events() const;
  /// False if standard output is closed.
  static bool good();

 private:
  struct Line {
    std::string time;
    std::string type;
    std::string text;
  };

  std::string frame(const Figures& figures);
  /// The text in a colour, if colours are enabled.
  std::string painted(const char* colour, std::string_view text) const;
  double rate();

  const std::string server_;
  const bool colours_;
  const std::chrono::steady_clock::time_point begin_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool finished_ = false;
  std::optional<LiveScreen> screen_;
  std::map<std::string, std::uint64_t, std::less<>> totals_;
  std::uint64_t events_ = 0;
  std::deque<Line> tail_;
  std::deque<std::pair<std::chrono::steady_clock::time_point, std::uint64_t>> history_;
};

}  // namespace lookout::cmd

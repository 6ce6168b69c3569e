#include "cmd/demo/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cmd/colours.h"
#include "lookout/api/time.h"

namespace lookout::cmd {
namespace {

constexpr const char* kReset = "\x1b[0m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kDim = "\x1b[2m";

const char* colour_of(std::string_view type) {
  if (type == "ADDED") return "\x1b[32m";
  if (type == "DELETED") return "\x1b[31m";
  return "\x1b[36m";
}

const char* colour_of_status(std::string_view status) {
  if (status == "Running") return "\x1b[32m";
  if (status == "CrashLoopBackOff") return "\x1b[31m";
  return "\x1b[33m";
}

std::string clock_text() {
  const auto now = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  return api::format_time(now).substr(11, 8);
}

/// Unlike fmt::print(), this does not throw on a closed pipe.
void write_line(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace

Board::Board(std::string server, bool live)
    : server_(std::move(server)),
      colours_(use_colours()),
      begin_(std::chrono::steady_clock::now()) {
  if (live) screen_.emplace();
}

Board::~Board() { finish(); }

void Board::finish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(finished_, true)) return;
  screen_.reset();
  std::fflush(stdout);
}

bool Board::good() { return std::ferror(stdout) == 0; }

void Board::event(std::string_view type, std::string_view kind, const api::Object& object,
                  std::string detail) {
  constexpr std::size_t kTail = 100;
  Line line{clock_text(), std::string(type),
            fmt::format("{:<11} {:<28} {}", kind, object.key(), detail)};
  const std::lock_guard lock(mutex_);
  ++events_;
  ++totals_[line.type];
  if (!screen_ && !finished_)
    write_line(fmt::format("{} {:<8} {}", line.time, line.type, line.text));
  tail_.push_back(std::move(line));
  if (tail_.size() > kTail) tail_.pop_front();
}

std::uint64_t Board::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

/// Events per second over the last three seconds. Requires the mutex.
double Board::rate() {
  const auto now = std::chrono::steady_clock::now();
  history_.emplace_back(now, events_);
  while (history_.size() > 2 && now - history_.front().first > std::chrono::seconds(3)) {
    history_.pop_front();
  }
  const auto seconds = std::chrono::duration<double>(now - history_.front().first).count();
  return seconds <= 0 ? 0 : static_cast<double>(events_ - history_.front().second) / seconds;
}

void Board::draw(const Figures& figures) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  if (screen_) {
    screen_->show(frame(figures));
    return;
  }
  std::string by_status;
  for (const auto& [status, count] : figures.pods_by_status) {
    by_status += fmt::format(" {}={}", status, count);
  }
  write_line(fmt::format("{} CACHE    {} pods,{} {} deployments, {} services, {:.0f} events/s",
                         clock_text(), figures.pods, by_status.empty() ? "" : by_status + ",",
                         figures.deployments, figures.services, rate()));
  std::fflush(stdout);
}

std::string Board::painted(const char* colour, std::string_view text) const {
  return colours_ ? fmt::format("{}{}{}", colour, text, kReset) : std::string(text);
}

std::string Board::frame(const Figures& figures) {
  const std::size_t columns = terminal_columns();
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_);
  const auto bold = [&](std::size_t count) { return painted(kBold, fmt::format("{:>4}", count)); };
  std::string out =
      fmt::format("{}  {}\n\n", painted(kBold, "lookout demo"),
                  painted(kDim, fmt::format("{}  {}", server_, api::format_age(elapsed))));
  out += fmt::format("  {} pods   {} deployments   {} services   {} events/s   {} in all\n\n",
                     bold(figures.pods), bold(figures.deployments), bold(figures.services),
                     painted(kBold, fmt::format("{:>6.1f}", rate())), events_);
  const std::size_t width = columns > 50 ? columns - 34 : 16;
  for (const auto& [status, count] : figures.pods_by_status) {
    const std::size_t bar = std::min(width, count);
    std::string blocks;
    for (std::size_t i = 0; i < bar; ++i) blocks += "\u2588";
    out +=
        fmt::format("  {:<20}{:>4} {}\n", status, count, painted(colour_of_status(status), blocks));
  }
  out += '\n';
  const std::size_t used = 6 + figures.pods_by_status.size();
  const std::size_t rows = terminal_rows();
  const std::size_t lines = std::min(tail_.size(), rows > used + 1 ? rows - used - 1 : 1);
  for (std::size_t i = tail_.size() - lines; i < tail_.size(); ++i) {
    const Line& line = tail_[i];
    out += fmt::format("  {} {} {}\n", painted(kDim, line.time),
                       painted(colour_of(line.type), fmt::format("{:<8}", line.type)), line.text);
  }
  return out;
}

}  // namespace lookout::cmd

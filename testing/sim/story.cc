#include "testing/sim/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "testing/sim/random.h"

namespace lookout::sim {
namespace {

constexpr std::size_t kAround = 3;
constexpr std::size_t kWidest = 96;
/// Requests that are of little interest unless they fail.
bool is_routine(const Story::Entry& entry) {
  return !entry.is_important() &&
         (!entry.writes || entry.what.find("/leases") != std::string::npos ||
          entry.what.find("/events") != std::string::npos);
}

std::string shortened(std::string text) {
  if (text.size() > kWidest) text = text.substr(0, kWidest - 3) + "...";
  return text;
}

}  // namespace

std::size_t Story::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  return entries_.size() - 1;
}

void Story::answer(std::size_t number, std::string text) {
  const std::lock_guard lock(mutex_);
  if (number < entries_.size()) entries_[number].answer = std::move(text);
}

std::string Story::print(std::size_t lines) const {
  const std::lock_guard lock(mutex_);
  // Selects the most important entries first: faults, then the writes next to them, then the last
  // entries.
  const bool all = lines >= entries_.size();
  std::vector<char> shown(entries_.size(), all ? 1 : 0);
  std::size_t left = lines;
  const auto show = [&](std::size_t i) {
    if (left == 0 || shown[i] != 0) return;
    shown[i] = 1;
    --left;
  };
  for (std::size_t i = entries_.size(); i-- > 0;) {
    if (entries_[i].is_important()) show(i);
  }
  std::size_t last = 0;
  for (std::size_t i = entries_.size(); i-- > 0 && last < lines / 4;) {
    if (is_routine(entries_[i])) continue;
    show(i);
    ++last;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].is_important()) continue;
    std::size_t near = 0;
    for (std::size_t j = i + 1; j < entries_.size() && near < kAround; ++j) {
      if (is_routine(entries_[j])) continue;
      show(j);
      ++near;
    }
  }
  std::string out = fmt::format("{:>11}  {:<12} {:<60} {:<8} {}\n", "time", "process", "request",
                                "answer", "fault");
  std::size_t skipped = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (shown[i] == 0) {
      ++skipped;
      continue;
    }
    if (skipped > 0) out += fmt::format("{:>11}  ({} more)\n", "", skipped);
    skipped = 0;
    const Entry& entry = entries_[i];
    out +=
        fmt::format("{:>9.3f} s  {:<12} {:<60} {:<8} {}\n", static_cast<double>(entry.time) / 1e9,
                    entry.process, shortened(entry.what), entry.answer, entry.fault);
  }
  if (skipped > 0) out += fmt::format("{:>11}  ({} more)\n", "", skipped);
  return out;
}

std::uint64_t Story::digest() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t out = entries_.size();
  for (const Entry& entry : entries_) {
    out = mix(out ^ static_cast<std::uint64_t>(entry.time));
    for (const std::string* text : {&entry.process, &entry.what, &entry.answer, &entry.fault})
      out = mix(out ^ hash_of(*text));
  }
  return out;
}

}  // namespace lookout::sim

#include "testing/sim/pipe.h"

#include <algorithm>
#include <utility>

namespace lookout::sim {

using std::chrono::steady_clock;

void Link::cut_until(SteadyTime time) {
  {
    const std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    if (cut_until_ <= now) cut_since_ = now;
    cut_until_ = time;
  }
  ring_all();
}

void Link::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ring_all();
}

std::shared_ptr<Pipe> Link::pipe(boost::asio::any_io_executor reader) {
  auto made = std::make_shared<Pipe>(shared_from_this(), std::move(reader));
  const std::lock_guard lock(mutex_);
  std::erase_if(pipes_, [](const auto& weak) { return weak.expired(); });
  pipes_.push_back(made);
  return made;
}

void Link::ring_all() {
  std::vector<std::weak_ptr<Pipe>> all;
  {
    const std::lock_guard lock(mutex_);
    all = pipes_;
  }
  for (const auto& weak : all) {
    if (const auto pipe = weak.lock()) pipe->ring();
  }
}

bool Link::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::optional<SteadyTime> Link::cut_since() const {
  const std::lock_guard lock(mutex_);
  if (cut_until_ <= steady_clock::now()) return std::nullopt;
  return cut_since_;
}

SteadyTime Link::cut_until() const {
  const std::lock_guard lock(mutex_);
  return cut_until_;
}

SteadyTime Link::arrival() {
  const std::lock_guard lock(mutex_);
  return steady_clock::now() + std::chrono::microseconds(random_.between(latency_.shortest.count(),
                                                                         latency_.longest.count()));
}

std::size_t Link::piece(std::size_t size) {
  constexpr std::uint64_t kCutOneIn = 8;
  const std::lock_guard lock(mutex_);
  if (size < 2 || random_.below(kCutOneIn) != 0) return size;
  return 1 + random_.below(size - 1);
}

void Pipe::push(Message message) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || broken_) return;
    ended_ = message.end;
    message.arrives = last_ = std::max(message.arrives, last_);
    messages_.push_back(std::move(message));
  }
  ring();
}

void Pipe::ring() {
  const std::lock_guard lock(bell_mutex_);
  if (bell_) bell_->ring();
}

void Pipe::leave() {
  const std::lock_guard lock(bell_mutex_);
  bell_.reset();
}

void Pipe::write(std::string bytes) { push({link_->arrival(), std::move(bytes), false}); }
void Pipe::end() { push({link_->arrival(), {}, true}); }

void Pipe::break_off() {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    messages_.clear();
  }
  ring();
}

Pipe::Taken Pipe::take() {
  const auto now = steady_clock::now();
  const bool gone = link_->ended();
  const SteadyTime cut = link_->cut_until();
  const std::lock_guard lock(mutex_);
  Taken out;
  out.broken = broken_ || gone;
  if (out.broken || messages_.empty()) return out;
  const SteadyTime arrives = std::max(messages_.front().arrives, cut);
  if (arrives > now) {
    out.again = arrives;
    return out;
  }
  while (!messages_.empty() && messages_.front().arrives <= now && !messages_.front().end) {
    out.bytes += messages_.front().bytes;
    messages_.pop_front();
  }
  if (out.bytes.empty()) {
    out.ended = !messages_.empty() && messages_.front().end;
    return out;
  }
  const std::size_t size = link_->piece(out.bytes.size());
  if (size < out.bytes.size()) {
    messages_.push_front({now, out.bytes.substr(size), false});
    out.bytes.resize(size);
  }
  return out;
}

}  // namespace lookout::sim

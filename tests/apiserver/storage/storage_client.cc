#include "tests/apiserver/storage/storage_client.h"

#include "lookout/api/status.h"
#include "tests/support/eventually.h"

namespace lookout::apiserver::storage {
namespace {

// Only for errors.
constexpr std::chrono::seconds kLong{30};

}  // namespace

std::vector<std::string> describe(const std::vector<Event>& events) {
  std::vector<std::string> out;
  for (const Event& event : events) {
    std::string line(api::to_string(event.type));
    if (event.object && event.type != api::EventType::kError) line += " " + event.object.key();
    out.push_back(std::move(line));
  }
  return out;
}

WatchReader::WatchReader(Interface& storage, std::string key, bool recursive, WatchOptions options)
    : watch_(thread_.run(storage.watch(std::move(key), recursive, std::move(options)))) {}

WatchReader::~WatchReader() {
  const auto let_go = [this]() -> Awaitable<void> {
    watch_.reset();
    co_return;
  };
  thread_.run(let_go());
}

bool WatchReader::next(std::vector<Event>& events, std::chrono::steady_clock::time_point until) {
  return thread_.run(watch_->next(events, until));
}

std::vector<Event> WatchReader::take_events(std::size_t count) {
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  std::vector<Event> out = std::exchange(rest_, {});
  std::vector<Event> events;
  while (out.size() < count && next(events, deadline)) {
    if (events.empty()) break;
    out.insert(out.end(), events.begin(), events.end());
  }
  if (out.size() > count) {
    const auto end = out.begin() + static_cast<std::ptrdiff_t>(count);
    rest_.assign(end, out.end());
    out.erase(end, out.end());
  }
  return out;
}

std::vector<Event> WatchReader::take_until_the_end() {
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  std::vector<Event> out = std::exchange(rest_, {});
  std::vector<Event> events;
  for (bool more = true; more;) {
    more = next(events, deadline);
    if (more && events.empty()) break;
    out.insert(out.end(), events.begin(), events.end());
  }
  return out;
}

std::vector<Event> WatchReader::poll() {
  std::vector<Event> events;
  next(events, std::chrono::steady_clock::now());
  return events;
}

void WatchReader::request_bookmark() {
  const auto request = [this]() -> Awaitable<void> {
    watch_->request_bookmark();
    co_return;
  };
  thread_.run(request());
}

bool StorageClient::wait_until_served() {
  return test::eventually([&] {
    try {
      list("");
      return true;
    } catch (const api::StatusError& e) {
      if (!api::is_too_many_requests(e)) throw;
      return false;
    }
  });
}

StorageClient::Page StorageClient::list(std::string key, ListOptions options, bool recursive) {
  ListResult result = thread_.run(storage_.list(std::move(key), recursive, std::move(options)));
  Page page{result.revision, result.continue_key, result.remaining, {}};
  std::vector<api::Object> some;
  while (thread_.run(result.objects->next(some, 2)))
    page.objects.insert(page.objects.end(), some.begin(), some.end());
  return page;
}

}  // namespace lookout::apiserver::storage

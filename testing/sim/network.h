// The network: carries requests of simulated processes to simulated API servers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lookout/base/http/transport.h"
#include "lookout/rest/detail/http_transport.h"
#include "lookout/testing/sim/faults.h"
#include "testing/sim/pipe.h"

namespace lookout::sim {

/// A request of a process, for the story.
struct RequestNote {
  std::string process;
  std::uint64_t number = 0;  // of the process
  std::string method;
  std::string target;
  std::optional<Fault> fault;
  /// If not empty, the server receives this target instead of `target`.
  std::string asked = {};
  std::uint64_t entry = 0;  // in the story
  /// The additional delay of the response.
  std::chrono::milliseconds held{0};
  /// The index of the API server that responds.
  unsigned server = 0;

  bool writes() const { return method != "GET"; }
  bool watches() const;
  /// A list that any replica may answer from its cache.
  bool asks_any_version() const;
  /// A watch list of a client that has no state yet.
  bool asks_first_state() const;
  /// Without the query.
  std::string path() const { return target.substr(0, target.find('?')); }
};

/// The interface of the network to its world. Called on the processes' threads, with no lock held.
class NetworkEvents {
 public:
  virtual ~NetworkEvents() = default;
  /// A request begins: numbers it and draws its fault.
  virtual void on_request(RequestNote& note) = 0;
  /// The response has begun (status), or the request has failed (0, with a reason).
  virtual void on_answer(const RequestNote& note, int status, const std::string& why) = 0;
  /// A fault ends the process.
  virtual void on_crash(const std::string& process) = 0;
  /// Serves a connection, for a request.
  virtual void connect(
      const RequestNote& note,
      std::function<std::unique_ptr<http::Transport>(boost::asio::any_io_executor)> make) = 0;
  /// The next watch of the process for the same objects gets 410.
  virtual void expire(const RequestNote& note) = 0;
};

/// Creates the transports of clients of one life of a process.
class NetworkOf : public rest::detail::TransportFactory {
 public:
  /// `events` must outlive all transports.
  NetworkOf(std::string process, std::shared_ptr<Link> link, NetworkEvents& events,
            unsigned server = 0)
      : process_(std::move(process)), link_(std::move(link)), events_(events), server_(server) {}

  std::shared_ptr<rest::detail::HttpTransport> create(boost::asio::io_context& context,
                                                      rest::detail::HttpServer server) override;

 private:
  const std::string process_;
  const std::shared_ptr<Link> link_;
  NetworkEvents& events_;
  const unsigned server_;  // the initial one
};

}  // namespace lookout::sim

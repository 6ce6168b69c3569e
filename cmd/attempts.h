// Attempts: requests for several objects, of which one may fail.
#pragma once

#include <exception>
#include <string>

#include "cmd/say.h"
#include "lookout/api/status.h"
#include "lookout/rest/error.h"

namespace lookout::cmd {

class Attempts {
 public:
  /// Calls `request`. As in kubectl, its error is printed, with `place` as prefix, and does not affect
  /// other requests. Throws errors that these would have, too.
  template <class Request>
  void operator()(const std::string& place, Request request) {
    try {
      request();
    } catch (const std::exception& e) {
      if (rest::is_connection_refused(e) || api::is_unauthorized(e)) throw;
      report(place + e.what());
    }
  }

  void report(const std::string& error) {
    say("lookout: {}\n", error);
    failed_ = true;
  }

  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

}  // namespace lookout::cmd

// Helpers for the tests of the client.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "tests/rest/certificates.h"
#include "tests/support/gate.h"
#include "tests/support/http_server.h"
#include "tests/support/process.h"
#include "tests/support/thrown.h"

namespace lookout::test {

using Kind = rest::TransportError::Kind;

/// The configuration of a client of `server`, which the client trusts if `authority` is given.
rest::Config config_for(const HttpServer& server, const CertificateAuthority* authority = nullptr);

HttpServerTls tls_of(const KeyPair& pair);

/// A pod as JSON, and pods in lists and watches.
std::string pod_json(const std::string& name, const std::string& version = "1");
std::string event_json(const std::string& type, const std::string& name,
                       const std::string& version = "1");
std::string list_json(const std::vector<std::string>& items, const std::string& metadata = "{}");
std::string status_json(int code, const std::string& reason, const std::string& message);

/// Uses a client once, so that process-wide initialisation is not counted as a leak.
void set_up_what_clients_share();

/// Sends one event to watches, then calls `then`; never answers other requests. Counts the
/// requests.
void answer_watches(
    HttpConnection& connection, std::atomic<int>& requests,
    const std::function<void()>& then = [] {});

/// The kind of the TransportError that `f` throws.
std::optional<Kind> kind_thrown(const std::function<void()>& f);

std::string to_string(Kind kind);

}  // namespace lookout::test

namespace lookout::rest {

/// Prints a kind in messages of GoogleTest.
inline void PrintTo(TransportError::Kind kind, std::ostream* out) {  // NOLINT: its name
  *out << test::to_string(kind);
}

}  // namespace lookout::rest

// Requests that a test makes fail (ServerOptions::before_request and after_request).
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"

namespace lookout::apiserver {
namespace {

/// The functions that ServerOptions call; tests replace them.
struct Failures {
  RequestFunction before;
  RequestFunction after;
};

ServerOptions options_of(const std::shared_ptr<Failures>& failures) {
  ServerOptions options;
  options.before_request = [failures](const ServedRequest& request) {
    if (failures->before) failures->before(request);
  };
  options.after_request = [failures](const ServedRequest& request) {
    if (failures->after) failures->after(request);
  };
  return options;
}

class FailingRequests : public ClientTest {
 protected:
  explicit FailingRequests(std::shared_ptr<Failures> failures = std::make_shared<Failures>())
      : ClientTest(options_of(failures)), failures_(std::move(failures)) {}

  rest::ResourceClient maps() const { return in(kConfigMaps); }

  const std::shared_ptr<Failures> failures_;
};

TEST_F(FailingRequests, TheSecondUpdateIsAConflict) {
  std::atomic<int> updates{0};
  failures_->before = [&](const ServedRequest& request) {
    if (request.verb == "update" && ++updates == 2)
      throw api::StatusError::conflict("", "configmaps", request.name, "try again");
  };
  const api::Object made = maps().create(config_map("a"));
  const api::Object once = maps().update(changed(made, R"({"data":{"key":"1"}})"));
  const api::Object twice = changed(once, R"({"data":{"key":"2"}})");
  try {
    maps().update(twice);
    FAIL() << "the update succeeded";
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_conflict(e)) << e.what();
    EXPECT_STREQ(e.what(), "Operation cannot be fulfilled on configmaps \"a\": try again");
  }
  const api::Object stored = maps().get("a");
  EXPECT_EQ(stored.at(".data.key").as_string(), "1");
  maps().update(twice);
  EXPECT_EQ(updates, 3);
}

TEST_F(FailingRequests, AWriteThatWasStoredFails) {
  failures_->after = [](const ServedRequest& request) {
    if (request.verb == "create") throw std::runtime_error("lost");
  };
  try {
    maps().create(config_map("a"));
    FAIL() << "the creation succeeded";
  } catch (const api::StatusError& e) {
    EXPECT_EQ(e.code(), 500) << e.what();
  }
  EXPECT_TRUE(maps().find("a"));
}

TEST_F(FailingRequests, RequestsAreDescribed) {
  std::mutex mutex;
  std::vector<std::string> seen;
  failures_->before = [&](const ServedRequest& r) {
    const std::lock_guard lock(mutex);
    seen.push_back(r.verb + " " + r.group + "/" + r.resource + "/" + r.subresource + " " + r.ns +
                   "/" + r.name + " " + std::to_string(r.user.empty()));
  };
  pods().create(pod("a"));
  pods().patch("a", rest::PatchType::kMerge, R"({"status":{"phase":"Running"}})", {}, "status");
  client_.get_raw("/version");
  all(kDeployments).list();
  EXPECT_EQ(seen,
            (std::vector<std::string>{"create /pods/ default/ 0", "patch /pods/status default/a 0",
                                      "list apps/deployments/ / 0"}));
}

TEST_F(FailingRequests, AfterRequestIsNotCalledAfterAFailure) {
  std::atomic<int> after{0};
  failures_->after = [&](const ServedRequest&) { ++after; };
  EXPECT_THROW(maps().get("a"), api::StatusError);
  EXPECT_EQ(after, 0);
  maps().list();
  EXPECT_EQ(after, 1);
}

}  // namespace
}  // namespace lookout::apiserver

// Ownership rules of create_or_update(): it writes only objects that the reconciled object may own.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <string>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/create_or_update.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/core/v1_draft.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout::controller {
namespace {

using k8s::core::v1::SecretDraft;
using test::held;
using test::refusal;

/// Each reconcile creates a Secret with the ConfigMap's name.
class OwnershipTest : public ManagerFixture {
 protected:
  static void fill(const SecretDraft& secret) { secret.string_data().set("made", "yes"); }

  Secret secret_of(const api::Object& owner, const std::string& name) const {
    const auto draft = Secret::draft(name, "default");
    if (owner) set_controller_reference(owner, draft);
    return secrets_.create(draft);
  }
  /// The map "site", and a Secret of this name that another map controls.
  void put_site_with_foreign_secret() const {
    put("site", "1");
    secret_of(put("other", "1"), "site");
  }
  static WatchOptions any_owner() {
    WatchOptions out;
    out.match_any_owner = true;
    return out;
  }
  /// "kind/name" of the controller; "" if there is none.
  std::string controller_name(const std::string& name) const {
    const auto secret = secrets_.get(name);
    const auto controller = controller_of(secret);
    return controller ? std::string(controller->kind()) + "/" + std::string(controller->name())
                      : "";
  }
  bool filled(const std::string& name) const {
    return held(secrets_.get(name)).data().contains("made");
  }

  /// Runs `write` in a reconcile of `name`, for a controller that owns Secrets, and returns the
  /// message of its first exception.
  std::string reconciled(const std::string& name,
                         const std::function<void(const Request&, Context&)>& write,
                         WatchOptions options = {}) {
    std::promise<std::string> outcome;
    bool done = false;  // one worker, so runs are sequential
    Manager manager{client_};
    Builder<ConfigMap>(manager)
        .owns<Secret>(std::move(options))
        .reconcile([&](Request request, Context& context) -> Result {
          if (done || request.name != name || !context.find<ConfigMap>(request)) return {};
          done = true;
          outcome.set_value(refusal([&] { write(request, context); }));
          return {};
        });
    const Running running(manager);
    auto future = outcome.get_future();
    return test::get(future);
  }

  const rest::TypedClient<Secret> secrets_ = client_.resource<Secret>("default");
};

TEST_F(OwnershipTest, AnOwnerBecomesTheControllerOfWrittenObjects) {
  const auto site = put("site", "1");
  const auto made = create_or_update(secrets_, "s", owned_by(site), fill);
  EXPECT_EQ(made.written, Written::kCreated);
  EXPECT_EQ(controller_name("s"), "ConfigMap/site");
  EXPECT_EQ(create_or_update(secrets_, "s", owned_by(site), [](const SecretDraft&) {}).written,
            Written::kUnchanged);
}

TEST_F(OwnershipTest, AnObjectOfAnotherControllerIsNotWritten) {
  const auto site = put("site", "1");
  const auto before = secret_of(put("other", "1"), "s");
  int calls = 0;
  const auto mutate = [&](const SecretDraft& secret) {
    ++calls;
    fill(secret);
  };
  const auto message =
      refusal<AlreadyOwnedError>([&] { create_or_update(secrets_, "s", owned_by(site), mutate); });
  EXPECT_THAT(message, HasSubstr("Secret default/s is owned by another controller: by ConfigMap "
                                 "other (uid "));
  EXPECT_THAT(message, HasSubstr("not by ConfigMap site (uid "));
  EXPECT_NE(
      refusal<AlreadyOwnedError>([&] { create_or_patch(secrets_, "s", owned_by(site), mutate); }),
      "");
  EXPECT_THROW(client_.loop().run(async_create_or_update(secrets_, "s", owned_by(site), mutate)),
               AlreadyOwnedError);
  EXPECT_THROW(client_.loop().run(async_create_or_patch(secrets_, "s", owned_by(site), mutate)),
               AlreadyOwnedError);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(held(secrets_.get("s")).resource_version(), before.resource_version());
}

TEST_F(OwnershipTest, AnEarlierObjectOfTheSameNameIsAnotherOwner) {
  const auto draft = put("site", "1").edit();
  draft.metadata().set_uid("long-gone");
  EXPECT_THROW(require_ownership(held(secret_of(draft.build(), "s")), owned_by(maps_.get("site"))),
               AlreadyOwnedError);
}

TEST_F(OwnershipTest, OrphansAreAdoptedOrRejected) {
  const auto site = put("site", "1");
  secret_of({}, "s");
  const auto message = refusal<NotOwnedError>(
      [&] { create_or_update(secrets_, "s", owned_by(site, Orphans::kRefuse), fill); });
  EXPECT_EQ(message, "Secret default/s already exists, and no controller owns it");
  EXPECT_FALSE(filled("s"));
  EXPECT_EQ(create_or_update(secrets_, "s", owned_by(site), fill).written, Written::kUpdated);
  EXPECT_EQ(controller_name("s"), "ConfigMap/site");
  // It has an owner after the adoption.
  EXPECT_EQ(create_or_patch(secrets_, "s", owned_by(site, Orphans::kRefuse),
                            [](const SecretDraft& secret) { secret.string_data().set("b", "c"); })
                .written,
            Written::kUpdated);
}

TEST_F(OwnershipTest, WithoutAnOwnerEveryObjectIsWritten) {
  secret_of(put("other", "1"), "s");
  EXPECT_EQ(create_or_update(secrets_, "s", owned_by_anyone(), fill).written, Written::kUpdated);
  EXPECT_EQ(create_or_update(secrets_, "t", fill).written, Written::kCreated);
  EXPECT_EQ(controller_name("s"), "ConfigMap/other");
  EXPECT_EQ(controller_name("t"), "");
}

TEST_F(OwnershipTest, AReconcileDoesNotWriteObjectsOfAnotherController) {
  put_site_with_foreign_secret();
  const auto message = reconciled("site", [](const Request& request, Context& context) {
    context.create_or_update<Secret>(request, fill);
  });
  EXPECT_THAT(message, HasSubstr("Secret default/site is owned by another controller: by ConfigMap "
                                 "other"));
  EXPECT_FALSE(filled("site"));
  EXPECT_EQ(controller_name("site"), "ConfigMap/other");
}

TEST_F(OwnershipTest, ACoroutineDoesNotWriteObjectsOfAnotherController) {
  put_site_with_foreign_secret();
  const auto message = reconciled("site", [this](const Request& request, Context& context) {
    client_.loop().run(context.async_create_or_update<Secret>(request, fill));
  });
  EXPECT_THAT(message, HasSubstr("is owned by another controller"));
  EXPECT_FALSE(filled("site"));
}

TEST_F(OwnershipTest, AReconcileCannotChangeNameOrNamespace) {
  const auto message = HasSubstr("an object cannot change its name or namespace");
  const auto rename = [](const SecretDraft& secret) { secret["metadata"]["name"].set("another"); };
  const auto move = [](const SecretDraft& secret) {
    secret["metadata"]["namespace"].set("kube-system");
  };
  put("new", "1");
  put("old", "1");
  secret_of({}, "old");
  for (const char* name : {"new", "old"}) {
    for (const std::function<void(const SecretDraft&)>& change :
         {std::function<void(const SecretDraft&)>(rename),
          std::function<void(const SecretDraft&)>(move)}) {
      const auto call = [&](const Request& request, Context& context) {
        context.create_or_update<Secret>(request, change);
      };
      EXPECT_THAT(reconciled(name, call), message);
      const auto coroutine = [&](const Request& request, Context& context) {
        client_.loop().run(context.async_create_or_update<Secret>(request, change));
      };
      EXPECT_THAT(reconciled(name, coroutine), message);
    }
  }
  EXPECT_FALSE(secrets_.find("another"));
  EXPECT_FALSE(secrets_.find("new"));
}

TEST_F(OwnershipTest, AReconcileAdoptsOrphansByDefault) {
  put("site", "1");
  secret_of({}, "site");
  EXPECT_THAT(reconciled("site",
                         [](const Request& request, Context& context) {
                           const auto owner = context.get<ConfigMap>(request);
                           context.create_or_update<Secret>(
                               request, owned_by(owner, Orphans::kRefuse), fill);
                         }),
              HasSubstr("no controller owns it"));
  EXPECT_EQ(controller_name("site"), "");
  EXPECT_EQ(
      reconciled("site", [](const Request& request,
                            Context& context) { context.create_or_update<Secret>(request, fill); }),
      "");
  EXPECT_EQ(controller_name("site"), "ConfigMap/site");
  EXPECT_TRUE(filled("site"));
}

TEST_F(OwnershipTest, AReconcileMayWriteObjectsOfAnotherControllerIfAllowed) {
  put_site_with_foreign_secret();
  EXPECT_EQ(reconciled("site",
                       [](const Request& request, Context& context) {
                         context.create_or_update<Secret>(request, owned_by_anyone(), fill);
                       }),
            "");
  EXPECT_TRUE(filled("site"));
  EXPECT_EQ(controller_name("site"), "ConfigMap/other");
}

TEST_F(OwnershipTest, ObjectsWithSeveralOwnersAreWrittenByEach) {
  put_site_with_foreign_secret();
  EXPECT_EQ(reconciled(
                "site",
                [](const Request& request, Context& context) {
                  const auto owner = context.get<ConfigMap>(request);
                  context.create_or_update<Secret>(request, [&](SecretDraft& secret) {
                    fill(secret);
                    set_owner_reference(owner, secret);
                  });
                },
                any_owner()),
            "");
  EXPECT_EQ(controller_name("site"), "ConfigMap/other");
  EXPECT_TRUE(has_owner_reference(maps_.get("site"), held(secrets_.get("site"))));
}

TEST_F(OwnershipTest, CreatedObjectsWithSeveralOwnersGetNoController) {
  put("site", "1");
  EXPECT_EQ(reconciled(
                "site",
                [](const Request& request, Context& context) {
                  const auto draft = Secret::draft("made", "default");
                  set_owner_reference(context.get<ConfigMap>(request), draft);
                  context.create(draft);
                },
                any_owner()),
            "");
  EXPECT_EQ(controller_name("made"), "");
  EXPECT_TRUE(has_owner_reference(maps_.get("site"), held(secrets_.get("made"))));
}

TEST_F(OwnershipTest, AppliedObjectsWithSeveralOwnersKeepTheirController) {
  put_site_with_foreign_secret();
  EXPECT_EQ(reconciled(
                "site",
                [](const Request& request, Context& context) {
                  const auto draft = Secret::draft(request.name, request.ns);
                  fill(draft);
                  context.apply(draft);
                },
                any_owner()),
            "");
  EXPECT_TRUE(filled("site"));
  EXPECT_EQ(controller_name("site"), "ConfigMap/other");
}

TEST_F(OwnershipTest, AnObjectOfAnotherNamespaceIsRefusedWithAHint) {
  put("site", "1");
  const auto message = reconciled("site", [](const Request&, Context& context) {
    context.create(Secret::draft("made", "elsewhere"));
  });
  EXPECT_EQ(message,
            "Secret elsewhere/made: the controller owns secrets, but ConfigMap default/site cannot "
            "own it: owner references cannot cross namespaces. Write it through uncached(), and "
            "watch secrets with watches() instead of owns(), or with match_any_owner");
}

TEST_F(OwnershipTest, AFinalizerNeedsACleanUpFromTheStart) {
  put("site", "1");
  const auto message = reconciled("site", [](const Request& request, Context& context) {
    context.finalize(context.get<ConfigMap>(request), "example.com/x", {});
  });
  EXPECT_EQ(message, "finalizer \"example.com/x\": its clean-up is empty");
  EXPECT_TRUE(held(maps_.get("site")).metadata().finalizers().empty());
}

}  // namespace
}  // namespace lookout::controller

#include "lookout/api/strategic_merge_patch.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <string>

#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "tests/api/recordings.h"
#include "tests/support/files.h"

namespace lookout::api {
namespace {

using test::parse_json;
using test::to_json;

const GroupVersionKind kPodKind{"", "v1", "Pod"};
const GroupVersionKind kDeployment{"apps", "v1", "Deployment"};

/// Both sides of a comparison, without fields that the server sets.
std::string comparable(const rapidjson::Value& object) {
  rapidjson::Document copy;
  copy.CopyFrom(object, copy.GetAllocator());
  for (const char* name : {"generation", "resourceVersion", "managedFields"})
    copy["metadata"].RemoveMember(name);
  return Object::from(copy).to_json();
}

/// Sets the server's defaults in the containers of a patch.
void set_container_defaults(rapidjson::Document& object) {
  auto& allocator = object.GetAllocator();
  for (auto& container : object["spec"]["template"]["spec"]["containers"].GetArray()) {
    const auto set = [&](const char* name, rapidjson::Value value) {
      if (!container.HasMember(name))
        container.AddMember(rapidjson::StringRef(name), value, allocator);
    };
    set("resources", rapidjson::Value(rapidjson::kObjectType));
    set("terminationMessagePath", rapidjson::Value("/dev/termination-log"));
    set("terminationMessagePolicy", rapidjson::Value("File"));
    const std::string_view image = container["image"].GetString();
    const bool latest = image.find(':') == std::string_view::npos;
    set("imagePullPolicy", latest ? rapidjson::Value("Always") : rapidjson::Value("IfNotPresent"));
  }
}

TEST(StrategicMergePatch, EqualsARealServer) {
  const auto recorded =
      parse_json(lookout::test::read_file(lookout::test::testdata("kube-1.36/patches.json")));
  int compared = 0;
  for (const auto& c : recorded.GetArray()) {
    if (c["contentType"] != "application/strategic-merge-patch+json") continue;
    SCOPED_TRACE(to_json(c["patch"]));
    rapidjson::Document object;
    object.CopyFrom(c["before"], object.GetAllocator());
    apply_strategic_merge_patch(object, c["patch"], kDeployment, object.GetAllocator());
    set_container_defaults(object);
    EXPECT_EQ(comparable(object), comparable(c["after"]));
    ++compared;
  }
  EXPECT_EQ(compared, 9);
}

std::string merged_pod(const std::string& target, const std::string& patch) {
  rapidjson::Document object = parse_json(target);
  const rapidjson::Document change = parse_json(patch);
  apply_strategic_merge_patch(object, change, kPodKind, object.GetAllocator());
  return to_json(object);
}

// Validation then refuses the element, because it has no name.
TEST(StrategicMergePatch, AnElementWhoseKeyIsNullIsAppended) {
  const std::string pod = R"({"spec":{"containers":[{"name":"a","image":"i"}]}})";
  EXPECT_EQ(merged_pod(pod, R"({"spec":{"containers":[{"name":null,"image":"j"}]}})"),
            R"({"spec":{"containers":[{"image":"j","name":null},{"name":"a","image":"i"}]}})");
  EXPECT_EQ(
      merged_pod(pod, R"({"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":null}],)"
                      R"("containers":[{"name":null,"image":"j"}]}})"),
      R"({"spec":{"containers":[{"name":"a","image":"i"},{"image":"j","name":null}]}})");
  EXPECT_EQ(merged_pod(pod, R"({"spec":{"containers":[{"name":null,"$patch":"delete"}]}})"), pod);
  // The second one is merged into the first one, and thereby removes its key.
  EXPECT_THROW(
      merged_pod(pod, R"({"spec":{"containers":[{"name":null,"image":"j"},{"name":null}]}})"),
      StatusError);
  EXPECT_THROW(merged_pod(pod, R"({"spec":{"containers":[{"image":"j"}]}})"), StatusError);
}

}  // namespace
}  // namespace lookout::api

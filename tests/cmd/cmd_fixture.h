// The lookout program with a server in this process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/client.h"
#include "tests/cmd/program.h"

namespace lookout::cmd {

inline const api::Resource kPods{"", "v1", "Pod", "pods", true};

inline std::string pod(const std::string& name, const std::string& labels,
                       const std::string& node = "node-1") {
  return R"({"metadata":{"name":")" + name + R"(","labels":{)" + labels +
         R"(}},"spec":{"nodeName":")" + node +
         R"(","terminationGracePeriodSeconds":0,"containers":[{"name":"main","image":"i:1"}]}})";
}

/// A command of the program that needs no server.
class CommandTest : public testing::Test {
 protected:
  explicit CommandTest(std::string command) : command_(std::move(command)) {}

  test::ProgramResult run(const std::vector<std::string>& arguments) const {
    return environment_.lookout({command_}, arguments);
  }

  test::ProgramEnvironment environment_;

 private:
  const std::string command_;
};

class CmdTest : public testing::Test {
 protected:
  CmdTest() : client_(server_.client_config()) {}

  /// Runs the program against the server.
  test::ProgramResult lookout(const std::vector<std::string>& arguments) const {
    return environment_.lookout({"--server", server_.url()}, arguments);
  }
  /// Creates a built-in object.
  void create(const std::string& plural, const std::string& ns, const std::string& json) const {
    client_.resource(api::Resource(api::find_builtin_by_name(plural)->type()), ns)
        .create(api::Object::parse(json));
  }

  apiserver::Server server_;
  rest::Client client_;
  test::ProgramEnvironment environment_;
};

}  // namespace lookout::cmd

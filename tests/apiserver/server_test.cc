#include "lookout/apiserver/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>

#include "lookout/rest/client.h"
#include "tests/apiserver/http_client.h"

namespace lookout::apiserver {
namespace {

TEST(Server, ServesAPod) {
  Server server;
  const rest::Client client(server.client_config());
  const auto pods = client.resource({"", "v1", "Pod", "pods", true}, "default");
  const auto created = pods.create(api::Object::parse(
      R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"c","image":"nginx:1"}]}})"));
  EXPECT_EQ(created.name(), "web");
  EXPECT_EQ(pods.get("web"), created);
}

// A child process would otherwise inherit the port.
TEST(Server, KeepsItsSocketsFromOtherPrograms) {
  Server server;
  HttpClient client(server.port());
  ASSERT_EQ(client.get("/version").code, 200);
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    if (address.sin_family != AF_INET || ntohs(address.sin_port) != server.port()) continue;
    ++sockets;
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(sockets, 2);  // the listener, and the client's connection
}

}  // namespace
}  // namespace lookout::apiserver

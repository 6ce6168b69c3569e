#include "tests/rest/nghttpx.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "tests/support/eventually.h"

namespace lookout::test {

std::string Nghttpx::program() {
  std::string found = find_program("nghttpx");
  // /usr/sbin is not on the PATH of every user.
  constexpr const char* kDebian = "/usr/sbin/nghttpx";
  if (found.empty() && access(kDebian, X_OK) == 0) found = kDebian;
  return found;
}

Nghttpx::Nghttpx(int backend_port, const KeyPair& pair, const std::vector<std::string>& options)
    : port_(free_port()) {
  write_file(dir_ / "key.pem", pair.key);
  write_file(dir_ / "cert.pem", pair.certificate);
  std::vector<std::string> command{program(),
                                   "--conf=/dev/null",
                                   "--workers=1",
                                   "--accesslog-file=/dev/null",
                                   "--errorlog-file=" + (dir_ / "log").string(),
                                   "--frontend=127.0.0.1," + std::to_string(port_),
                                   "--backend=127.0.0.1," + std::to_string(backend_port)};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back((dir_ / "key.pem").string());
  command.push_back((dir_ / "cert.pem").string());
  process_ = std::make_unique<Process>(command, dir_ / "log");
  if (!eventually([this] { return listens() || !process_->running(); }) || !process_->running())
    throw std::runtime_error("nghttpx does not run: " + read_file(dir_ / "log"));
}

bool Nghttpx::listens() const {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return connected;
}

void Nghttpx::retire() { process_->signal(SIGQUIT); }

}  // namespace lookout::test

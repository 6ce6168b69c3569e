#include "tests/apiserver/http_client.h"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include "lookout/base/ascii.h"

namespace lookout::apiserver {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;

}  // namespace

HttpClient::HttpClient(std::uint16_t port, const std::string& from) : socket_(context_) {
  socket_.open(asio::ip::tcp::v4());
  if (!from.empty()) socket_.bind({asio::ip::make_address(from), 0});
  socket_.connect({asio::ip::make_address("127.0.0.1"), port});
  // If the server does not respond, the test fails instead of hanging.
  timeval timeout{30, 0};
  setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
}

void HttpClient::send(std::string_view bytes) { asio::write(socket_, asio::buffer(bytes)); }

HttpAnswer HttpClient::request(const std::string& method, const std::string& target,
                               const std::string& body, const Headers& headers) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n";
  bool typed = false;
  for (const auto& [name, value] : headers) {
    text += name + ": " + value + "\r\n";
    typed = typed || name == "Content-Type";
  }
  if (!body.empty()) {
    if (!typed) text += "Content-Type: application/json\r\n";
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  send(text + "\r\n" + body);
  return read_answer();
}

HttpAnswer HttpClient::read_answer() {
  beast_http::response_parser<beast_http::string_body> parser;
  parser.body_limit(std::uint64_t{1} << 32);
  beast_http::read(socket_, buffer_, parser);
  HttpAnswer answer;
  answer.code = static_cast<int>(parser.get().result_int());
  for (const auto& field : parser.get())
    answer.headers[base::lower_case(std::string(field.name_string()))] = std::string(field.value());
  answer.body = std::move(parser.get().body());
  return answer;
}

std::string HttpClient::read_to_end() {
  std::string out(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  boost::system::error_code error;
  char chunk[4096];
  while (!error) {
    const std::size_t n = socket_.read_some(asio::buffer(chunk), error);
    out.append(chunk, n);
  }
  return out;
}

std::string HttpClient::read_some() {
  char chunk[65536];
  const std::size_t n = socket_.read_some(asio::buffer(chunk));
  return {chunk, n};
}

void HttpClient::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

HttpAnswer http(std::uint16_t port, const std::string& method, const std::string& target,
                const std::string& body, const HttpClient::Headers& headers) {
  HttpClient client(port);
  return client.request(method, target, body, headers);
}

}  // namespace lookout::apiserver

// Errors inside libcurl's callbacks.
#include "rest/curl_multi.h"

#include <curl/curl.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <new>
#include <string>

#include "lookout/base/event_loop.h"
#include "rest/call_from_c.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/http_server.h"

namespace lookout::rest::detail {
namespace {

TEST(CallFromCTest, KeepsTheException) {
  std::string failure;
  EXPECT_EQ(call_from_c(failure, 0, [] { return 7; }), 7);
  EXPECT_EQ(failure, "");
  EXPECT_EQ(call_from_c(failure, 0, []() -> int { throw std::bad_alloc(); }), 0);
  EXPECT_EQ(failure, "std::bad_alloc");
  EXPECT_EQ(call_from_c(failure, 0, []() -> int { throw 5; }), 0);
  EXPECT_EQ(failure, "an unknown failure");
}

curl_socket_t give_socket(void* socket, curlsocktype, curl_sockaddr*) {
  return *static_cast<int*>(socket);
}
int keep_open(void*, curl_socket_t) { return 0; }

// The socket is already registered elsewhere.
TEST(CurlMultiTest, ASocketThatCannotBePolledEndsTheTransfers) {
  EventLoop loop(1);
  const auto strand = boost::asio::make_strand(loop.context());
  test::HttpServer server([](test::HttpConnection& c) { c.wait_for_close(); });
  boost::asio::ip::tcp::socket taken(loop.context(), boost::asio::ip::tcp::v4());
  int fd = taken.native_handle();

  CURL* const easy = curl_easy_init();
  const std::string url = server.url();
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &give_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, &fd);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, &keep_open);
  std::promise<std::string> failed;
  std::shared_ptr<CurlMulti> multi;
  boost::asio::post(strand, [&] {
    multi = CurlMulti::create(
        strand, {[](CURL*, CURLcode code) { ADD_FAILURE() << curl_easy_strerror(code); },
                 [&](const std::string& why) {
                   multi->remove(easy);
                   failed.set_value(why);
                 },
                 [] {}, [](curl_socket_t) {}});
    EXPECT_EQ(multi->add(easy), CURLM_OK);
  });
  EXPECT_NE(test::get(failed.get_future()), "");

  std::promise<CURLMcode> again;
  CURL* const other = curl_easy_init();
  curl_easy_setopt(other, CURLOPT_URL, "http://127.0.0.1:1/");
  boost::asio::post(strand, [&] {
    again.set_value(multi->add(other));
    multi->remove(other);
    multi->close();
  });
  EXPECT_EQ(test::get(again.get_future()), CURLM_OK);
  std::promise<void> gone;
  boost::asio::post(strand, [&] {
    curl_easy_cleanup(easy);
    curl_easy_cleanup(other);
    multi.reset();
    gone.set_value();
  });
  test::get(gone.get_future());
}

}  // namespace
}  // namespace lookout::rest::detail

#include "serve/http_answer.hpp"

#include <gtest/gtest.h>

namespace patchbay::serve::http_answer_test {
namespace {

TEST(HttpAnswers, HaveTheirHeadersAndLength) {
    const HttpResponse response{.status = 404, .body = "{}", .headers = {{"Retry-After", "1"}}};
    EXPECT_EQ(whole_answer(response, Ending::kClose),
              "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
              "Content-Length: 2\r\n\r\n{}");
    EXPECT_EQ(whole_answer({.body = "ok", .content_type = "text/plain"}, Ending::kKeepAlive),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok");
    EXPECT_EQ(answer_head({.content_type = ""}, Ending::kSaidKeepAlive),
              "HTTP/1.1 200 OK\r\nConnection: keep-alive");
}

TEST(HttpAnswers, HaveNoBodyWhereTheyMayNot) {
    EXPECT_EQ(whole_answer({.body = "{}"}, Ending::kKeepAlive, true),
              "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(whole_answer({.status = 204, .content_type = ""}, Ending::kKeepAlive),
              "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(HttpAnswers, ComeInChunksWithTheirSize) {
    EXPECT_EQ(chunk_of("abc"), "3\r\nabc\r\n");
    EXPECT_EQ(chunk_of(std::string(26, 'x')), "1a\r\n" + std::string(26, 'x') + "\r\n");
}

}  // namespace
}  // namespace patchbay::serve::http_answer_test

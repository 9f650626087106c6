#include "serve/request_reader.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace patchbay::serve::request_reader_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

void put(RequestReader& reader, std::string_view bytes) {
    while (!bytes.empty()) {
        const boost::asio::mutable_buffer to = reader.prepare();
        const size_t n = std::min(to.size(), bytes.size());
        std::memcpy(to.data(), bytes.data(), n);
        reader.commit(n);
        bytes.remove_prefix(n);
    }
}

class RequestReaders : public ::testing::Test {
  protected:
    void come(std::string_view bytes) { put(reader_, bytes); }
    RequestReader::Outcome parse(std::string_view bytes) {
        come(bytes);
        return reader_.parse();
    }

    RequestReader reader_{100, 2000};
};

TEST_F(RequestReaders, ParseWhileBytesAreUnderWay) {
    come("GET /first HTTP/1.1\r\n\r\n");
    const boost::asio::mutable_buffer to = reader_.prepare(); // of a read that has begun
    ASSERT_TRUE(reader_.parse().request);
    const std::string_view next = "GET /next HTTP/1.1\r\n\r\n";
    std::memcpy(to.data(), next.data(), next.size());
    reader_.commit(next.size());
    const auto parsed = reader_.parse();
    ASSERT_TRUE(parsed.request);
    EXPECT_EQ(parsed.request->request.path, "/next");
}

TEST_F(RequestReaders, GiveARequestAsTheRoutesSeeIt) {
    const auto parsed = parse("POST /v1/x?a=b HTTP/1.1\r\nContent-LENGTH: 2\r\nX-Key: Abc\r\n\r\nhi");
    ASSERT_TRUE(parsed.request);
    const HttpRequest& request = parsed.request->request;
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/x");
    EXPECT_EQ(request.body, "hi");
    EXPECT_THAT(request.headers, Contains(Pair("x-key", "Abc")));
    EXPECT_TRUE(parsed.request->http_1_1);
    EXPECT_TRUE(parsed.request->keep_alive);
    EXPECT_FALSE(reader_.is_partial());
    EXPECT_EQ(reader_.buffered(), 0u);
}

TEST_F(RequestReaders, BoundWhatIsNoHeadAndNoBody) {
    const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const std::string begin : {"1;", "1\r\na\r\n0\r\nX: "}) {
        RequestReader reader(100, 2000);
        put(reader, head + begin + std::string(1500, 'x'));
        EXPECT_FALSE(reader.parse().rejection) << begin;
        put(reader, std::string(1500, 'x'));
        const auto rejected = reader.parse().rejection;
        ASSERT_TRUE(rejected) << begin;
        EXPECT_EQ(rejected->status, 431u);
        EXPECT_THAT(rejected->text, HasSubstr("more than 2000 bytes"));
        EXPECT_EQ(reader.buffered(), 0u);
    }
}

TEST_F(RequestReaders, GiveOneOfManyACall) {
    come("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.0\r\n\r\nGET /3 HTTP/1.1\r\nConnection: close\r\n\r\nGET /4");
    EXPECT_EQ(reader_.parse().request->request.path, "/1");
    const auto second = reader_.parse(), third = reader_.parse(), rest = reader_.parse();
    EXPECT_FALSE(second.request->http_1_1);
    EXPECT_FALSE(second.request->keep_alive);
    EXPECT_EQ(third.request->request.path, "/3");
    EXPECT_FALSE(third.request->keep_alive);
    EXPECT_FALSE(rest.request || rest.rejection);
    EXPECT_TRUE(reader_.is_partial());
}

TEST_F(RequestReaders, TakeRequestsByteByByte) {
    const std::string bytes = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n";
    for (size_t i = 0; i + 1 < bytes.size(); ++i) ASSERT_FALSE(parse({&bytes[i], 1}).request) << i;
    const auto parsed = parse({&bytes.back(), 1});
    ASSERT_TRUE(parsed.request);
    EXPECT_EQ(parsed.request->request.body, "hi!");
}

TEST_F(RequestReaders, TakeTargetsAsProxiesAreAsked) {
    EXPECT_EQ(parse("GET http://h:1/a?b HTTP/1.1\r\n\r\n").request->request.path, "/a");
    EXPECT_EQ(parse("GET https://h HTTP/1.1\r\n\r\n").request->request.path, "/");
}

TEST_F(RequestReaders, SayOnceForEachRequestThatItsClientWaits) {
    const std::string head = "POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(parse(head).expects_continue);
        EXPECT_FALSE(parse("x").expects_continue);
        const auto parsed = parse("yz");
        ASSERT_TRUE(parsed.request);
        EXPECT_FALSE(parsed.expects_continue);
    }
}

TEST_F(RequestReaders, RejectWhatIsTooLongOrNoRequestAndDiscardTheRest) {
    const struct {
        std::string bytes, text;
        unsigned status;
    } cases[] = {{"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", "the body has more than 100 bytes", 413},
                 {"GET / HTTP/1.1\r\nA: " + std::string(2000, 'x'), "the headers have more than 2000 bytes", 431},
                 {"hello\r\n\r\n", "this is not an HTTP request: ", 400}};
    for (const auto& c : cases) {
        RequestReader reader(100, 2000);
        put(reader, c.bytes);
        const auto parsed = reader.parse();
        ASSERT_TRUE(parsed.rejection) << c.text;
        EXPECT_EQ(parsed.rejection->status, c.status);
        EXPECT_THAT(parsed.rejection->text, HasSubstr(c.text));
        EXPECT_EQ(parsed.rejection->head.method, c.status == 413 ? "POST" : "");
        EXPECT_TRUE(reader.is_discarding());
        EXPECT_FALSE(reader.is_partial());
        put(reader, "GET / HTTP/1.1\r\n\r\n");
        EXPECT_FALSE(reader.parse().request);
        EXPECT_EQ(reader.buffered(), 0u);
    }
}

TEST_F(RequestReaders, RejectCodingsOfBodiesThatTheyDoNotKnow) {
    const std::string post = "POST / HTTP/1.1\r\n", body = "\r\nGET /inside HTTP/1.1\r\n\r\n";
    for (const std::string headers :
         {"Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip\r\nContent-Length: 25\r\n",
          "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
          "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: identity\r\n", "Transfer-Encoding:\r\n"}) {
        RequestReader reader(100, 2000);
        put(reader, post + headers + body);
        const auto parsed = reader.parse();
        ASSERT_TRUE(parsed.rejection) << headers;
        EXPECT_EQ(parsed.rejection->status, 501u) << headers;
        EXPECT_THAT(parsed.rejection->text, HasSubstr("is not supported, expected chunked"));
        EXPECT_THAT(parsed.rejection->head.headers, Contains(Pair("transfer-encoding", ::testing::_)));
        EXPECT_FALSE(reader.parse().request) << headers;
    }
    put(reader_, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    const auto old = reader_.parse();
    ASSERT_TRUE(old.rejection);
    EXPECT_EQ(old.rejection->status, 400u);
    RequestReader reader(100, 2000);
    put(reader, post + "transfer-encoding:  CHUNKED \r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    const auto known = reader.parse();
    ASSERT_TRUE(known.request);
    EXPECT_EQ(known.request->request.body, "hi");
}

TEST_F(RequestReaders, AskBeforeTheyReadABody) {
    size_t asked = 0;
    const auto takes = [&](const HttpRequest& request) {
        asked += 1;
        return request.path == "/yes" && request.header("x-key") == "k";
    };
    for (const std::string last : {"Content-Length: 50", "Transfer-Encoding: chunked"}) {
        const std::string rest = " HTTP/1.1\r\nX-Key: k\r\nExpect: 100-continue\r\n" + last + "\r\n\r\n";
        RequestReader refuses(100, 2000, takes), takes_it(100, 2000, takes);
        put(refuses, "POST /no" + rest);
        const auto refused = refuses.parse();
        ASSERT_TRUE(refused.request) << last;
        EXPECT_EQ(refused.request->request.path, "/no");
        EXPECT_FALSE(refused.request->keep_alive);
        EXPECT_FALSE(refused.expects_continue);
        EXPECT_TRUE(refuses.is_discarding());
        put(takes_it, "POST /yes" + rest);
        const auto taken = takes_it.parse();
        EXPECT_FALSE(taken.request) << last;
        EXPECT_TRUE(taken.expects_continue);
    }
    EXPECT_EQ(asked, 4u);
    RequestReader whole(100, 2000, takes); // nothing is left to read
    put(whole, "POST /no HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_TRUE(whole.parse().request->keep_alive);
    EXPECT_EQ(asked, 4u);
}

TEST_F(RequestReaders, AreFullWhereMuchWasReadAhead) {
    come("GET /1 HTTP/1.1\r\n\r\n");
    EXPECT_FALSE(reader_.is_full());
    come(std::string(256u << 10, 'x'));
    EXPECT_TRUE(reader_.is_full());
    reader_.discard();
    EXPECT_FALSE(reader_.is_full());
}

}  // namespace
}  // namespace patchbay::serve::request_reader_test

// Who may use the admin address, and how it ends.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "serve/admin_fixture.hpp"

namespace patchbay::serve::testing::admin_lifecycle_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(AdminAddress, OnTcpNeedsItsToken) {
    AdminAddress address;
    address.host = "127.0.0.1";
    address.token = "0123456789abcdef";
    const Controlled engine(Running::demo_model(), address);
    EXPECT_EQ(engine.status()["state"], "running");
    const uint16_t port = engine.address().port;
    for (const char* header : {"", "Authorization: Bearer 0123456789abcdeg\r\n", "Authorization: 0123456789abcdef\r\n",
                               "Authorization: Bearer 0123456789abcdef0\r\n"})
        for (const char* path : {"/swap", "/drain", "/reload"})
            EXPECT_EQ(post(port, path, "{}", header).status, 401) << header << path;
    EXPECT_EQ(get(port, "/status").status, 401);
    EXPECT_EQ(get(port, "/plugins").status, 401);
    EXPECT_EQ(engine.status()["state"], "running"); // none of them drained it
}

TEST(AdminAddress, OnTcpReadsNoBodyThatComesWithoutTheToken) {
    AdminAddress address;
    address.host = "127.0.0.1";
    address.token = "0123456789abcdef";
    const Controlled engine(Running::demo_model(), address);
    const struct {
        const char *line, *token;
        int status;
    } cases[] = {{"POST /swap", "0123456789abcdeg", 401},
                 {"POST /no/such", "0123456789abcdef", 404},
                 {"POST /status", "0123456789abcdef", 405}};
    for (const auto& c : cases) {
        HttpClient client(engine.address().port);
        client.send(std::string(c.line) + " HTTP/1.1\r\nAuthorization: Bearer " + c.token +
                    "\r\nExpect: 100-continue\r\nContent-Length: 10000\r\n\r\n{"); // no more comes
        const Answer answer = client.read_answer();
        EXPECT_EQ(answer.status, c.status) << c.line;
        EXPECT_EQ(answer.headers.at("connection"), "close");
        EXPECT_EQ(client.read_rest(), "");
    }
}

TEST(AdminAddress, IsForItsUserAloneAndGoneWithTheServer) {
    fs::path socket;
    const TemporaryFolder folder;
    {
        const Controlled engine;
        socket = engine.address().socket;
        struct stat info {};
        ASSERT_EQ(lstat(socket.c_str(), &info), 0);
        EXPECT_TRUE(S_ISSOCK(info.st_mode));
        EXPECT_EQ(info.st_mode & 07777, 0600u);
        engine.server.server->stop();
        EXPECT_FALSE(fs::exists(fs::symlink_status(socket)));
    }
    AdminAddress gone;
    gone.socket = socket;
    const auto answer = ask_admin(gone, "GET", "/status");
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error(), HasSubstr("no engine listens on"));
}

TEST(AdminDrain, LetsStreamsEndAndThenTheServer) {
    const Controlled engine;
    const std::vector<int> expected = engine.server.complete(greedy("The king", 200))["choices"][0]["token_ids"];
    HttpClient client(engine.server.port());
    Json body = greedy("The king", 200);
    body["stream"] = true;
    client.post("/v1/completions", body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    const auto first = client.read_event();
    ASSERT_TRUE(first);
    const Said drained = engine.ask("POST", "/drain");
    EXPECT_EQ(drained.status, 202u);
    EXPECT_EQ(drained.body["state"], "draining");
    size_t tokens = Json::parse(*first)["choices"][0]["token_ids"].size();
    std::string last;
    while (const auto event = client.read_event()) {
        last = *event;
        if (*event != "[DONE]") tokens += Json::parse(*event)["choices"][0]["token_ids"].size();
    }
    EXPECT_EQ(last, "[DONE]");
    EXPECT_EQ(tokens, expected.size());
    client.read_rest();
    engine.server.server->wait();
    EXPECT_EQ(engine.server.server->engine().status().state, service::ServiceState::kStopped);
}

Json finish_reason_of(HttpClient& client) {
    Json last;
    while (const auto event = client.read_event())
        if (*event != "[DONE]") last = Json::parse(*event)["choices"][0]["finish_reason"];
    return last;
}

TEST(AdminDrain, LeavesASignalTheFirstOne) {
    const Controlled engine;
    engine.server.server->stop_on_signals();
    HttpClient client(engine.server.port());
    Json body = greedy("The king", 1500);
    body["stream"] = true;
    client.post("/v1/completions", body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    EXPECT_EQ(engine.ask("POST", "/drain").status, 202u);
    raise(SIGTERM);
    EXPECT_EQ(finish_reason_of(client), "length");
    client.read_rest();
    engine.server.server->wait();
}

TEST(AdminDrain, EndsAtOnceByTheSecondSignal) {
    const Controlled engine;
    engine.server.server->stop_on_signals();
    HttpClient client(engine.server.port());
    client.post("/v1/completions", long_stream().dump());
    ASSERT_EQ(client.read_head().status, 200);
    EXPECT_EQ(engine.ask("POST", "/drain").status, 202u);
    for (const int signal : {SIGTERM, SIGINT}) raise(signal);
    engine.server.server->wait();
    engine.server.server->stop();
    EXPECT_EQ(finish_reason_of(client), "abort");
}

}  // namespace
}  // namespace patchbay::serve::testing::admin_lifecycle_test

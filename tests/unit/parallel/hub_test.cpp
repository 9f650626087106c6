// Rank 0 and the others, as threads of this process with sockets between them: joining, the store, replies, and who is
// found to be the cause when one goes.
#include "parallel/hub.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "parallel/address.hpp"
#include "parallel/bytes.hpp"
#include "parallel/group.hpp"
#include "parallel/spoke.hpp"

namespace patchbay::parallel::hub_test {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Deadlines kLong{60'000'000'000, 20'000'000'000, 60'000'000'000}; // of which none is over in a test

struct Pair {
    std::unique_ptr<Hub> hub;
    std::vector<std::unique_ptr<Spoke>> spokes; // rank r at r − 1
};

Hello hello(uint32_t rank, uint32_t size, const std::string& job = "job") { return {job, rank, size, 100 + rank, "h"}; }

Endpoint address_of(const Socket& listener) {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    return {"127.0.0.1", ntohs(at.sin_port)};
}

std::pair<Socket, Socket> sockets() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {Socket(ends[0]), Socket(ends[1])};
}

Pair joined(uint32_t size, const Deadlines& deadlines = kLong) {
    std::vector<Member> members;
    std::vector<Socket> theirs;
    for (uint32_t r = 1; r < size; ++r) {
        auto [a, b] = sockets();
        members.push_back({std::move(a), r, 0});
        theirs.push_back(std::move(b));
    }
    Pair out;
    out.hub = std::make_unique<Hub>("job", size, std::move(members), Socket(), deadlines);
    for (uint32_t r = 1; r < size; ++r)
        out.spokes.push_back(std::make_unique<Spoke>(std::move(theirs[r - 1]), hello(r, size), deadlines, nullptr));
    const auto done = out.hub->wait_until_joined();
    EXPECT_TRUE(done) << done.error();
    return out;
}

TEST(Hub, KnowsWhoJoined) {
    const Pair p = joined(3);
    const auto ranks = p.hub->ranks();
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(text_of(ranks[0]), "rank 1 (h, pid 101)");
    EXPECT_EQ(text_of(ranks[1]), "rank 2 (h, pid 102)");
}

TEST(Hub, SaysWhoDidNotJoin) {
    auto [ours, theirs] = sockets();
    std::vector<Member> members;
    members.push_back({std::move(ours), 1, 0});
    Deadlines d = kLong;
    d.join = 100'000'000;
    Hub hub("job", 3, std::move(members), Socket(), d);
    EXPECT_THAT(hub.wait_until_joined().error(), HasSubstr("did not join within 0.1 s: 1, 2"));
}

TEST(Addresses, ThatAreInUseAreUnavailableAndWrongOnesInvalid) {
    const auto first = listen_at({"127.0.0.1", 0});
    ASSERT_TRUE(first) << first.error();
    EXPECT_EQ(listen_at(address_of(*first)).code(), StatusCode::kUnavailable);
    EXPECT_EQ(listen_at({"192.0.2.1", 0}).code(), StatusCode::kInvalid) << "no address of this machine";
    EXPECT_EQ(parse_endpoint("node1").code(), StatusCode::kInvalid);
}

TEST(Hub, RefusesStrangersAndStaysOpenForTheRightOnes) {
    auto listener = listen_at({"127.0.0.1", 0});
    ASSERT_TRUE(listener) << listener.error();
    const Endpoint at = address_of(*listener);
    Hub hub("job", 2, {}, *std::move(listener), kLong);
    const auto refusal = [&](const Hello& h) {
        auto socket = connect_to(at, kLong.join);
        EXPECT_TRUE(socket);
        Spoke spoke(*std::move(socket), h, kLong, nullptr);
        return spoke.next().failure();
    };
    EXPECT_EQ(refusal(hello(1, 2, "another")).text,
              "rank 0 refuses this rank: this is another job's rank 0 ('job', not 'another')");
    EXPECT_EQ(refusal(hello(1, 2, "another")).code, StatusCode::kInvalid);
    EXPECT_EQ(refusal(hello(1, 3)).text, "rank 0 refuses this rank: there are 2 ranks here, not 3");
    EXPECT_EQ(refusal(hello(2, 2)).text, "rank 0 refuses this rank: there is no rank 2 to join");
    {
        auto socket = connect_to(at, kLong.join);
        ASSERT_TRUE(socket);
        const std::string noise = "GET / HTTP/1.1\r\n\r\n";
        EXPECT_GT(write(socket->get(), noise.data(), noise.size()), 0);
    }
    auto socket = connect_to(at, kLong.join);
    ASSERT_TRUE(socket);
    Spoke right(*std::move(socket), hello(1, 2), kLong, nullptr);
    EXPECT_TRUE(hub.wait_until_joined());
    EXPECT_EQ(hub.address(), "127.0.0.1");
    EXPECT_TRUE(hub.begin("what")); // the strangers are no failure
}

TEST(Hub, RefusalsThatNoHubWouldSendAreReadWithCare) {
    const auto refused_with = [](std::string_view bytes) {
        auto [ours, theirs] = sockets();
        Connection rank_0(std::move(ours));
        EXPECT_TRUE(rank_0.post(MessageType::kRefused, bytes));
        Spoke spoke(std::move(theirs), hello(1, 2), kLong, nullptr);
        return spoke.next().failure();
    };
    ByteWriter full, unknown;
    full.put(fail(StatusCode::kExhausted, "full"));
    unknown.put(uint8_t{200});
    unknown.put(std::string_view("why"));
    EXPECT_EQ(refused_with(full.bytes()).code, StatusCode::kExhausted);
    EXPECT_EQ(refused_with(unknown.bytes()).code, StatusCode::kFailed);
    EXPECT_EQ(refused_with(unknown.bytes()).text, "rank 0 refuses this rank: why");
    EXPECT_EQ(refused_with("a text alone").text, "rank 0's refusal of this rank ends too early");
    EXPECT_EQ(refused_with("").code, StatusCode::kUnavailable);
}

TEST(Hub, DropsStrangersThatKeepThePlacesOfRanks) {
    auto listener = listen_at({"127.0.0.1", 0});
    ASSERT_TRUE(listener) << listener.error();
    const Endpoint at = address_of(*listener);
    Deadlines d = kLong;
    d.hello = 200'000'000;
    Hub hub("job", 2, {}, *std::move(listener), d);
    std::vector<Socket> silent; // as many as it has places for
    for (int i = 0; i < 64; ++i) {
        auto socket = connect_to(at, kLong.join);
        ASSERT_TRUE(socket) << socket.error();
        silent.push_back(*std::move(socket));
    }
    auto socket = connect_to(at, kLong.join);
    ASSERT_TRUE(socket);
    Spoke right(*std::move(socket), hello(1, 2), kLong, nullptr);
    const auto joined = hub.wait_until_joined();
    EXPECT_TRUE(joined) << joined.error();
}

TEST(Hub, LetsARankInThoughStrangersByTheHundredAreSilent) {
    auto listener = listen_at({"127.0.0.1", 0});
    ASSERT_TRUE(listener) << listener.error();
    const Endpoint at = address_of(*listener);
    Deadlines d = kLong;
    d.join = d.hello = 60'000'000'000; // none of them goes by itself
    Hub hub("job", 2, {}, *std::move(listener), d);
    std::vector<Socket> silent;
    for (int i = 0; i < 200; ++i) {
        auto socket = connect_to(at, kLong.join);
        ASSERT_TRUE(socket) << socket.error();
        silent.push_back(*std::move(socket));
    }
    auto socket = connect_to(at, kLong.join);
    ASSERT_TRUE(socket);
    Spoke right(*std::move(socket), hello(1, 2), kLong, nullptr);
    auto joined = std::async([&] { return hub.wait_until_joined(); });
    auto heard = std::async([&] { return right.next(); }); // fails where nothing is heard from rank 0
    ASSERT_EQ(joined.wait_for(30s), std::future_status::ready) << (heard.wait(), heard.get().error());
    EXPECT_TRUE(joined.get());
    ASSERT_TRUE(hub.begin("what"));
    const auto begun = heard.get();
    ASSERT_TRUE(begun) << begun.error();
    EXPECT_EQ(begun->bytes, "what");
    ASSERT_TRUE(right.post(MessageType::kEnded, ""));
    hub.end("");
}

TEST(Hub, SharesAStoreForTheSession) {
    Pair p = joined(3);
    ASSERT_TRUE(p.hub->begin("what"));
    auto waits = std::async([&] { return p.spokes[1]->get("a/0"); }); // before it is set
    ASSERT_TRUE(p.spokes[0]->set("a/1", "one"));
    ASSERT_TRUE(p.hub->set("a/0", "zero"));
    EXPECT_EQ(*waits.get(), "zero");
    EXPECT_EQ(*p.hub->get("a/1"), "one");
    EXPECT_EQ(*p.spokes[1]->get("a/1"), "one");
    EXPECT_EQ(p.hub->set("a/0", "again").error(), "'a/0' is set already");
    auto never = std::async([&] { return p.spokes[0]->get("never"); });
    p.spokes[1]->watch([] {});
    EXPECT_EQ(p.spokes[1]->next()->type, MessageType::kBegin);
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kEnded, ""));
    ASSERT_TRUE(p.spokes[1]->post(MessageType::kEnded, ""));
    p.hub->end("");
    EXPECT_FALSE(never.get()); // it will not be set any more
}

TEST(Hub, GathersOneReplyOfEachRankAndSendsAllTheSame) {
    Pair p = joined(3);
    ASSERT_TRUE(p.hub->begin("what"));
    for (const auto& spoke : p.spokes) EXPECT_EQ(spoke->next()->bytes, "what");
    ASSERT_TRUE(p.spokes[1]->post(MessageType::kReply, "of 2"));
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kReply, "of 1"));
    EXPECT_THAT(*p.hub->gather(), ::testing::ElementsAre("of 1", "of 2"));
    ASSERT_TRUE(p.hub->broadcast(MessageType::kGo, "on"));
    for (const auto& spoke : p.spokes) EXPECT_EQ(spoke->next()->bytes, "on");
}

std::string message_of(const Failure& why) {
    ByteWriter out;
    out.put(why);
    return std::string(out.bytes());
}

TEST(Hub, BlamesTheRankThatIsGoneAndNotTheOneThatMissesIt) {
    Pair p = joined(3);
    ASSERT_TRUE(p.hub->begin("what"));
    std::promise<void> reported;
    p.hub->watch([&] { reported.set_value(); });
    ASSERT_TRUE(p.spokes[1]->post(MessageType::kFailed, message_of(fail("all_reduce: lost the connection"))));
    p.spokes[0].reset(); // rank 1, of which rank 2 knew first
    ASSERT_EQ(reported.get_future().wait_for(60s), std::future_status::ready);
    EXPECT_EQ(p.hub->explain(fail("my own")).text, "rank 1 (h, pid 101) closed its connection");
    EXPECT_FALSE(p.hub->gather());
    EXPECT_FALSE(p.hub->step("", Hub::IfItFails::kEnds));
    p.hub->watch(nullptr);
}

TEST(Hub, PassesOnWhatARankSaysItCannotDo) {
    Pair p = joined(2);
    ASSERT_TRUE(p.hub->begin("what"));
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kFailed, message_of(not_found("no such folder"))));
    const Failure why = p.hub->explain(fail("my own"));
    EXPECT_EQ(why.text, "rank 1 (h, pid 101): no such folder");
    EXPECT_EQ(why.code, StatusCode::kNotFound);
    EXPECT_EQ(p.hub->gather().code(), StatusCode::kNotFound);
    EXPECT_EQ(p.hub->broadcast(MessageType::kGo, "").code(), StatusCode::kNotFound);
}

TEST(Hub, ServesTheNextSessionWithRanksThatAreWell) {
    Pair p = joined(3);
    ASSERT_TRUE(p.hub->begin("one"));
    EXPECT_EQ(p.spokes[0]->next()->bytes, "one");
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kFailed, message_of(not_found("no such folder"))));
    EXPECT_EQ(p.hub->explain(fail("")).text, "rank 1 (h, pid 101): no such folder");
    EXPECT_FALSE(p.hub->begin("too early"));
    for (const auto& spoke : p.spokes) ASSERT_TRUE(spoke->post(MessageType::kEnded, ""));
    p.hub->end("");
    ASSERT_TRUE(p.hub->begin("two"));
    EXPECT_EQ(p.spokes[0]->next()->type, MessageType::kEnd); // of the first
    EXPECT_EQ(p.spokes[0]->next()->bytes, "two");
}

TEST(Hub, ServesNoFurtherSessionWithoutARankThatIsGone) {
    Pair p = joined(3);
    ASSERT_TRUE(p.hub->begin("one"));
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kFailed, message_of(not_found("no such folder"))));
    EXPECT_EQ(p.hub->explain(fail("")).text, "rank 1 (h, pid 101): no such folder");
    p.spokes[1].reset();
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kEnded, ""));
    p.hub->end("");
    EXPECT_FALSE(p.hub->begin("two"));
}

TEST(Hub, FindsARankThatLoadsForEver) {
    Deadlines d = kLong;
    d.load = 100'000'000;
    Pair p = joined(3, d);
    ASSERT_TRUE(p.hub->begin("what"));
    EXPECT_EQ(p.hub->get("never").error(), "no rank has set 'never' within 0.1 s");
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kReply, "loaded"));
    ASSERT_TRUE(p.spokes[0]->set("loaded", ""));
    for (int look = 0; look < 600 && !p.hub->get("loaded"); ++look) {} // the reply has come, too
    EXPECT_EQ(p.hub->gather().error(), "rank 2 (h, pid 102) hangs: it has been loading for 0.1 s");
}

TEST(Hub, FindsARankThatConnectsForEver) {
    Pair p = joined(2, {kLong.join, kLong.heartbeat, 100'000'000});
    ASSERT_TRUE(p.hub->begin("what"));
    EXPECT_EQ(p.hub->gather(Hub::Doing::kConnects).error(),
              "rank 1 (h, pid 101) hangs: it has been connecting its device for 0.1 s");
}

TEST(Hub, FindsARankThatComputesForEver) {
    Pair p = joined(2, {kLong.join, kLong.heartbeat, 300'000'000});
    ASSERT_TRUE(p.hub->begin("what"));
    ASSERT_TRUE(p.hub->step("a batch", Hub::IfItFails::kEnds)); // signs of life come, but the step is never done
    EXPECT_THAT(p.hub->explain(fail("")).text,
                HasSubstr("rank 1 (h, pid 101) hangs: it has been computing a step for"));
}

TEST(Hub, FindsARankThatHangsInASwap) {
    Pair p = joined(2, {kLong.join, kLong.heartbeat, 300'000'000});
    ASSERT_TRUE(p.hub->begin("what"));
    const RankInfo rank = p.hub->ranks()[0];
    ASSERT_TRUE(p.spokes[0]->set(swap_key(1, 1), "done"));
    EXPECT_EQ(*p.hub->take_from(rank, swap_key(1, 1)), "done");
    const std::string why = "rank 1 (h, pid 101) hangs: it has been swapping a plugin for 0.3 s";
    EXPECT_EQ(p.hub->take_from(rank, swap_key(2, 1)).error(), why);
    EXPECT_EQ(p.hub->step("a batch", Hub::IfItFails::kEnds).error(), why) << "it is for good";
}

std::string of_step(uint64_t number) {
    ByteWriter out;
    out.put(number);
    return std::string(out.bytes());
}
std::string of_step(uint64_t number, const Failure& why) {
    ByteWriter out;
    out.put(number);
    out.put(why);
    return std::string(out.bytes());
}

TEST(Hub, EndsTheSessionWhereAStepFailsThatIsNotRedone) {
    Pair p = joined(2);
    ASSERT_TRUE(p.hub->begin("what"));
    ASSERT_TRUE(p.hub->step("a batch", Hub::IfItFails::kEnds));
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kStepFailed, of_step(1, fail(StatusCode::kExhausted, "no memory"))));
    EXPECT_EQ(p.hub->explain(fail("my own")).text, "rank 1 (h, pid 101): no memory");
    EXPECT_FALSE(p.hub->step("a batch", Hub::IfItFails::kIsRedone));
}

TEST(Hub, GoesOnAfterAStepThatIsRedone) {
    Pair p = joined(3);
    ASSERT_TRUE(p.hub->begin("what"));
    std::promise<void> failed, disconnected;
    p.hub->watch([&] { failed.set_value(); });
    p.spokes[0]->watch([&, first = true]() mutable {
        if (std::exchange(first, false)) disconnected.set_value();
    });
    ASSERT_TRUE(p.hub->step("a batch", Hub::IfItFails::kIsRedone));
    ASSERT_TRUE(p.spokes[1]->post(MessageType::kStepFailed, of_step(1, fail(StatusCode::kExhausted, "no memory"))));
    ASSERT_EQ(failed.get_future().wait_for(60s), std::future_status::ready); // this rank waits for that one no longer
    EXPECT_EQ(p.hub->wait_for_step().error(), "rank 2 (h, pid 102): no memory");
    const auto why = p.hub->reconnect("a number");
    ASSERT_TRUE(why && *why);
    EXPECT_EQ((*why)->text, "rank 2 (h, pid 102): no memory");
    EXPECT_EQ((*why)->code, StatusCode::kExhausted);
    ASSERT_EQ(disconnected.get_future().wait_for(60s), std::future_status::ready); // nor does the other one
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kStepFailed, of_step(1, fail("disconnected")))); // which is no news
    for (const auto& spoke : p.spokes) {
        EXPECT_EQ(spoke->next()->type, MessageType::kBegin);
        EXPECT_EQ(spoke->next()->type, MessageType::kStep);
        EXPECT_EQ(spoke->next()->bytes, "a number");
        ASSERT_TRUE(spoke->post(MessageType::kReply, ""));
    }
    ASSERT_TRUE(p.hub->gather());
    ASSERT_TRUE(p.hub->step("a batch", Hub::IfItFails::kIsRedone));
    for (const auto& spoke : p.spokes) ASSERT_TRUE(spoke->post(MessageType::kStepDone, of_step(2)));
    EXPECT_TRUE(p.hub->wait_for_step());
    p.hub->watch(nullptr);
}

TEST(Hub, KeepsNoKeysOfConnectionsBefore) {
    Pair p = joined(2);
    ASSERT_TRUE(p.hub->begin("what"));
    for (uint32_t connection = 0; connection < 20; ++connection) {
        for (uint32_t i = 0; i < 300; ++i)
            ASSERT_TRUE(p.spokes[0]->set(device_key(connection, std::to_string(i).c_str()), "an address"));
        ASSERT_TRUE(p.hub->get(device_key(connection, "299"))) << connection << ": " << p.hub->check().error();
        if (connection > 0) p.hub->forget(device_key(connection - 1, ""));
    }
}

TEST(Hub, WaitsForAllRanksWhereTheStepMayBeRedone) {
    Pair p = joined(3);
    ASSERT_TRUE(p.hub->begin("what"));
    ASSERT_TRUE(p.hub->step("a batch", Hub::IfItFails::kIsRedone));
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kStepDone, of_step(1)));
    auto all = std::async([&] { return p.hub->wait_for_step(); });
    EXPECT_EQ(all.wait_for(50ms), std::future_status::timeout);
    ASSERT_TRUE(p.spokes[1]->post(MessageType::kStepDone, of_step(1)));
    EXPECT_TRUE(all.get());
    ASSERT_TRUE(p.hub->step("a batch", Hub::IfItFails::kIsRedone));
    p.spokes[1].reset();
    EXPECT_EQ(p.hub->wait_for_step().error(), "rank 2 (h, pid 102) closed its connection");
}

TEST(Hub, TakesNoNonsenseFromARank) {
    for (const auto& [type, bytes, wrong] :
         {std::tuple(MessageType::kStepDone, std::string("abc"), "the end of a step ends too early"),
          std::tuple(MessageType::kStepDone, std::string(8, '\x7f'), "has done a step that is still to come"),
          std::tuple(MessageType::kStepFailed, std::string(8, '\x7f'), "the fault of a step ends too early"),
          std::tuple(MessageType::kFailed, std::string("no"), "why it cannot continue ends too early"),
          std::tuple(MessageType::kStoreSet, std::string(8, '\x7f'), "what it stores ends too early"),
          std::tuple(MessageType::kQuit, std::string(), "sent a message that is rank 0's to send")}) {
        Pair p = joined(2);
        ASSERT_TRUE(p.hub->begin("what"));
        ASSERT_TRUE(p.spokes[0]->post(type, bytes));
        EXPECT_EQ(p.hub->explain(fail("")).text, std::string("rank 1 (h, pid 101) ") + wrong);
    }
}

TEST(Group, AgreesOnWhatAllRanksHaveAndRefusesOneThatHasSomethingElse) {
    Pair p = joined(3);
    const std::shared_ptr<Hub> hub = std::move(p.hub);
    const auto group = Group::begin(hub, {"model: x", {}, 1'000});
    ASSERT_TRUE(group);
    EXPECT_EQ((*group)->wire().size, 3u);
    const auto all_reply = [&](const std::string& one, const std::string& two) {
        EXPECT_TRUE(p.spokes[0]->post(MessageType::kReply, one));
        EXPECT_TRUE(p.spokes[1]->post(MessageType::kReply, two));
    };
    const std::vector<Fact> ours = {{"model", "abc"}}, other = {{"model", "def"}};
    all_reply(bytes_of(ours), bytes_of(ours));
    EXPECT_TRUE((*group)->check_equal(ours));
    all_reply(bytes_of(ours), bytes_of(other));
    EXPECT_EQ((*group)->check_equal(ours).error(),
              "rank 2 (h, pid 102) would not compute the same: model is def there, abc on rank 0");
    const auto number = [](uint32_t n) {
        ByteWriter out;
        out.put(n);
        return std::string(out.bytes());
    };
    all_reply(number(70), number(60));
    EXPECT_EQ(*(*group)->agree_blocks(64), 60u);
    all_reply(number(70), "");
    EXPECT_EQ((*group)->agree_blocks(64).error(), "a rank's number of KV blocks ends too early");
    for (const auto& spoke : p.spokes) ASSERT_TRUE(spoke->post(MessageType::kEnded, ""));
}

TEST(Group, IsRefusedWhileAnotherHasTheRanksWhichGoesOn) {
    Pair p = joined(2);
    const std::shared_ptr<Hub> hub = std::move(p.hub);
    const auto group = Group::begin(hub, {"model: x", {}, 1'000});
    ASSERT_TRUE(group);
    const auto second = Group::begin(hub, {"model: y", {}, 1'000});
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error(), HasSubstr("busy with another engine"));
    EXPECT_EQ(p.spokes[0]->next()->type, MessageType::kBegin);
    ASSERT_TRUE(hub->broadcast(MessageType::kGo, "on"));
    EXPECT_EQ(p.spokes[0]->next()->type, MessageType::kGo) << "its session was ended";
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kEnded, ""));
}

TEST(Group, KeepsForDevicesWhatTheContractSaysOnEveryRank) {
    Pair p = joined(2);
    const std::shared_ptr<Hub> hub = std::move(p.hub);
    const auto group = Group::begin(hub, {"model: x", {}, 1'000});
    ASSERT_TRUE(group);
    const pb_group& wire = (*group)->wire();
    const std::string key(128, 'k'), value(64 << 10, 'v');
    const auto set = [&](const std::string& k, uint64_t bytes) {
        const std::string text(bytes, 'v');
        return wire.set(wire.ctx, k.c_str(), text.data(), bytes);
    };
    EXPECT_EQ(set("a-Z/0._", value.size()), PB_OK);
    for (const std::string& wrong : {std::string(), key + "k", std::string("a key"), std::string("a:b")})
        EXPECT_EQ(set(wrong, 1), PB_INVALID) << wrong;
    EXPECT_EQ(set("long", value.size() + 1), PB_INVALID);
    ASSERT_TRUE(p.spokes[0]->set(device_key(0, key.c_str()), value));
    std::string got(value.size(), ' ');
    uint64_t bytes = got.size();
    EXPECT_EQ(wire.get(wire.ctx, key.c_str(), got.data(), &bytes), PB_OK);
    EXPECT_EQ(got, value);
    EXPECT_EQ(wire.get(wire.ctx, "a:b", got.data(), &bytes), PB_INVALID) << "nor is it waited for";
    ASSERT_TRUE(p.spokes[0]->set(device_key(UINT64_MAX, key.c_str()), value));
    EXPECT_TRUE(hub->get(device_key(UINT64_MAX, key.c_str()))) << "whichever the connection";
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kEnded, ""));
}

TEST(Spoke, SaysThatTheSessionIsOver) {
    Pair p = joined(2);
    ASSERT_TRUE(p.hub->begin("what"));
    EXPECT_EQ(p.spokes[0]->next()->type, MessageType::kBegin);
    EXPECT_TRUE(p.spokes[0]->check());
    ASSERT_TRUE(p.spokes[0]->post(MessageType::kEnded, ""));
    p.hub->end("");
    EXPECT_EQ(p.spokes[0]->next()->type, MessageType::kEnd);
    EXPECT_EQ(p.spokes[0]->check().error(), "the session is over");
}

TEST(Spoke, LearnsThatRank0IsGone) {
    Pair p = joined(2);
    std::promise<void> reported;
    p.spokes[0]->watch([&] { reported.set_value(); });
    p.hub.reset();
    ASSERT_EQ(reported.get_future().wait_for(60s), std::future_status::ready);
    EXPECT_EQ(p.spokes[0]->next()->type, MessageType::kQuit); // it said so before
    EXPECT_EQ(p.spokes[0]->next().error(), "rank 0 closed its connection");
}

TEST(Spoke, LearnsThatRank0Hangs) {
    auto [ours, theirs] = sockets();
    Deadlines d = kLong;
    d.heartbeat = 1'000'000'000;
    Spoke spoke(std::move(ours), hello(1, 2), d, nullptr); // there is never an answer
    EXPECT_EQ(spoke.next().error(), "rank 0 hangs: no sign of life for more than 1.0 s");
}

}  // namespace
}  // namespace patchbay::parallel::hub_test

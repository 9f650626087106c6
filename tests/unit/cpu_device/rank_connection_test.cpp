// A rank's connection: made anew after a failed step, given up before, while and after it is made.
#include "rank_connection.hpp"

#include <gtest/gtest.h>

#include "bare_host.hpp"
#include "ops.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

struct Communicator::Links {
    bool connected = false, aborted = false;
};

Communicator::Communicator(const pb_group& group)
    : rank_(group.rank), size_(group.size), links_(std::make_unique<Links>()) {}
Communicator::~Communicator() = default;
void Communicator::connect(const pb_group&) {
    if (links_->aborted) throw Error(PB_FAILED, "given up");
    links_->connected = true;
}
void Communicator::all_reduce(float* x, int64_t count) { // as if all ranks had the same
    if (links_->aborted || !links_->connected) throw Error(PB_FAILED, "given up");
    for (int64_t i = 0; i < count; ++i) x[i] *= static_cast<float>(size_);
}
void Communicator::all_gather(float*, const float*, int64_t, int64_t) {}
void Communicator::abort() noexcept { links_->aborted = true; }

namespace rank_connection_test {
namespace {

class RankConnectionTest : public testing::Test {
  protected:
    RankConnectionTest() {
        group_.struct_size = sizeof group_;
        group_.size = 3;
    }
    void add() {
        connection_.communicate(4, [&](Communicator& c) { c.all_reduce(&sum_, 1); });
    }

    const pb_host host_ = bare_host();
    pb_group group_{};
    RankConnection connection_{host_};
    float sum_ = 1;
};

TEST_F(RankConnectionTest, ExchangesOnceItIsConnected) {
    EXPECT_EQ(connection_.size(), 1u);
    connection_.connect(group_);
    EXPECT_EQ(connection_.size(), 3u);
    add();
    EXPECT_EQ(sum_, 3);
}

TEST_F(RankConnectionTest, IsGivenUpBeforeItIsMade) {
    connection_.disconnect();
    EXPECT_THROW(connection_.connect(group_), Error);
}

TEST_F(RankConnectionTest, IsMadeAnewAfterItWasGivenUp) {
    connection_.connect(group_);
    connection_.disconnect();
    EXPECT_THROW(add(), Error);
    connection_.connect(group_);
    add();
    EXPECT_EQ(sum_, 3);
}

TEST_F(RankConnectionTest, AnOpOfALostConnectionEndsItsStep) {
    const kernels::Machine machine{};
    StepFault fault;
    OpContext context(machine, connection_, fault);
    pb_ops ops = cpu_ops(context);
    connection_.connect(group_);
    add_collectives(ops);
    const pb_tensor x = tensor(&sum_, PB_F32, {1, 1});
    fault.begin_step();
    ops.all_reduce(ops.ctx, &x);
    fault.end_step();
    EXPECT_EQ(sum_, 3);
    connection_.disconnect();
    ops.all_reduce(ops.ctx, &x);
    EXPECT_TRUE(fault.faulty());
    EXPECT_THROW(fault.end_step(), Error);
    fault.end_step();
}

}  // namespace
}  // namespace rank_connection_test
}  // namespace patchbay

// What is recorded is done when it is launched, and memory that a captured step takes is no part of its graph.
#include "graphs.hpp"

#include <gmock/gmock.h>

#include "device_case.hpp"
#include "expert_tables.hpp"
#include "weights.hpp"

namespace patchbay::graphs_test {
namespace {

using testing::HasSubstr;

class GraphsTest : public DeviceCase {
  protected:
    void add_one() {
        fake_.start(gpu_.stream(), [this] { done_ += 1; });
    }

    int done_ = 0;
    Gpu gpu_{0, false};
    RankConnection connection_{gpu_};
    Steps steps_{gpu_, connection_};
    Graphs graphs_{gpu_, steps_};
    Staging staging_{gpu_.stream()};
    ExpertTables experts_{gpu_, staging_};
};

TEST_F(GraphsTest, AreDoneOnceALaunch) {
    graphs_.graph_begin();
    add_one();
    pb_graph* const graph = graphs_.graph_end();
    gpu_.wait();
    EXPECT_EQ(done_, 0);
    EXPECT_EQ(graph->bytes, uint64_t{1} << 16);
    graphs_.graph_launch(graph);
    graphs_.graph_launch(graph);
    gpu_.wait();
    EXPECT_EQ(done_, 2);
    graphs_.graph_free(graph);
    graphs_.graph_free(nullptr);
}

TEST_F(GraphsTest, OfAStepWithAFaultAreNone) {
    graphs_.graph_begin();
    steps_.set_fault("rope: 3 columns");
    const Refusal r = refusal([&] { graphs_.graph_end(); });
    EXPECT_EQ(r.status, PB_FAILED);
    EXPECT_EQ(r.text, "capturing: rope: 3 columns");
    EXPECT_EQ(fake_.graphs, 0);
    EXPECT_FALSE(gpu_.is_capturing());
}

TEST_F(GraphsTest, OneThatCannotBeMadeLeavesNothing) {
    graphs_.graph_begin();
    add_one();
    fake_.graphs_made = cudaErrorMemoryAllocation;
    EXPECT_THAT(refusal([&] { graphs_.graph_end(); }).text, HasSubstr("cudaGraphInstantiate: out of memory"));
    gpu_.wait();
    EXPECT_EQ(done_, 0);
}

TEST_F(GraphsTest, AreNotLaunchedAfterAFault) {
    graphs_.graph_begin();
    add_one();
    pb_graph* const graph = graphs_.graph_end();
    steps_.set_fault("linear");
    graphs_.graph_launch(graph);
    gpu_.wait();
    EXPECT_EQ(done_, 0);
    graphs_.graph_free(graph);
}

TEST_F(GraphsTest, ACapturedStepMayTakeMemoryAndMakeATable) {
    pb_weight one, two;
    one.matrix.rows = 5;
    two.matrix.rows = 6;
    const pb_weight* const experts[] = {&one, &two};
    graphs_.graph_begin();
    const GpuMemory memory(gpu_, 64);
    const kernels::cuda::DeviceMatrix* const table = experts_.table(experts, 2);
    EXPECT_EQ(table[0].rows, 5); // at once, whenever the graph is launched
    EXPECT_EQ(table[1].rows, 6);
    pb_graph* const graph = graphs_.graph_end();
    graphs_.graph_launch(graph);
    gpu_.wait();
    EXPECT_EQ(table[1].rows, 6);
    graphs_.graph_free(graph);
}

TEST_F(GraphsTest, ATableIsMadeOnceForAListOfExperts) {
    pb_weight one, two;
    one.matrix.rows = 5;
    two.matrix.rows = 6;
    const pb_weight* const both[] = {&one, &two};
    const pb_weight* const turned[] = {&two, &one};
    const auto* const table = experts_.table(both, 2);
    gpu_.wait();
    EXPECT_EQ(table[0].rows, 5);
    EXPECT_EQ(table[1].rows, 6);
    EXPECT_EQ(experts_.table(both, 2), table);
    EXPECT_NE(experts_.table(turned, 2), table);
    EXPECT_NE(experts_.table(both, 1), table);
    gpu_.wait();
    EXPECT_EQ(fake_.memory.size(), 4u) << "three tables, and what kernels found";
    experts_.forget(&two);
    gpu_.wait();
    EXPECT_EQ(fake_.memory.size(), 2u);
}

}  // namespace
}  // namespace patchbay::graphs_test

// Graphs of a simulated step: what is recorded is charged at each replay, and takes memory.
#include "graphs.hpp"

#include <gtest/gtest.h>

namespace patchbay::graphs_test {
namespace {

class GraphsTest : public testing::Test {
  protected:
    Hardware hardware_{.name = "test", .bytes_per_ns = 1, .launch_ns = 500, .graph_replay_ns = 70, .graph_node_ns = 8,
                       .graph_node_bytes = 100};
    StepTime time_{hardware_};
    CountedMemory memory_{"test", 250};
    Graphs graphs_{time_, memory_};
};

TEST_F(GraphsTest, AReplayIsChargedWhatWasRecorded) {
    graphs_.graph_begin();
    time_.charge(Work{.bytes = 30});
    time_.charge(Work{.bytes = 10});
    pb_graph* const graph = graphs_.graph_end();
    EXPECT_EQ(time_.charged_ns(), 2u * 500) << "only the launches";
    EXPECT_EQ(graphs_.graph_bytes(graph), 200u);
    EXPECT_EQ(memory_.free_bytes(), 50u);
    time_.restart();
    graphs_.graph_launch(graph);
    graphs_.graph_launch(graph);
    EXPECT_EQ(time_.charged_ns(), 2u * (70 + 40 + 2 * 8));
    graphs_.graph_free(graph);
    EXPECT_EQ(memory_.free_bytes(), 250u);
}

TEST_F(GraphsTest, OneThatMemoryDoesNotHoldIsNotRecordedFurther) {
    graphs_.graph_begin();
    for (int i = 0; i < 3; ++i) time_.charge(Work{.bytes = 10});
    EXPECT_THROW(graphs_.graph_end(), Error);
    EXPECT_FALSE(time_.is_recording());
    EXPECT_EQ(memory_.free_bytes(), 250u);
}

TEST_F(GraphsTest, BeginAndEndAlternate) {
    EXPECT_THROW(graphs_.graph_end(), Error);
    graphs_.graph_begin();
    EXPECT_THROW(graphs_.graph_begin(), Error);
    graphs_.graph_free(graphs_.graph_end());
}

TEST_F(GraphsTest, AnEmptyOneTakesAByte) { // so that it counts as one
    graphs_.graph_begin();
    pb_graph* const graph = graphs_.graph_end();
    EXPECT_EQ(graphs_.graph_bytes(graph), 1u);
    graphs_.graph_free(graph);
}

}  // namespace
}  // namespace patchbay::graphs_test

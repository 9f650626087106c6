#include "graphs.hpp"

#include <algorithm>
#include <memory>

namespace patchbay {

void Graphs::graph_begin() {
    if (time_.is_recording()) throw Error(PB_INVALID, "graph_begin while another graph is captured");
    time_.start_recording();
}

pb_graph* Graphs::graph_end() {
    if (!time_.is_recording()) throw Error(PB_INVALID, "graph_end without graph_begin");
    auto graph = std::make_unique<pb_graph>(time_.stop_recording());
    const double wanted = static_cast<double>(graph->ops.count) * time_.hardware().graph_node_bytes;
    graph->bytes = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(wanted)));
    memory_.take(graph->bytes, "a graph");
    return graph.release();
}

void Graphs::graph_free(pb_graph* graph) noexcept {
    const std::unique_ptr<pb_graph> owned(graph);
    memory_.give_back(owned->bytes);
}

}  // namespace patchbay

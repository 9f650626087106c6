#include "graphs.hpp"

#include <memory>
#include <string>

#include "patchbay/plugin.hpp"

namespace patchbay {

void Graphs::graph_begin() {
    gpu_.use();
    gpu_.begin_capture();
}

pb_graph* Graphs::graph_end() {
    if (!steps_.faulty()) steps_.before_op("the end of a capture");
    cudaGraph_t recorded = nullptr;
    const cudaError_t ended = gpu_.end_capture(recorded);
    if (steps_.faulty()) {
        if (recorded) cudaGraphDestroy(recorded);
        throw Error(PB_FAILED, "capturing: " + steps_.fault());
    }
    check_cuda(ended, "cudaStreamEndCapture");
    auto graph = std::make_unique<pb_graph>();
    size_t before = 0, after = 0, total = 0;
    cudaMemGetInfo(&before, &total);
    cudaError_t code = cudaGraphInstantiate(&graph->exec, recorded, 0);
    cudaGraphDestroy(recorded);
    check_cuda(code, "cudaGraphInstantiate");
    code = cudaGraphUpload(graph->exec, gpu_.stream());
    if (code != cudaSuccess) cudaGraphExecDestroy(graph->exec);
    check_cuda(code, "cudaGraphUpload");
    cudaMemGetInfo(&after, &total);
    graph->bytes = before > after ? before - after : 1;
    return graph.release();
}

void Graphs::graph_launch(pb_graph* graph) {
    if (steps_.faulty()) return;
    check_cuda(cudaGraphLaunch(graph->exec, gpu_.stream()), "cudaGraphLaunch");
}

void Graphs::graph_free(pb_graph* graph) noexcept {
    if (!graph) return;
    gpu_.use_if_it_goes();
    cudaGraphExecDestroy(graph->exec);
    delete graph;
}

}  // namespace patchbay

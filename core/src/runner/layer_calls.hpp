// What a model calls back in a forward pass: memory for its tensors, a layer's attention, a layer's states. Part of a
// ModelRunner's passes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runner/call_times.hpp"
#include "runner/pass_context.hpp"
#include "runner/pass_faults.hpp"
#include "runner/pass_inputs.hpp"
#include "runner/workspace.hpp"

namespace patchbay::runner {

class LayerCalls {
  public:
    // The time of attention's calls is added to `times`.
    LayerCalls(const PassContext& context, const PassInputs& inputs, CallTimes& times)
        : c_(context), inputs_(inputs), times_(times), workspace_(context.device.plugin) {}
    LayerCalls(const LayerCalls&) = delete; // the model has its address
    LayerCalls& operator=(const LayerCalls&) = delete;

    Result<> plan_attention(); // of the inputs that were placed
    // Takes the workspace from its beginning, so that the same shapes lie at the same addresses.
    void offer(pb_forward&);
    pb_tensor temp(pb_dtype, std::span<const int64_t> shape);
    void charge(std::span<const uint32_t> attended); // of a graph, where the device computes nothing

    void begin_capture();
    std::vector<uint32_t> end_capture(); // layers that attended, in order

    PassFaults& faults() { return faults_; }

  private:
    static pb_tensor temp(void* self, pb_dtype, int32_t rank, const int64_t* shape);
    static void attend(void* self, uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k,
                       const pb_tensor* v);
    static void state(void* self, uint32_t layer, pb_state* out);
    bool keeps(uint32_t layer, kv::GroupKind); // else notes the fault
    void attend(uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k, const pb_tensor* v);
    void charge(uint32_t layer, bool in_graph);

    const PassContext c_;
    const PassInputs& inputs_;
    CallTimes& times_;
    Workspace workspace_;
    PassFaults faults_;
    bool capturing_ = false;
    std::vector<uint32_t> attended_; // while capturing
    std::vector<int64_t> no_slots_;  // of a layer that appends nothing, where it is only charged for
};

}  // namespace patchbay::runner

// A device with buffers and weights on it, and the ops as cases with what they should give, for the device's checks.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/check.hpp"
#include "conformance/device_arrays.hpp"
#include "conformance/device_weights.hpp"
#include "conformance/lent_ops.hpp"

namespace patchbay::conformance {

enum class Steps {
    kRun,
    kReplay, // what a step does is run, undone, captured, and then run by the graph
    kLent    // structs and arrays of each call are overwritten when it returns
};

pb_ops ops_of(const host::Component&); // as this host knows them: what its table lacks is null

// What one case puts on a device; goes with it.
class Bench {
  public:
    static Result<Bench> create(const host::Component&, Rows = Rows::kDense, Steps = Steps::kRun);
    Bench(Bench&&) noexcept = default;
    ~Bench();

    const pb_device_info& info() const { return info_; }
    pb_ops ops() const { return lent_ops_ ? lent_ops_->ops() : ops_of(component_); }
    double tolerance() const { return info_.activation_dtype == PB_F32 ? 1e-4 : 3e-2; }
    float rounded(float) const;  // as an activation holds it
    Floats rounded(Floats) const;

    DeviceArrays& arrays() { return arrays_; }
    DeviceWeights& weights() { return weights_; }

    // Runs f between begin_step and end_step. A graph lives as long as this.
    Result<> step(const std::function<void(const pb_ops&)>& f);
    Result<> launch_again(); // the latest graph, in a step of its own
    // Runs an op on `out` and reads it; its padding must be as it was.
    Result<Floats> finish(const pb_tensor& out, const std::function<void(const pb_ops&)>&);

  private:
    Bench(const host::Component&, const pb_device_info&, Rows, Steps);
    const pb_device_graphs& graph_calls() const { return *component_.extension<pb_device_graphs>(); }
    const pb_device& table() const { return *static_cast<const pb_device*>(component_.type().vtable); }
    Result<> replay(const std::function<void(const pb_ops&)>&);

    const host::Component& component_;
    pb_device_info info_;
    Steps steps_;
    std::unique_ptr<LentOps> lent_ops_; // with kLent
    DeviceArrays arrays_;
    DeviceWeights weights_;
    std::vector<pb_graph*> graphs_;
};

struct OpCase {
    const char* op;   // "linear"
    std::string what; // "(3, 17) by (33, 17), bias"
    int64_t rows;     // of the batch
    // Computes rows [from, to); (to − from, width)
    std::function<Result<Floats>(Bench&, int64_t from, int64_t to)> run;
    // All rows in double; inputs as the device's activations hold them.
    std::function<std::vector<double>(const Bench&)> expected;
};

Floats slice(const Floats& all, int64_t from, int64_t to, int64_t width); // rows [from, to) of (…, width)

Outcome graphs(Subject&);                 // device_graphs.cpp
Outcome steps(Subject&);                  // device_steps.cpp
Outcome fill_placeholders(Subject&);            // likewise
Outcome host_pages(Subject&);             // likewise
Outcome quantised(Subject&, pb_dtype of_codes); // device_quantised.cpp; skipped where the device does not take them

Outcome ranks(Subject&);                         // device_ranks.cpp; likewise, where it is one rank

std::vector<OpCase> op_cases();          // all
std::vector<OpCase> optional_op_cases(); // of ops that a device may leave out
std::vector<OpCase> recurrent_op_cases(); // of those among them that carry states

}  // namespace patchbay::conformance

// A device with buffers and weights on it, and the ops as cases with what they should give, for the device's checks.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/check.hpp"
#include "conformance/device_arrays.hpp"
#include "conformance/lent_memory.hpp"

namespace patchbay::conformance {

enum class Steps {
    kRun,
    kReplay, // what a step does is run, undone, captured, and then run by the graph; arguments of ops as with kLent
    kLent    // structs and arrays of each call are overwritten when it returns
};

pb_ops ops_of(const host::Component&); // as this host knows them: what its table lacks is null

// A device's ops, whose structs and arrays are overwritten when each call returns: what a device keeps a pointer to is
// nonsense by the end of the step.
class LentOps {
  public:
    explicit LentOps(const pb_ops& real);
    LentOps(const LentOps&) = delete;
    LentOps& operator=(const LentOps&) = delete;

    const pb_ops& ops() const { return ops_; } // those that the device has
    bool intact() const { return intact_; }    // nothing was written past the end of an argument

  private:
    template <auto Op>
    static auto lending();

    const pb_ops real_;
    pb_ops ops_{};
    LentMemory memory_;
    bool intact_ = true;
};

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
    std::unique_ptr<LentOps> lent_ops_; // unless kRun
    DeviceArrays arrays_;
    DeviceWeights weights_;
    std::vector<pb_graph*> graphs_;
};

using Doubles = std::vector<double>;

struct OpCase {
    const char* op;   // "linear"
    std::string what; // "(3, 17) by (33, 17), bias"
    int64_t rows;     // of the batch
    // Computes rows [from, to); (to − from, width)
    std::function<Result<Floats>(Bench&, int64_t from, int64_t to)> run;
    // All rows in double; inputs as the device's activations hold them.
    std::function<Doubles(const Bench&)> expected;

    std::string name() const { return op + (" " + what); }
    // All rows; a failure names the case.
    Result<Floats> run_all(Bench& b) const {
        auto got = run(b, 0, rows);
        return got ? std::move(got) : prefixed(name(), got.failure());
    }
};

Floats slice(const Floats& all, int64_t from, int64_t to, int64_t width); // rows [from, to) of (…, width)
bool same_bits(const Floats&, const Floats&);
void round_to_bf16(Floats&);
inline size_t at(int64_t i) { return static_cast<size_t>(i); }

Outcome graphs(Subject&);                 // device_graphs.cpp
Outcome steps(Subject&);                  // device_steps.cpp
Outcome fill_placeholders(Subject&);            // likewise
Outcome host_pages(Subject&);             // likewise
Outcome quantised(Subject&, pb_dtype of_codes); // device_quantised.cpp; skipped where the device does not take them

Outcome ranks(Subject&);                         // device_ranks.cpp; likewise, where it is one rank

std::vector<OpCase> op_cases();          // all
std::vector<OpCase> optional_op_cases(); // of ops that a device may leave out
std::vector<OpCase> recurrent_op_cases(); // of those among them that carry states
// An op that gives f(gate) · up of the halves of each row of random numbers; device_optional_ops.cpp.
OpCase gate_op(const char* name, uint64_t seed, int64_t tokens, int64_t n,
               const std::function<void(const pb_ops&, const pb_tensor* out, const pb_tensor* x)>& op,
               double (*f)(double));

}  // namespace patchbay::conformance

// What the ops of a step work with: the GPU's stream, memory for now, products and what other ranks have. For the CUDA
// device.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "expert_tables.hpp"
#include "gpu.hpp"
#include "kernels/cuda.hpp"
#include "patchbay/sdk/op_checks.hpp"
#include "products.hpp"
#include "rank_connection.hpp"
#include "steps.hpp"

namespace patchbay {

class OpContext {
  public:
    struct Parts {
        Gpu& gpu;
        Steps& steps;
        Products& products;
        ExpertTables& experts;
        RankConnection& connection;
    };
    OpContext(const Parts& parts, pb_dtype activation_dtype, bool batch_invariant)
        : p_(parts), activation_dtype_(activation_dtype), batch_invariant_(batch_invariant) {}

    // As sdk/checked_ops.hpp wants them.
    OpChecks op_checks() const;
    bool faulty() const { return p_.steps.faulty(); }
    void set_fault(std::string text) noexcept { p_.steps.set_fault(std::move(text)); }
    void before_op(const char* op) noexcept { p_.steps.before_op(op); }
    void after_op(const char* op) noexcept { p_.steps.after_op(op); }

    kernels::cuda::Stream stream() const { return static_cast<kernels::cuda::Stream>(p_.gpu.stream()); }
    int32_t* kernel_fault() const { return p_.steps.kernel_fault(); }
    bool batch_invariant() const { return batch_invariant_; }
    void* scratch(uint64_t bytes); // until the next call; it moves only to grow, and what graphs hold of it stays
    Products& products() { return p_.products; }
    ExpertTables& experts() { return p_.experts; }
    Ranks& ranks() { return p_.connection.ranks(); } // for ops that are there only once they are connected

  private:
    Parts p_;
    pb_dtype activation_dtype_;
    bool batch_invariant_;
    std::vector<GpuMemory> scratch_; // the last is in use; earlier ones may be of graphs
};

pb_ops cuda_ops(OpContext&);
void add_collectives(pb_ops&);

}  // namespace patchbay

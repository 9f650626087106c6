// Weights in the GPU's memory: f32 and bf16 as they are, codes as the numbers that they stand for. For the CUDA device.
#pragma once
#include <cstdint>
#include <vector>

#include "expert_tables.hpp"
#include "gpu.hpp"
#include "kernels/cuda.hpp"
#include "patchbay/abi/device.h"
#include "patchbay/sdk/op_checks.hpp"
#include "staging.hpp"

struct pb_weight {
    uint64_t uses = 0; // bit set of 1 << role
    patchbay::kernels::cuda::DeviceMatrix matrix; // rows 0: none
    const float* vector = nullptr;                // (vector_size)
    int64_t vector_size = 0;
    std::vector<patchbay::GpuMemory> memory; // all that it holds
    uint64_t bytes = 0;
};

namespace patchbay {

WeightShape shape_of(const pb_weight*);

class Weights {
  public:
    Weights(Gpu& gpu, Staging& staging, ExpertTables& experts, pb_dtype activation_dtype)
        : gpu_(gpu), staging_(staging), experts_(experts), activation_dtype_(activation_dtype) {}

    // For release(). Codes become bf16, or f32 beside f32 activations: 2 or 4 bytes each in the GPU's memory, whatever
    // they were. Throws Error.
    pb_weight* prepare(const pb_weight_source&);
    void release(pb_weight*);

  private:
    void add_matrix(pb_weight&, const pb_weight_source&);
    const void* widened_codes(pb_weight&, const pb_weight_source&, pb_dtype);
    template <class T>
    const T* upload(pb_weight&, const T* from, uint64_t count);

    Gpu& gpu_;
    Staging& staging_;
    ExpertTables& experts_;
    pb_dtype activation_dtype_;
};

}  // namespace patchbay

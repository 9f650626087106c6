// The matrices of a layer's experts as a table in the GPU's memory, made once for each list of experts. For the CUDA
// device.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "gpu.hpp"
#include "kernels/cuda.hpp"
#include "staging.hpp"

struct pb_weight;

namespace patchbay {

class ExpertTables {
  public:
    ExpertTables(Gpu& gpu, Staging& staging) : gpu_(gpu), staging_(staging) {}

    const kernels::cuda::DeviceMatrix* table(const pb_weight* const* experts, uint32_t count); // throws Error
    void forget(const pb_weight*);                                                             // all that it is in

  private:
    Gpu& gpu_;
    Staging& staging_;
    std::map<std::vector<const pb_weight*>, GpuMemory> tables_;
};

}  // namespace patchbay

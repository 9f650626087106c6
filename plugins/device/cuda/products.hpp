// Matrix products by cuBLASLt, with the algorithm for each shape looked up once. For the CUDA device.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <compare>
#include <map>
#include <memory>

#include "kernels/cuda.hpp"

namespace patchbay {

class Products {
  public:
    enum class Algorithms { kBest, kOneForAllSizes /* a row's bits do not depend on how many rows there are */ };
    Products(cudaStream_t, void* workspace, uint64_t workspace_bytes, Algorithms); // throws Error
    ~Products();
    Products(const Products&) = delete;
    Products& operator=(const Products&) = delete;

    // out (tokens, rows) = x (tokens, cols) · wᵀ, sums in f32. x and w have one dtype, bf16 or f32; out has it, or is
    // f32. False where cuBLASLt has no algorithm for it.
    bool multiply(const pb_tensor& out, const pb_tensor& x, const kernels::cuda::DeviceMatrix& w);

  private:
    struct Shape { // also of memory: what an algorithm may depend on
        int64_t tokens, rows, cols, x_stride, out_stride;
        pb_dtype in, out;
        uint32_t x_alignment, out_alignment;
        auto operator<=>(const Shape&) const = default;
    };
    struct Plan;
    Plan& plan_for(const Shape&);
    bool choose(const Shape&, Plan&) const;
    void adopt(const Shape&, Plan&); // throws Error

    cudaStream_t stream_;
    void* workspace_;
    uint64_t workspace_bytes_;
    Algorithms algorithms_;
    cublasLtHandle_t handle_ = nullptr;
    std::map<Shape, std::unique_ptr<Plan>> plans_;
    std::map<Shape, std::unique_ptr<Plan>> chosen_; // of kOneForAllSizes, for each weight's shape
};

}  // namespace patchbay

// What an op is given, checked against what it needs; and where the first fault of a step is kept. For the ops' files.
#pragma once
#include <initializer_list>
#include <string>

#include "cpu.hpp"

namespace patchbay {

struct Mismatch {
    std::string text; // "x is f32 (3, 8), expected f32 (3, 16)"
};

// Each throws Mismatch.
void expect(const char* name, const pb_tensor&, pb_dtype, std::initializer_list<int64_t> shape);
void expect_rank(const char* name, const pb_tensor&, int32_t least, int32_t most);
void expect_f32(const char* name, const pb_tensor&, int32_t least_rank,
                int32_t most_rank);  // of any shape of rank 2 or 3
void expect_like(const char* name, const pb_tensor&, const pb_tensor& model);
const kernels::PackedMatrix& matrix_of(const pb_weight*, pb_weight_role, const char* role_name);
const float* vector_of(const pb_weight*, const char* name, int64_t size);
// (…) i32, contiguous, each of [0, limit)
const int32_t* indices(const char* name, const pb_tensor&, std::initializer_list<int64_t> shape, int64_t limit);

// Runs f(device) unless the step is faulty, and keeps what it throws.
template <class F>
void run(void* ctx, const char* op, F&& f) noexcept {
    auto& device = *static_cast<CpuDevice*>(ctx);
    if (device.faulty()) return;
    try {
        f(device.machine());
    } catch (const Mismatch& mismatch) {
        device.set_fault(std::string(op) + ": " + mismatch.text);
    } catch (const std::exception& error) {
        device.set_fault(std::string(op) + ": " + error.what());
    }
}

}  // namespace patchbay

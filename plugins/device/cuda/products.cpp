#include "products.hpp"

#include <algorithm>
#include <string>

#include "patchbay/plugin.hpp"

namespace patchbay {
namespace {

constexpr size_t kMaxPlans = 8192;       // prompts come in any length
constexpr int64_t kTokensToChooseBy = 256; // of the one algorithm for all sizes
constexpr uint32_t kAlignmentToChooseBy = 16; // bytes; likewise

void check(cublasStatus_t status, const char* what) {
    if (status != CUBLAS_STATUS_SUCCESS)
        throw Error(PB_FAILED, std::string(what) + ": " + cublasLtGetStatusString(status));
}

cudaDataType_t type_of(pb_dtype dtype) { return dtype == PB_BF16 ? CUDA_R_16BF : CUDA_R_32F; }

uint32_t alignment_of(const void* p) { // up to 256 bytes
    const auto address = reinterpret_cast<uintptr_t>(p);
    const uintptr_t lowest = address & (~address + 1);
    return static_cast<uint32_t>(lowest == 0 || lowest > 256 ? 256 : lowest);
}

struct Layout {
    cublasLtMatrixLayout_t handle = nullptr;
    Layout(pb_dtype dtype, int64_t rows, int64_t columns, int64_t leading) {
        check(cublasLtMatrixLayoutCreate(&handle, type_of(dtype), static_cast<uint64_t>(rows),
                                         static_cast<uint64_t>(columns), leading),
              "a matrix layout");
    }
    ~Layout() { cublasLtMatrixLayoutDestroy(handle); }
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;
};

struct Description {
    cublasLtMatmulDesc_t handle = nullptr;
    Description() {
        check(cublasLtMatmulDescCreate(&handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product's description");
        const cublasOperation_t turned = CUBLAS_OP_T;
        check(cublasLtMatmulDescSetAttribute(handle, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned),
              "a product's description");
    }
    ~Description() { cublasLtMatmulDescDestroy(handle); }
    Description(const Description&) = delete;
    Description& operator=(const Description&) = delete;
};

struct Preference {
    cublasLtMatmulPreference_t handle = nullptr;
    Preference() { check(cublasLtMatmulPreferenceCreate(&handle), "a preference"); }
    ~Preference() { cublasLtMatmulPreferenceDestroy(handle); }
    Preference(const Preference&) = delete;
    Preference& operator=(const Preference&) = delete;
    template <class T>
    void set(cublasLtMatmulPreferenceAttributes_t name, const T& value) {
        check(cublasLtMatmulPreferenceSetAttribute(handle, name, &value, sizeof value), "a preference");
    }
};

}  // namespace

// cuBLASLt is column-major: what is (tokens, rows) here is rows × tokens there, and w (rows, cols) is cols × rows,
// turned.
struct Products::Plan {
    explicit Plan(const Shape& s)
        : w(s.in, s.cols, s.rows, s.cols),
          x(s.in, s.cols, s.tokens, s.x_stride),
          out(s.out, s.rows, s.tokens, s.out_stride) {}
    Description product;
    Layout w, x, out;
    cublasLtMatmulAlgo_t algorithm{};
    bool found = false;
};

Products::Products(cudaStream_t stream, void* workspace, uint64_t workspace_bytes, Algorithms algorithms)
    : stream_(stream), workspace_(workspace), workspace_bytes_(workspace_bytes), algorithms_(algorithms) {
    check(cublasLtCreate(&handle_), "cuBLASLt");
}

Products::~Products() {
    plans_.clear();
    chosen_.clear();
    if (handle_) cublasLtDestroy(handle_);
}

// Splitting the sum over columns keeps the machine busy where tokens and rows are few. It is ruled out where one
// algorithm is for all sizes: for other shapes it would be summed in another order.
bool Products::choose(const Shape& shape, Plan& plan) const {
    Preference preference;
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes_);
    const uint32_t reduction = algorithms_ == Algorithms::kBest ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE // in f32
                                                                : CUBLASLT_REDUCTION_SCHEME_NONE;
    preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.x_alignment);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.out_alignment);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.out_alignment);
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, plan.product.handle, plan.w.handle, plan.x.handle, plan.out.handle,
                                       plan.out.handle, preference.handle, 1, &result, &count);
    if (status != CUBLAS_STATUS_SUCCESS || count < 1 || result.state != CUBLAS_STATUS_SUCCESS) return false;
    plan.algorithm = result.algo;
    return true;
}

Products::Plan& Products::plan_for(const Shape& shape) {
    if (const auto found = plans_.find(shape); found != plans_.end()) return *found->second;
    if (plans_.size() >= kMaxPlans) plans_.clear();
    auto plan = std::make_unique<Plan>(shape);
    if (algorithms_ == Algorithms::kBest) plan->found = choose(shape, *plan);
    else adopt(shape, *plan);
    return *(plans_[shape] = std::move(plan));
}

// The algorithm that is best for kTokensToChooseBy dense rows, for any number of rows: what it is chosen by does not
// depend on the batch. Memory that is aligned to less than it needs is left to the plain kernel, as is a weight for
// which there is no algorithm.
void Products::adopt(const Shape& shape, Plan& plan) {
    if (std::min(shape.x_alignment, shape.out_alignment) < kAlignmentToChooseBy) return;
    Shape usual = shape;
    usual.tokens = kTokensToChooseBy;
    usual.x_stride = shape.cols;
    usual.out_stride = shape.rows;
    usual.x_alignment = usual.out_alignment = kAlignmentToChooseBy;
    auto& chosen = chosen_[usual];
    if (!chosen) {
        chosen = std::make_unique<Plan>(usual);
        chosen->found = choose(usual, *chosen);
    }
    if (!chosen->found) return;
    cublasLtMatmulHeuristicResult_t result{};
    const cublasStatus_t status =
        cublasLtMatmulAlgoCheck(handle_, plan.product.handle, plan.w.handle, plan.x.handle, plan.out.handle,
                                plan.out.handle, &chosen->algorithm, &result);
    const std::string what = "batch_invariant: cuBLASLt's algorithm for " + std::to_string(kTokensToChooseBy) +
                             " rows of a (" + std::to_string(shape.rows) + ", " + std::to_string(shape.cols) +
                             ") weight ";
    if (status != CUBLAS_STATUS_SUCCESS)
        throw Error(PB_FAILED, what + "does not take " + std::to_string(shape.tokens) + " rows: " +
                                   cublasLtGetStatusString(status));
    if (result.workspaceSize > workspace_bytes_)
        throw Error(PB_FAILED, what + "wants " + std::to_string(result.workspaceSize) + " bytes to multiply " +
                                   std::to_string(shape.tokens) + " rows in, there are " +
                                   std::to_string(workspace_bytes_) + " (workspace_mib)");
    plan.algorithm = chosen->algorithm;
    plan.found = true;
}

bool Products::multiply(const pb_tensor& out, const pb_tensor& x, const kernels::cuda::DeviceMatrix& w) {
    // The stride of a single row is free, yet a leading dimension is not.
    const auto stride = [](const pb_tensor& t) { return t.shape[0] > 1 ? t.strides[0] : t.shape[1]; };
    Plan& plan = plan_for({x.shape[0], w.rows, w.cols, stride(x), stride(out), x.dtype, out.dtype,
                           alignment_of(x.data), alignment_of(out.data)});
    if (!plan.found) return false;
    const float one = 1, zero = 0;
    check(cublasLtMatmul(handle_, plan.product.handle, &one, w.data, plan.w.handle, x.data, plan.x.handle, &zero,
                         out.data, plan.out.handle, out.data, plan.out.handle, &plan.algorithm, workspace_,
                         workspace_bytes_, stream_),
          "cublasLtMatmul");
    return true;
}

}  // namespace patchbay

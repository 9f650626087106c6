// Each kernel alone on a GPU, by the GPU's events: microseconds, and the memory traffic or multiplications that they
// make of it. Shapes are those of an 8B model. Prints JSON; exits with 77 where there is no GPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda_attention.hpp"
#include "kernels/cuda_sampling.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "unit/cuda/gpu/shared_memory.hpp"
#if defined(PATCHBAY_BENCH_PRODUCTS)
#include "products.hpp"
#endif

namespace patchbay::kernels::cuda {
namespace {

constexpr int64_t kHidden = 4096, kIntermediate = 14336, kVocab = 128256;
constexpr int32_t kHeads = 32, kKvHeads = 8, kHeadDim = 128, kBlock = 16;

class Buffer { // of device memory, all bytes alike
  public:
    explicit Buffer(uint64_t bytes, int value = 0) {
        check_gpu(cudaMalloc(&memory_, bytes));
        check_gpu(cudaMemset(memory_, value, bytes));
    }
    template <class T>
    explicit Buffer(const std::vector<T>& values) : Buffer(std::max<uint64_t>(values.size() * sizeof(T), 1)) {
        check_gpu(cudaMemcpy(memory_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Buffer() { cudaFree(memory_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    template <class T>
    T* as() const {
        return static_cast<T*>(memory_);
    }

  private:
    void* memory_ = nullptr;
};

class Values { // bf16 noise, or f32, on the device
  public:
    Values(pb_dtype dtype, std::initializer_list<int64_t> shape)
        : tensor_(patchbay::tensor(nullptr, dtype, shape, 1)),
          memory_(static_cast<uint64_t>(elements(tensor_) * dtype_bytes(dtype))) {
        std::mt19937 draw(7); // zeros would cost less power, and run faster
        std::vector<float> noise(1 << 20);
        for (float& x : noise) x = std::uniform_real_distribution<float>(-1, 1)(draw);
        std::vector<uint16_t> halves(noise.size());
        std::transform(noise.begin(), noise.end(), halves.begin(), f32_to_bf16);
        const auto* const from = dtype == PB_F32 ? static_cast<const void*>(noise.data()) : halves.data();
        const uint64_t all = static_cast<uint64_t>(elements(tensor_) * dtype_bytes(dtype));
        const uint64_t part = noise.size() * static_cast<uint64_t>(dtype_bytes(dtype));
        for (uint64_t at = 0; at < all; at += part)
            check_gpu(cudaMemcpy(memory_.as<uint8_t>() + at, from, std::min(part, all - at), cudaMemcpyHostToDevice));
        tensor_.data = memory_.as<void>();
    }
    const pb_tensor& tensor() const { return tensor_; }

  private:
    pb_tensor tensor_;
    Buffer memory_;
};

struct Result {
    std::string name;
    double microseconds, bytes, flop;
};

class Bench {
  public:
    Bench() {
        check_gpu(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        for (cudaEvent_t* e : {&begin_, &end_}) check_gpu(cudaEventCreate(e));
    }
    ~Bench() {
        for (cudaEvent_t e : {begin_, end_}) cudaEventDestroy(e);
        cudaStreamDestroy(stream_);
    }
    Stream stream() const { return stream_; }

    // The median of seven rounds of so many calls that a round takes some milliseconds.
    void time(const std::string& name, double bytes, double flop, const std::function<void()>& f) {
        const double once = round(1, f); // the first loads the kernel
        const int calls = static_cast<int>(std::clamp(5000 / std::max(std::min(once, round(1, f)), 1.0), 1.0, 500.0));
        std::vector<double> rounds;
        for (int i = 0; i < 7; ++i) rounds.push_back(round(calls, f));
        std::sort(rounds.begin(), rounds.end());
        results_.push_back({name, rounds[3], bytes, flop});
    }
    void print(const char* gpu) const {
        std::printf("{\"gpu\": \"%s\", \"kernels\": [\n", gpu);
        for (size_t i = 0; i < results_.size(); ++i) {
            const Result& r = results_[i];
            std::printf("  {\"name\": \"%s\", \"microseconds\": %.3f, \"gigabytes_per_second\": %.1f, "
                        "\"teraflops\": %.2f}%s\n",
                        r.name.c_str(), r.microseconds, r.bytes / r.microseconds / 1e3,
                        r.flop / r.microseconds / 1e6, i + 1 < results_.size() ? "," : "");
        }
        std::printf("]}\n");
    }

  private:
    double round(int calls, const std::function<void()>& f) { // microseconds of one call
        float milliseconds = 0;
        check_gpu(cudaEventRecord(begin_, stream_));
        for (int i = 0; i < calls; ++i) f();
        check_gpu(cudaEventRecord(end_, stream_));
        check_gpu(cudaGetLastError());
        check_gpu(cudaEventSynchronize(end_));
        check_gpu(cudaEventElapsedTime(&milliseconds, begin_, end_));
        return double{milliseconds} * 1e3 / calls;
    }

    cudaStream_t stream_ = nullptr;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
    std::vector<Result> results_;
};

void time_rows(Bench& bench, int64_t tokens) {
    const std::string suffix = " of " + std::to_string(tokens);
    const auto n = static_cast<double>(tokens);
    const Values x(PB_BF16, {tokens, kHidden}), residual(PB_BF16, {tokens, kHidden}), out(PB_BF16, {tokens, kHidden});
    const Values gate_up(PB_BF16, {tokens, 2 * kIntermediate}), gated(PB_BF16, {tokens, kIntermediate});
    const Values heads(PB_BF16, {tokens, kHeads, kHeadDim});
    const Buffer weight(std::vector<float>(kHidden, 1)), frequencies(std::vector<float>(kHeadDim / 2, 0.1f));
    std::vector<int32_t> order(static_cast<size_t>(tokens));
    std::iota(order.begin(), order.end(), 0);
    const Buffer positions(order);
    bench.time("rms_norm" + suffix, n * kHidden * 4, 0,
               [&] { rms_norm(bench.stream(), out.tensor(), x.tensor(), weight.as<float>(), 1e-5f); });
    bench.time("add_rms_norm" + suffix, n * kHidden * 8, 0, [&] {
        add_rms_norm(bench.stream(), out.tensor(), residual.tensor(), x.tensor(), weight.as<float>(), 1e-5f);
    });
    bench.time("silu_mul" + suffix, n * kIntermediate * 6, 0,
               [&] { silu_mul(bench.stream(), gated.tensor(), gate_up.tensor()); });
    bench.time("rope" + suffix, n * kHeads * kHeadDim * 4, 0, [&] {
        rope(bench.stream(), heads.tensor(), positions.as<int32_t>(), frequencies.as<float>(), kHeadDim / 2, 1);
    });
}

// `seqs` sequences of `context` tokens, of which the last `queries` are computed.
void time_attention(Bench& bench, const cudaDeviceProp& gpu, int32_t seqs, int32_t context, int32_t queries) {
    const AttentionShape shape{kHeads, kKvHeads, kHeadDim, kBlock, 0, 0.088f, 0, PB_BF16};
    const int32_t blocks = (context + kBlock - 1) / kBlock, tokens = seqs * queries;
    std::vector<int32_t> starts{0}, lengths, block_starts{0}, positions, table(size_t(seqs) * size_t(blocks));
    std::vector<int64_t> slots;
    std::iota(table.begin(), table.end(), 0);
    for (int32_t s = 0; s < seqs; ++s) {
        starts.push_back((s + 1) * queries);
        block_starts.push_back((s + 1) * blocks);
        lengths.push_back(context);
        for (int32_t t = context - queries; t < context; ++t) {
            positions.push_back(t);
            slots.push_back((int64_t{s} * blocks + t / kBlock) * kBlock + t % kBlock);
        }
    }
    const AttentionBatch batch{uint32_t(seqs), tokens,       starts.data(), lengths.data(), block_starts.data(),
                               table.data(),   slots.data(), positions.data()};
    const AttentionGrid grid =
        attention_grid(shape, uint32_t(gpu.multiProcessorCount), gpu.sharedMemPerMultiprocessor);
    const AttentionLimits limits = attention_limits(shape, seqs, tokens, context, grid);
    AttentionPlan plan;
    if (!plan_attention(shape, batch, limits, plan)) return;
    const AttentionLayout layout = attention_layout(shape, limits);
    std::vector<uint8_t> bytes(layout.states);
    const AttentionHeader header = plan.header();
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + layout.items, plan.items.data(), plan.items.size() * sizeof plan.items[0]);
    std::memcpy(bytes.data() + layout.merges, plan.merges.data(), plan.merges.size() * sizeof plan.merges[0]);
    const Buffer plan_buffer(layout.bytes);
    check_gpu(cudaMemcpy(plan_buffer.as<void>(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    const uint64_t stride = page_bytes(shape);
    const Values pages(PB_BF16, {int64_t{seqs} * blocks, static_cast<int64_t>(stride / 2)});
    const Buffer there(table), block_starts_there(block_starts), positions_there(positions), slots_there(slots);
    const Values q(PB_BF16, {tokens, kHeads, kHeadDim}), out(PB_BF16, {tokens, kHeads, kHeadDim});
    const Values k(PB_BF16, {tokens, kKvHeads, kHeadDim}), v(PB_BF16, {tokens, kKvHeads, kHeadDim});
    const KvPages kv{static_cast<uint8_t*>(pages.tensor().data), stride};
    const std::string suffix =
        " of " + std::to_string(queries) + " over " + std::to_string(context) + ", batch " + std::to_string(seqs);
    const double seen = double(seqs) * queries * (context - (queries - 1) / 2.0);
    bench.time("append_kv" + suffix, double(tokens) * kKvHeads * kHeadDim * 8, 0, [&] {
        append_kv(bench.stream(), shape, kv, slots_there.as<int64_t>(), tokens, k.tensor(), v.tensor());
    });
    const double kv_bytes = double(seqs) * context * kKvHeads * kHeadDim * 4;
    bench.time("attention" + suffix, kv_bytes, seen * kHeads * kHeadDim * 4, [&] {
        attend(bench.stream(),
               {shape, kv, plan_buffer.as<uint8_t>(), layout, block_starts_there.as<int32_t>(), there.as<int32_t>(),
                positions_there.as<int32_t>(), grid},
               out.tensor(), q.tensor());
    });
}

void time_sampling(Bench& bench, int32_t rows, const char* name, const SamplingRequest& asked) {
    SamplingInputs inputs;
    inputs.clear(kVocab);
    for (int32_t r = 0; r < rows; ++r) inputs.add(asked);
    const auto packed = inputs.pack();
    const Buffer there(std::vector<std::byte>(packed.begin(), packed.end()));
    const Buffer scratch(std::max<uint64_t>(inputs.scratch_bytes(), 1)), tokens(uint64_t(rows) * 4);
    const Buffer faults(uint64_t(rows) * 4), logprobs(uint64_t(rows) * 4), top(4), top_logprobs(4);
    const Values logits(PB_F32, {rows, kVocab});
    bench.time(std::string(name) + " sampling of " + std::to_string(rows), double(rows) * kVocab * 4, 0, [&] {
        sample_rows(bench.stream(), {static_cast<float*>(logits.tensor().data), kVocab, rows, 0, there.as<void>(),
                                     scratch.as<float>(), tokens.as<int32_t>(), faults.as<int32_t>(),
                                     top.as<int32_t>(), logprobs.as<float>(), top_logprobs.as<float>()});
    });
}

struct MatrixSize {
    const char* name;
    int64_t rows, cols;
};

void time_product(Bench& bench, const char* how, const MatrixSize& size, const Values& weight, int64_t tokens,
                  const std::function<void(const pb_tensor& out, const pb_tensor& x, const DeviceMatrix&)>& multiply) {
    const Values x(PB_BF16, {tokens, size.cols}), out(PB_BF16, {tokens, size.rows});
    const DeviceMatrix matrix{weight.tensor().data, PB_BF16, size.rows, size.cols, nullptr};
    const double n = double(tokens), weights = double(size.rows) * double(size.cols);
    bench.time(std::string(how) + ", " + size.name + ", of " + std::to_string(tokens),
               2 * (weights + n * double(size.cols + size.rows)), 2 * n * weights,
               [&] { multiply(out.tensor(), x.tensor(), matrix); });
}

// By cuBLASLt, and by the kernel of few tokens.
void time_products(Bench& bench) {
    for (const MatrixSize& size : {MatrixSize{"gate and up", 2 * kIntermediate, kHidden},
                                   {"q, k and v", kHidden + 2 * kKvHeads * kHeadDim, kHidden},
                                   {"down", kHidden, kIntermediate},
                                   {"lm head", kVocab, kHidden}}) {
        const Values weight(PB_BF16, {size.rows, size.cols});
        for (const int64_t tokens : {1, 2, 4})
            time_product(bench, "few tokens' product", size, weight, tokens,
                         [&](const pb_tensor& out, const pb_tensor& x, const DeviceMatrix& w) {
                             plain_linear(bench.stream(), out, x, w);
                         });
#if defined(PATCHBAY_BENCH_PRODUCTS)
        constexpr uint64_t kWorkspace = 32 << 20;
        const Buffer workspace(kWorkspace);
        for (const auto& [name, how] : {std::pair{"product", Products::Algorithms::kBest},
                                        std::pair{"batch-invariant product", Products::Algorithms::kOneForAllSizes}}) {
            Products products(static_cast<cudaStream_t>(bench.stream()), workspace.as<void>(), kWorkspace, how);
            for (const int64_t tokens : {1, 4, 8, 16, 64, 256, 2048})
                time_product(bench, name, size, weight, tokens,
                             [&](const pb_tensor& out, const pb_tensor& x, const DeviceMatrix& w) {
                                 products.multiply(out, x, w);
                             });
        }
#endif
    }
}

int run() {
    int count = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess || count == 0) {
        std::printf("skipped: no NVIDIA driver/GPU: %s\n", cudaGetErrorString(code));
        return 77;
    }
    cudaDeviceProp gpu{};
    check_gpu(cudaGetDeviceProperties(&gpu, 0));
    Bench bench;
    {
        constexpr int64_t kBytes = int64_t{1} << 30;
        const Buffer data(kBytes);
        bench.time("reading 1 GiB", double(kBytes), 0,
                   [&] { read_all(bench.stream(), data.as<float>(), data.as<void>(), kBytes); });
    }
    for (const int64_t tokens : {1, 256, 8192}) time_rows(bench, tokens);
    for (const auto& [seqs, context] : {std::pair{1, 2048}, {1, 8192}, {16, 8192}, {256, 512}, {256, 2048}})
        time_attention(bench, gpu, seqs, context, 1);
    for (const int32_t prompt : {512, 2048, 8192}) time_attention(bench, gpu, 1, prompt, prompt);
    SamplingRequest greedy, drawn;
    greedy.temperature = 0;
    drawn.temperature = 0.8f;
    drawn.top_p = 0.95f;
    for (const int32_t rows : {1, 256}) {
        time_sampling(bench, rows, "greedy", greedy);
        time_sampling(bench, rows, "top-p", drawn);
    }
    time_products(bench);
    bench.print(gpu.name);
    return 0;
}

}  // namespace
}  // namespace patchbay::kernels::cuda

int main() { return patchbay::kernels::cuda::run(); }

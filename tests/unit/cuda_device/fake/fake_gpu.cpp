#include "fake_gpu.hpp"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda.hpp"

namespace {

using Work = std::function<void()>;

cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal; // of the thread
cudaError_t latest = cudaSuccess;                               // what cudaGetLastError() has
int captures = 0;

}  // namespace

struct FakeGraph {
    std::vector<Work> work;
};
struct FakeGraphExec {
    std::vector<Work> work;
};
struct FakeStream {
    int device = patchbay::fake::gpu().current;
    std::deque<Work> work;
    std::unique_ptr<FakeGraph> captured; // null: not capturing

    void add(Work w) {
        if (captured) captured->work.push_back(std::move(w));
        else work.push_back(std::move(w));
    }
    void run_until(const bool& done) {
        for (; !done && !work.empty(); work.pop_front()) work.front()();
    }
    void run() { run_until(false); }
};
struct FakeEvent {
    std::shared_ptr<bool> is_done = std::make_shared<bool>(true);
    FakeStream* stream = nullptr;
};

namespace patchbay::fake {

FakeGpu& gpu() {
    static FakeGpu one;
    return one;
}

uint64_t FakeGpu::bytes() const {
    uint64_t sum = 0;
    for (const auto& [at, bytes] : memory) sum += bytes;
    return sum;
}

void FakeGpu::start(cudaStream_t stream, std::function<void()> kernel) const {
    if (stream->device != current) std::abort(); // of another GPU than the thread uses
    stream->add(std::move(kernel));
}

void FakeGpu::fail_to_start(cudaError_t code) { latest = code; }

}  // namespace patchbay::fake

using patchbay::fake::gpu;

namespace {

cudaError_t fail(cudaError_t code) { return latest = code; }

// Of a stream that is captured, or while one is: what waits or takes memory is refused then.
bool is_unsafe(cudaStream_t stream) {
    return stream->captured || (captures > 0 && mode != cudaStreamCaptureModeRelaxed);
}

cudaError_t wait(FakeStream* stream, const bool& done = false) { // until then; false: for all of its work
    if (is_unsafe(stream)) return fail(cudaErrorStreamCaptureUnsupported);
    if (gpu().pace == patchbay::fake::FakeGpu::Pace::kLate) stream->run_until(done);
    else stream->run();
    return gpu().work == cudaSuccess ? cudaSuccess : fail(gpu().work);
}

// Who gives work to a stream has to use its GPU.
cudaError_t add(FakeStream* stream, Work work) {
    gpu().start(stream, std::move(work));
    return cudaSuccess;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t code) {
    switch (code) {
        case cudaErrorMemoryAllocation: return "out of memory";
        case cudaErrorNoDevice: return "no CUDA-capable device is detected";
        case cudaErrorNoKernelImageForDevice: return "no kernel image is available";
        case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
        case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
        default: return code == cudaSuccess ? "no error" : "invalid argument";
    }
}
const char* cudaGetErrorName(cudaError_t code) { return code == cudaSuccess ? "cudaSuccess" : "cudaErrorOfATest"; }
cudaError_t cudaGetLastError() { return std::exchange(latest, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
    *count = gpu().count;
    return gpu().count > 0 ? cudaSuccess : fail(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int index) {
    gpu().current = index;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int) {
    *out = {"Fake GPU", gpu().major, 0};
    return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
    *pool = nullptr;
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) { // keeps 1 MiB
    *static_cast<uint64_t*>(value) =
        gpu().bytes() + (attribute == cudaMemPoolAttrReservedMemCurrent ? uint64_t{1} << 20 : 0);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    const auto graphs = static_cast<uint64_t>(gpu().launchable) << 16;
    *total = gpu().capacity;
    *free = gpu().capacity - gpu().bytes() - graphs;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    gpu().streams += 1;
    *stream = new FakeStream;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { // what it has been given is still done
    stream->run();
    delete stream;
    gpu().streams -= 1;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return wait(stream); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    if (gpu().events != cudaSuccess) return fail(gpu().events);
    gpu().live_events += 1;
    *event = new FakeEvent;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (gpu().records != cudaSuccess) return fail(gpu().records);
    event->is_done = std::make_shared<bool>(false);
    event->stream = stream;
    return add(stream, [done = event->is_done] { *done = true; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return *event->is_done ? cudaSuccess : wait(event->stream, *event->is_done);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    gpu().live_events -= 1;
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t stream) {
    if (is_unsafe(stream)) return fail(cudaErrorStreamCaptureUnsupported);
    if (stream->device != gpu().current) std::abort();
    if (gpu().bytes() + bytes > gpu().capacity) return fail(cudaErrorMemoryAllocation);
    *out = std::malloc(bytes);
    std::memset(*out, 0xAB, bytes); // not zeroed
    gpu().memory[*out] = bytes;
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
    if (stream->captured) return fail(cudaErrorInvalidValue); // only what the graph itself took
    return add(stream, [memory] {
        if (gpu().memory.erase(memory) == 0) std::abort(); // given back twice
        std::free(memory);
    });
}
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
    *out = std::malloc(bytes);
    gpu().pinned[*out] = bytes;
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { // at once: a copy that is still to come would write to memory of others
    if (gpu().pinned.erase(memory) == 0) std::abort();
    std::free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    const auto is_pinned = [](const void* at) {
        const auto after = gpu().pinned.upper_bound(const_cast<void*>(at));
        if (after == gpu().pinned.begin()) return false;
        const auto& [begin, size] = *std::prev(after);
        return static_cast<const char*>(at) < static_cast<const char*>(begin) + size;
    };
    if (kind == cudaMemcpyHostToDevice && !is_pinned(from)) { // read before the call returns
        const auto* const bytes_of = static_cast<const char*>(from);
        return add(stream, [to, copy = std::vector<char>(bytes_of, bytes_of + bytes)] {
            std::memcpy(to, copy.data(), copy.size());
        });
    }
    add(stream, [=] { std::memcpy(to, from, bytes); });
    return kind == cudaMemcpyDeviceToHost && !is_pinned(to) ? wait(stream) : cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    return add(stream, [=] { std::memset(to, value, bytes); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
    std::swap(mode, *other);
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (stream->captured) return fail(cudaErrorInvalidValue);
    stream->captured = std::make_unique<FakeGraph>();
    captures += 1;
    gpu().graphs += 1;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
    *out = stream->captured.release();
    if (!*out) return fail(cudaErrorInvalidValue);
    captures -= 1;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
    if (gpu().graphs_made != cudaSuccess) return fail(gpu().graphs_made);
    gpu().launchable += 1;
    *out = new FakeGraphExec{graph->work};
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    for (const Work& w : graph->work) add(stream, w);
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    gpu().graphs -= 1;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    delete graph;
    gpu().launchable -= 1;
    return cudaSuccess;
}

// The kernels that the parts under test start; all the others have tests of their own.
namespace patchbay::kernels::cuda {

void widen(Stream stream, float*, const uint16_t*, int64_t) {
    if (gpu().kernels != cudaSuccess) gpu().fail_to_start(gpu().kernels);
    else gpu().start(static_cast<cudaStream_t>(stream), [] {});
}

void dequantise(Stream stream, void* out, pb_dtype dtype, const Codes& c) { // I8 without offsets, to F32
    if (dtype != PB_F32 || c.dtype != PB_I8 || c.offsets || c.order) std::abort();
    gpu().start(static_cast<cudaStream_t>(stream), [=] {
        const int64_t groups = (c.cols + c.group - 1) / c.group;
        for (int64_t i = 0; i < c.rows * c.cols; ++i)
            static_cast<float*>(out)[i] = static_cast<float>(static_cast<int8_t>(c.codes[i])) *
                                          c.scales[i / c.cols * groups + i % c.cols / c.group];
    });
}

}  // namespace patchbay::kernels::cuda

// The steps of a GPU: the one that is given to its stream, with its fault, and those in flight. For the CUDA device.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "gpu.hpp"
#include "later_copies.hpp"
#include "rank_connection.hpp"

namespace patchbay {

class Steps {
  public:
    Steps(Gpu&, const RankConnection&);
    ~Steps();
    Steps(const Steps&) = delete;
    Steps& operator=(const Steps&) = delete;

    // As sdk/device.hpp wants them. Throw Error; wait_step() and end_step() that of their step.
    void begin_step();
    void submit_step();
    void wait_step(); // for the oldest in flight
    void end_step();  // submits and waits; those before it are still to be waited for
    void to_host_async(void* to, const void* from, uint64_t bytes);

    const std::string& fault() const { return fault_; } // of this step; ops after it do nothing
    bool faulty() const { return !fault_.empty(); }
    void set_fault(std::string text) noexcept { fault_ = std::move(text); }
    void before_op(const char* next) noexcept; // sets the fault where a kernel of other plugins did not start
    void after_op(const char* op) noexcept;    // the same for one of this op
    int32_t* kernel_fault() const { return static_cast<int32_t*>(kernel_fault_.data()); }

  private:
    struct InFlight {
        cudaEvent_t done;
        std::string fault;
        LaterCopies::OfStep copies;
        std::unique_ptr<int32_t> kernel_fault; // once it is done
    };
    void enqueue_end();
    void finish(const InFlight&); // waits

    Gpu& gpu_;
    const RankConnection& connection_;
    GpuMemory kernel_fault_; // written by kernels, of the step that the GPU is at
    LaterCopies copies_;
    std::string fault_;
    std::deque<InFlight> in_flight_; // the oldest first
};

}  // namespace patchbay

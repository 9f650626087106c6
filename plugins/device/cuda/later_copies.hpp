// Copies to the host that go on when their step is over: until then they are in pinned memory. For the CUDA device.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu.hpp"

namespace patchbay {

class LaterCopies {
  public:
    explicit LaterCopies(Gpu& gpu) : gpu_(gpu) {}
    ~LaterCopies(); // of work that is done
    LaterCopies(const LaterCopies&) = delete;
    LaterCopies& operator=(const LaterCopies&) = delete;

    struct Pinned {
        void* memory;
        uint64_t bytes;
    };
    struct Copy {
        Pinned pinned;
        void* to;
        uint64_t bytes;
    };
    using OfStep = std::vector<Copy>;

    void start(void* to, const void* from, uint64_t bytes); // of this step, in order with the stream; throws Error
    OfStep end_step();                                      // this step's copies: the next one has none yet
    void finish(const OfStep&);                             // their step is over: its bytes go where they are wanted
    void drop(const OfStep&) noexcept;                      // or are of no use
    void drop_started() noexcept;                           // of a step that was given up

  private:
    Gpu& gpu_;
    OfStep started_;             // in this step
    std::vector<Pinned> unused_; // by any copy; has room for all that were made
    size_t made_ = 0;
};

}  // namespace patchbay

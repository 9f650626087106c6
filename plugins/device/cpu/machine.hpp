// What kernels run on: instructions, the threads of the host's pool, and memory for their calls.
#pragma once
#include "kernels/cpu.hpp"
#include "patchbay/plugin.hpp"

namespace patchbay {

class CpuMachine {
  public:
    CpuMachine(kernels::Isa, const pb_host&);
    CpuMachine(const CpuMachine&) = delete;
    CpuMachine& operator=(const CpuMachine&) = delete;

    const kernels::Machine& kernels() const { return machine_; }

  private:
    Pool pool_;
    kernels::Scratch scratch_;
    kernels::MatrixMemory matrices_;
    kernels::Machine machine_;
};

}  // namespace patchbay

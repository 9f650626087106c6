// The ranks that a program has: those that mpirun or srun started with it, kept from engine to engine, or those that it
// starts here, anew for each engine. One for a program; made before any engine and gone after all.
#pragma once
#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "config/engine_config.hpp"
#include "parallel/hub.hpp"
#include "parallel/launch.hpp"

namespace patchbay::parallel {

Deadlines deadlines_of(const config::ParallelSettings&);

class World {
  public:
    // program: what is started as other ranks; empty: this one.
    explicit World(std::filesystem::path program = {}) : program_(std::move(program)) {}

    // Waits until all have joined. visible_by: as in pb_device_info, for ranks that are started here; launchers deal
    // devices out themselves.
    Result<std::shared_ptr<Hub>> ranks(uint32_t size, const config::ParallelSettings&,
                                       const std::string& visible_by = "");
    // Fails where a launcher started more ranks than the engine of one rank would use.
    Result<> check_alone() const;

  private:
    Result<std::shared_ptr<Hub>> start(uint32_t size, const Deadlines&, const std::string& visible_by) const;

    std::filesystem::path program_;
    std::shared_ptr<Hub> launched_;
};

}  // namespace patchbay::parallel

// The ranks of a program: those that mpirun or srun started with it, kept from engine to engine, or those that it
// starts here, anew for each engine. One for each program; made before any engine and destroyed after all.
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
    // program: the executable of the other ranks; empty: this one.
    explicit World(std::filesystem::path program = {}) : program_(std::move(program)) {}

    // Waits until all have joined. visible_by: as in pb_device_info, for ranks that are started here; launchers assign
    // devices themselves.
    Result<std::shared_ptr<Hub>> ranks(uint32_t size, const config::ParallelSettings&,
                                       const std::string& visible_by = "");
    // Fails if a launcher started several ranks for an engine of one rank.
    Result<> check_alone() const;

  private:
    Result<std::shared_ptr<Hub>> start(uint32_t size, const Deadlines&, const std::string& visible_by) const;

    std::filesystem::path program_;
    std::shared_ptr<Hub> launched_;
};

}  // namespace patchbay::parallel

// A file of decisions: a line of JSON each. Not for several threads.
#pragma once
#include <fstream>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "engine/trace/trace_of.hpp"

namespace patchbay::engine {

class DecisionFile {
  public:
    static Result<std::unique_ptr<DecisionFile>> create(const std::string& path, TraceOf = {});
    DecisionFile(const DecisionFile&) = delete;
    DecisionFile& operator=(const DecisionFile&) = delete;

    void write(nlohmann::ordered_json line); // an object; of one engine among several, it begins with whose it is
    // From the origin; of one engine alone, from the first time that was asked for.
    double time_ms(uint64_t ns);
    Result<> close();                        // whether all of it is on the disk

  private:
    DecisionFile(std::string path, std::ofstream out, TraceOf of)
        : path_(std::move(path)), out_(std::move(out)), of_(std::move(of)) {}

    const std::string path_;
    std::ofstream out_;
    TraceOf of_;
    bool has_origin_ = !of_.name.empty();
};

}  // namespace patchbay::engine

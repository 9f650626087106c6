// An engine of the tests that keeps all logits of each row that a token was sampled from.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing {

using Row = std::vector<float>;
using Rows = std::map<std::pair<RequestId, uint64_t>, Row>; // by request and position

inline Rows read_rows(const std::string& file) {
    Rows out;
    std::ifstream in(file, std::ios::binary);
    uint64_t head[3]; // id, position, count
    while (in.read(reinterpret_cast<char*>(head), sizeof head)) {
        Row row(head[2]);
        in.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
        out[{head[0], head[1]}] = std::move(row); // the last one counts: a rejected draft's is computed again
    }
    return out;
}

// An engine whose logits are kept, by the sampler plugins/recorder.cpp.
class Recorded {
  public:
    explicit Recorded(config::EngineConfig c) : file_(::testing::TempDir() + "patchbay-rows-XXXXXX") {
        const int fd = mkstemp(file_.data());
        if (fd < 0) throw std::runtime_error("cannot make " + file_);
        close(fd);
        c.sampler = {"recorder", {{"file", file_}}};
        harness.emplace(c);
    }
    ~Recorded() { std::remove(file_.c_str()); }
    Recorded(const Recorded&) = delete;

    Rows rows() const { return read_rows(file_); }

    std::optional<Harness> harness;

  private:
    std::string file_;
};

}  // namespace patchbay::engine::testing

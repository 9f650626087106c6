// Steps as an executor is given them, over a runner that a test plays.
#pragma once
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "execution/executor.hpp"
#include "kv/kv_cache.hpp"
#include "unit/runner/played_runner.hpp"

namespace patchbay::execution::testing {

using runner::testing::FakeDevice;
using runner::testing::FakeModel;
using runner::testing::PlayedRunner;

// One that computes tokens of sequences from their first one on, and samples rows at the end of each.
class PlayedStep {
  public:
    PlayedStep() { batch_.clear({.block_size = PlayedRunner::kBlock, .token_groups = 1, .state_groups = 0}); }
    PlayedStep(const PlayedStep&) = delete;
    ~PlayedStep() {
        for (Share& s : shares_) kv_.tables().release(s.table);
    }

    PlayedStep& add(uint64_t id, std::vector<int32_t> tokens, uint32_t rows = 1, pb_sampling_params params = {}) {
        Share& s = shares_.emplace_back(Share{std::move(tokens), {}, params});
        if (!kv_.tables().grow(s.table, static_cast<uint32_t>(s.tokens.size())))
            throw std::runtime_error("there are too few pages");
        rows_.push_back({s.tokens, 0, rows, s.table});
        paths_.push_back({id, static_cast<uint32_t>(samples_.size()), rows, false, {}, {}});
        for (uint32_t r = 0; r < rows; ++r) {
            pb_sample_row row{};
            row.id = id;
            row.seed = 1000 + id;
            row.position = s.tokens.size() + r;
            row.params = &s.params;
            samples_.push_back(row);
        }
        return *this;
    }
    std::vector<pb_sample_row>& rows() { return samples_; }
    std::vector<RowPath>& paths() { return paths_; }
    void copy(const kv::PageCopy& c) { copies_.push_back(c); }

    runner::Batch& batch() {
        if (!std::exchange(built_, true)) {
            for (const kv::PageCopy& c : copies_) batch_.copy(c);
            for (const runner::BatchRow& r : rows_) batch_.add(r);
            batch_.finish();
        }
        return batch_;
    }
    StepInput input(uint32_t max_logprobs = 0) {
        StepInput in{.batch = batch(), .rows = rows_, .copies = copies_};
        in.samples.struct_size = sizeof in.samples;
        in.samples.row_count = static_cast<uint32_t>(samples_.size());
        in.samples.row_stride = sizeof(pb_sample_row);
        in.samples.max_logprobs = max_logprobs;
        in.samples.rows = samples_.data();
        return in;
    }
    StepInput overlapping() {
        StepInput in = input();
        in.overlaps = true;
        return in;
    }

  private:
    struct Share {
        std::vector<int32_t> tokens;
        kv::BlockTable table;
        pb_sampling_params params;
    };
    kv::KvCache kv_{PlayedRunner::kBlocks, PlayedRunner::kBlock, kv::PrefixCaching::kOff, "fake"};
    std::deque<Share> shares_; // whose tokens and tables stay in place
    std::vector<runner::BatchRow> rows_;
    std::vector<pb_sample_row> samples_;
    std::vector<RowPath> paths_;
    std::vector<kv::PageCopy> copies_;
    runner::Batch batch_;
    bool built_ = false;
};

}  // namespace patchbay::execution::testing

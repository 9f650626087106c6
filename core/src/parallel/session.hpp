// Messages between ranks that serve one engine: what to load, whether all have the same, and the batches.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runner/batch.hpp"

namespace patchbay::parallel {

struct Begin { // from rank 0
    std::string configuration;             // YAML: the effective configuration of rank 0
    std::vector<std::string> plugin_dirs;  // folders of its plugins
    uint64_t connect_ms = 0;               // limit for connecting the devices
};
std::string bytes_of(const Begin&);
Result<Begin> read_begin(std::string_view);

// What must be equal on all ranks: a readable name, and the value.
struct Fact {
    std::string name, value;
};
std::string bytes_of(const std::vector<Fact>&);
Result<std::vector<Fact>> read_facts(std::string_view);
// "model 'x' is abc on rank 0, def there"; empty: they are equal.
std::string difference(const std::vector<Fact>& ours, const std::vector<Fact>& theirs);

// From rank 0, in its turn between two steps: what the other ranks do for a swap of what they compute with.
struct RankSwap {
    enum class Slot : uint8_t { kAttention, kModel };
    enum class Verb : uint8_t {
        kPrepare, // make a candidate and check it; of a model: load its weights while steps go on
        kUse,     // it takes the slot
        kForget,  // the one before it does not come back
        kDrop,    // it is not needed any more
    };

    uint64_t number = 0; // of this message
    Slot slot = Slot::kAttention;
    Verb verb = Verb::kUse;
    uint64_t candidate = 0; // 0: what the engine was started with
    // ---- of kPrepare ----
    std::string plugin, library, sha256;
    std::map<std::string, std::string> settings;
    std::string weights, identity; // of a model: their folder or file, and as weights::model_identity()
};
std::string bytes_of(const RankSwap&);
Result<RankSwap> read_swap(std::string_view);
std::string answer_to_swap(const Result<>&);
Result<> read_swap_answer(std::string_view);

// The rows of a step, and the data that they refer to.
class StepRows {
  public:
    const std::vector<runner::BatchRow>& rows() const { return rows_; }
    const std::vector<kv::PageCopy>& copies() const { return copies_; } // before the rows, in order

  private:
    friend Result<> read_step(std::string_view, StepRows&);
    std::vector<runner::BatchRow> rows_;
    std::vector<std::vector<int32_t>> tokens_; // by row
    std::vector<kv::BlockTable> tables_;
    std::vector<kv::PageCopy> copies_;
};

struct StepLimits { // limits of a step, for every source
    uint32_t vocab_size = 0, max_position = 0, num_blocks = 0;
    runner::BatchForm form;
    uint32_t swap_slots = 0;
    bool zeroes = false; // pages and slots may become zero
};
std::string bytes_of(const std::vector<runner::BatchRow>&, std::span<const kv::PageCopy>);
Result<> read_step(std::string_view, StepRows&);
Result<> check_step(const std::vector<runner::BatchRow>&, std::span<const kv::PageCopy>, const StepLimits&);

}  // namespace patchbay::parallel

// The requests of one repeat: prompts, lengths, arrival times, seeds. The same for every variant, and a pure function
// of the specification, the seed and the repeat.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "experiment/prompts.hpp"
#include "experiment/sessions.hpp"
#include "experiment/spec.hpp"
#include "experiment/windows.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::experiment {

struct PlannedRequest {
    std::vector<text::TokenId> prompt;
    engine::SamplingParams sampling; // with max_tokens and seed set
    uint32_t output_tokens = 0;      // that it will make; 0: not known
    uint64_t arrival_ns = 0;         // since the start of the run; 0 where it follows
    uint64_t deadline_ns = 0;        // likewise, of one that follows since its arrival; 0: none
    uint32_t tenant = 0;
    int32_t priority = 0;
    std::string label;               // of its class; empty: none
    uint32_t ends_after = 0;         // its output ends there though max_tokens is more; 0: it does not
    std::optional<uint32_t> follows; // the request that is done before it arrives, think_ns after that; else arrival_ns
    uint64_t think_ns = 0;
    bool continues = false;          // its prompt is put after the prompt and the output of `follows`
};

struct Clipping { // what had to be cut, in requests and tokens
    uint32_t prompts = 0, outputs = 0, histories = 0; // histories: turns that lost what was said before them
    uint64_t prompt_tokens = 0, output_tokens = 0;
};

struct Workload {
    std::vector<PlannedRequest> requests; // by arrival; a session's in one piece
    Clipping clipped;
};

// The requests of a run, each made when it is wanted: their prompts take more memory than all else about them.
class Requests {
  public:
    virtual ~Requests() = default;
    virtual uint32_t size() const = 0;
    virtual uint64_t arrival_ns(uint32_t) const = 0;             // 0 where it follows
    virtual std::optional<uint32_t> follows(uint32_t) const = 0; // an earlier one
    virtual PlannedRequest make(uint32_t) const = 0;
};

class GivenRequests final : public Requests {
  public:
    explicit GivenRequests(std::vector<PlannedRequest> requests) : requests_(std::move(requests)) {}
    uint32_t size() const override { return static_cast<uint32_t>(requests_.size()); }
    uint64_t arrival_ns(uint32_t i) const override { return requests_[i].arrival_ns; }
    std::optional<uint32_t> follows(uint32_t i) const override { return requests_[i].follows; }
    PlannedRequest make(uint32_t i) const override { return requests_[i]; }

  private:
    std::vector<PlannedRequest> requests_;
};

struct WorkloadLimits { // of what all variants can take
    uint32_t max_model_len = 0, vocab_size = 0;
};

// Reads files and tokenises once; then makes the workload of any repeat.
class WorkloadSource {
  public:
    // The tokenizer may be null where no text is used. Repeats and their seed decide the windows of a trace.
    static Result<WorkloadSource> open(const WorkloadSpec&, std::shared_ptr<const text::Tokenizer>, WorkloadLimits,
                                       uint32_t repeats = 1, uint64_t seed = 0);
    class Plan;
    // Refers to the source.
    Plan plan(uint64_t seed, uint32_t repeat) const;
    // All of its requests at once.
    Workload repeat(uint64_t seed, uint32_t repeat) const;
    // `count` requests of the same kind that no repeat has, all arriving at once: of rows or prompts of a file that no
    // repeat uses, else of random tokens.
    std::vector<PlannedRequest> warmup(uint64_t seed, uint32_t count) const;

    // What each repeat takes of the trace, where repeats share rows of it.
    std::optional<WindowPlan> shared_windows() const;
    // The prompts of a file that so many repeats take again and again; 0: it has as many as all of them take together.
    uint32_t shared_prompts(uint32_t repeats) const;

    // What must be known of the files that were read.
    const std::vector<std::string>& notices() const { return prompts_.notices(); }
    const std::vector<InputFile>& files() const { return prompts_.files(); }

  private:
    WorkloadSource() = default;
    std::span<const TraceRow> window(uint32_t repeat) const;
    std::vector<bool> used(uint64_t seed) const; // rows of the trace or prompts of the file, by any repeat

    WorkloadSpec spec_;
    WorkloadLimits limits_;
    uint32_t count_ = 0, repeats_ = 1;
    PromptSource prompts_;
    WindowPlan windows_; // of the trace
    std::shared_ptr<const LengthSource> output_lengths_, max_tokens_;
};

// The requests of one repeat: lengths and arrivals, from which each is made.
class WorkloadSource::Plan final : public Requests {
  public:
    Plan(const WorkloadSource&, uint64_t seed, uint32_t repeat);
    uint32_t size() const override { return static_cast<uint32_t>(shapes_.size()); }
    uint64_t arrival_ns(uint32_t i) const override { return times_[i]; }
    std::optional<uint32_t> follows(uint32_t i) const override { return turns_[i].follows; }
    PlannedRequest make(uint32_t i) const override;
    const Clipping& clipped() const { return clipped_; }
    uint32_t prompt_tokens(uint32_t i) const { return shapes_[i].tokens; } // its own, without what it continues
    uint32_t output_tokens(uint32_t i) const { return shapes_[i].output; } // at most

  private:
    struct Shape { // in tokens
        uint32_t prefix = 0, tokens = 0; // tokens: of the prompt, with the prefix and without what it continues
        uint32_t output = 0, before = 0; // before: what it continues
        bool continues = false;
    };
    const TraceRow* row(uint32_t i) const { return rows_.empty() ? nullptr : &rows_[i]; }
    Shape shape_of(uint32_t i);
    void add_history(uint32_t i, TokenIds& prompt) const;
    void set_lengths(uint32_t i, PlannedRequest&) const;
    void set_class(uint32_t i, PlannedRequest&) const;

    const WorkloadSource* source_;
    Draws draws_;
    std::span<const TraceRow> rows_;
    std::vector<uint32_t> order_;
    std::vector<Turn> turns_;
    std::vector<uint64_t> times_;
    std::vector<Shape> shapes_;
    Clipping clipped_;
};

}  // namespace patchbay::experiment

// What a run in a process of its own and its parent say to each other: one job down; up what happens, as frames of a
// length, a kind and a value. Both ends are the same program.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "experiment/archive.hpp"
#include "experiment/matrix.hpp"
#include "experiment/one_run.hpp"
#include "experiment/record.hpp"

namespace patchbay::experiment {

// Where they talk, and where the child leaves its last words if it is ended: a line that names component and call.
inline constexpr int kRunFd = 3, kLastWordsFd = 4;

struct Job {
    bool trial = false;           // only makes the engine, and says what it is
    bool quality = false;         // or: only scores a text
    std::string spec_yaml, name;  // of the experiment
    std::vector<std::string> plugin_dirs;
    uint64_t variant = 0;
    uint32_t repeat = 0, attempt = 0;
    std::optional<double> rate;
    bool simulated = false;       // known since the trial
    bool with_text = false;       // prompts may be texts
    std::vector<std::string> inputs; // SHA-256 of each file that the workload was read from
    uint32_t max_model_len = 0, vocab_size = 0; // of what all variants take
    bool wants_metrics = false;
    bool is_steady = false;       // what the rule for windows says
    std::vector<config::Origin> swaps; // where they stand in the file
    std::string trace_file;            // empty: none
    ControlChoice control{};
};

enum class Word : uint8_t { kJob, kEngine, kRequest, kOutput, kStep, kRows, kProgress,
                             kAdd, kSet, kDone,    kTried,  kScored, kFailed };

struct Frame {
    Word word;
    std::string_view body;
};

std::string framed(Word, std::string_view body);
template <class... T>
std::string frame_of(Word word, const T&... values) {
    Packer p;
    p(values...);
    return framed(word, p.take());
}
template <class... T>
bool unpack(std::string_view body, T&... values) {
    Unpacker u(body);
    u(values...);
    return u.done();
}

// Cuts what was read into frames.
class Frames {
  public:
    void add(std::string_view bytes);
    std::optional<Frame> next(); // its body lives until the next add()
    bool broken() const { return broken_; } // a length that cannot be

  private:
    std::string bytes_;
    size_t at_ = 0;
    bool broken_ = false;
};

// The child's end. [any thread]
class FrameWriter {
  public:
    explicit FrameWriter(int fd) : fd_(fd) {}
    template <class... T>
    void add(Word word, const T&... values) { // kept until flush()
        const std::string frame = frame_of(word, values...);
        const std::lock_guard lock(mutex_);
        bytes_ += frame;
    }
    void flush(); // ends the process if the parent is gone

  private:
    const int fd_;
    std::mutex mutex_;
    std::string bytes_;
};

bool write_all(int fd, std::string_view bytes); // of a socket; false: the other end is gone

template <class A>
void fields(A& a, config::Origin& o) {
    std::string name = o.name ? *o.name : "";
    a(o.kind, name, o.line, o.column);
    o.name = std::make_shared<const std::string>(std::move(name));
}
template <class A>
void fields(A& a, Job& j) {
    a(j.trial, j.quality, j.spec_yaml, j.name, j.plugin_dirs, j.variant, j.repeat, j.attempt, j.rate, j.simulated,
      j.with_text, j.inputs, j.max_model_len, j.vocab_size, j.wants_metrics, j.is_steady, j.swaps, j.trace_file,
      j.control.address, j.control.token_file);
}
template <class A>
void fields(A& a, host::Identity& i) {
    a(i.kind, i.name, i.version, i.sha256, i.build, i.path);
}
template <class A>
void fields(A& a, host::SwapRecord& s) {
    a(s.kind, s.transaction, s.from, s.to, s.state, s.phase, s.reason, s.step, s.time_ns, s.pause_ns, s.end_step);
}
template <class A>
void fields(A& a, runner::CallTimes& t) {
    a(t.model_forward, t.attention_plan, t.attention_append, t.attention_run, t.device_begin, t.device_launch,
      t.device_end, t.sampler);
}
template <class A>
void fields(A& a, engine::LogitsStatistics& s) {
    a(s.entropy, s.max_logit, s.first_share);
}
template <class A>
void fields(A& a, engine::RequestOutput& o) { // without what only people read
    a(o.id, o.index, o.tokens, o.finish, o.time_ns, o.logits, o.cached_tokens, o.preemptions, o.first_scheduled_ns);
}
template <class A>
void fields(A& a, engine::EngineFacts& f) { // without the work of its model
    a(f.vocab_size, f.max_model_len, f.num_blocks, f.block_size, f.threads, f.kv_groups, f.state_groups, f.kv_bytes,
      f.weight_bytes, f.page_bytes, f.swap_pages, f.kv_padding, f.prefix_caching, f.graphs, f.graph_bytes,
      f.graph_capture_ns, f.draft_model, f.draft_weight_bytes, f.load_ns, f.device_name, f.isa, f.architecture,
      f.weight_dtype, f.kv_dtype, f.model_identity, f.plugins, f.ranks, f.tensor_parallel_size, f.synthetic_acceptance,
      f.simulated);
}
template <class A>
void fields(A& a, LoadedParts& p) {
    a(p.facts, p.brought_in);
}
template <class A>
void fields(A& a, engine::StepReport& r) {
    a(r.step, r.start_ns, r.end_ns, r.phase_ns, r.scheduled_seqs, r.scheduled_tokens, r.prefill_tokens,
      r.decode_tokens, r.sampled_tokens, r.admitted, r.finished, r.trimmed, r.running_requests, r.waiting_requests,
      r.waiting_tokens, r.oldest_wait_ns, r.preemptions, r.preempted_for_memory, r.preempted_tokens, r.swapped_out,
      r.swapped_in, r.pages_to_host, r.pages_to_device, r.swap_fallbacks, r.token_slots, r.empty_slots,
      r.residencies_ns, r.watermark, r.swap_pages, r.used_swap_pages, r.host_page_ns, r.token_ns, r.total_pages,
      r.used_pages, r.cached_pages, r.group_pages, r.prefix_query_tokens, r.prefix_hit_tokens, r.evicted_pages,
      r.chosen_evictions, r.forked, r.copied_pages, r.drafted_tokens, r.accepted_tokens, r.branches,
      r.dropped_branches, r.branch_tokens,
      r.draft_length, r.drafted_at, r.accepted_at, r.draft_passes, r.draft_pass_tokens, r.draft_pass_ns,
      r.grammar_masks, r.cut_drafts, r.grammar_mask_ns, r.grammars_compiled, r.grammars_cached, r.grammars_refused,
      r.grammar_compile_ns, r.broadcast_bytes, r.broadcast_ns, r.plan_ns, r.sample_ns, r.propose_ns,
      r.kv_update_ns, r.kv_choose_ns, r.forward, r.plan_faults, r.sampler_faults, r.proposer_faults,
      r.kv_policy_faults, r.plan_breaches, r.sampler_breaches, r.proposer_breaches, r.kv_policy_breaches, r.swaps,
      r.sync_reason, r.graph_replayed, r.graph_miss, r.graph_size,
      r.padded_tokens, r.graph_capture_ns, r.graphs, r.graph_bytes);
}
template <class A>
void fields(A& a, RequestRecord& r) {
    a(r.arrival_ns, r.first_scheduled_ns, r.finish_ns, r.token_ns, r.output, r.others, r.prompt_tokens,
      r.cached_tokens, r.preemptions, r.deadline_ns, r.tenant, r.priority, r.label, r.finish, r.error);
}
template <class A>
void fields(A& a, NumberedRequest& r) {
    a(r.number, r.request);
}
template <class A>
void fields(A& a, Rows& r) {
    a(r.steps, r.requests);
}
template <class A>
void fields(A& a, CpuUse& c) {
    a(c.steal, c.others, c.load_average, c.mhz);
}
template <class A>
void fields(A& a, SwapOutcome& s) {
    a(s.record, s.task);
}
template <class A>
void fields(A& a, NamedNumber& n) {
    a(n.name, n.value);
}
template <class A>
void fields(A& a, RunRecord& r) {
    a(r.variant, r.repeat, r.position, r.attempt, r.rate, r.cpu_use, r.started, r.duration_ns, r.end, r.faults,
      r.requests, r.steps, r.swaps, r.numbers);
}

}  // namespace patchbay::experiment

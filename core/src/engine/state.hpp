// What an Engine owns, and the eight phases of a step over it. Engine-internal.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.hpp"
#include "engine/beams.hpp"
#include "engine/draft_length.hpp"
#include "engine/draft_model.hpp"
#include "engine/engine.hpp"
#include "engine/load_model.hpp"
#include "engine/pressure.hpp"
#include "engine/sequence.hpp"
#include "engine/swap_costs.hpp"
#include "engine/verification.hpp"
#include "grammar/compile.hpp"
#include "host/slot.hpp"
#include "parallel/group.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::engine {

// A sequence with the tokens that this step computes for it.
struct Scheduled {
    Sequence* sequence;
    uint32_t tokens;
    uint32_t confirmed; // before the step
    uint32_t rows;      // logit rows: 0 while the prompt is unfinished, else 1 + drafts that are verified
    uint32_t prompt_rows = 0; // in front of them, for prompt_logprobs
    uint32_t first_row = 0;   // of the rows, in the batch
    uint32_t coming = 0; // in flight: placeholders that the next plan may build on
};

// Rows of a path of drafts, each as if the drafts before it were accepted.
struct PathRows {
    Sequence& sequence;
    std::span<const TokenId> tokens; // of the sequence, and the path's drafts behind the confirmed ones
    uint32_t confirmed;
    uint32_t behind;                 // the first row: so many drafts
    uint32_t rows, first_row;
    std::vector<uint32_t>&masks, &word_masks; // (rows, words)
};

struct Verdict { // on a draft: what its row becomes
    uint32_t row;
    TokenId token;
    float logprob; // of the raw logits, where the row asks
};

struct Flight { // a step that the device has and that is not back
    bool up = false;
    bool spoilt = false; // it was given a token that is none
    uint64_t begin_ns = 0;            // when the device was given it
    uint32_t tokens = 0, host_pages = 0; // computed; copied to the host or back
    std::vector<Scheduled> items;
    std::vector<kv::BlockTable> held; // of sequences that have ended: it may write into them
};

// Why a step must be back before the next one is planned, whatever the step. Empty: it need not. (flight.cpp)
std::string_view why_in_turn(const config::EngineConfig&, const runner::ModelRunner&);

struct Engine::State {
    explicit State(Clock& c)
        : clock(c), scheduler("scheduler", host::UnreadState::kStartsEmpty, c),
          sampler("sampler", host::UnreadState::kRefuses, c) {}
    ~State() {
        if (runner) runner->abandon(); // before the sampler goes, whose kernels may be in flight
    }

    // ---- parts, in the order in which they must go away ----
    Clock& clock;
    config::EngineSettings settings;
    config::SwapSettings swap_settings;
    config::SpeculationSettings speculation;
    std::optional<DraftLength> draft_length;      // by mode: adaptive
    std::optional<SyntheticAcceptance> synthetic; // how drafts are accepted; none: by what they are
    std::unique_ptr<ThreadPool> pool;
    pb_clock clock_service{};
    host::Services services;
    std::shared_ptr<const text::Tokenizer> tokenizer;
    std::unique_ptr<runner::SimulatedRanks> simulated_ranks; // of a device that computes nothing
    std::unique_ptr<parallel::Group> group;         // the other ranks; null: there are none
    std::unique_ptr<runner::ModelRunner> runner;
    host::Slot scheduler, sampler;
    Script* script = nullptr; // in place of a model
    std::vector<TokenId> spelled; // tokens that have a text, of a script's vocabulary
    std::unique_ptr<kv::KvCache> kv;
    std::unique_ptr<DraftModel> draft_model; // null: there is no proposer
    host::Proposer proposer; // may be empty
    std::vector<TokenId> eos;
    std::unique_ptr<grammar::GrammarCache> grammars; // null: there is no tokenizer
    grammar::GrammarCache::Counts grammars_reported;
    EngineFacts facts{};

    // ---- requests ----
    RequestId next_id = 1;
    std::unordered_map<RequestId, std::unique_ptr<Sequence>> sequences;
    std::set<std::pair<uint64_t, RequestId>> pending; // by arrival
    WaitingQueue waiting;
    uint64_t waiting_tokens = 0;
    std::vector<Sequence*> running; // in order of admission
    // By request with n > 1: its sequences that have not ended (siblings.cpp).
    std::unordered_map<RequestId, std::vector<Sequence*>> siblings;
    std::unordered_map<RequestId, std::unique_ptr<BeamGroup>> beams; // by request, while one of them has not ended

    // ---- steps in flight (flight.cpp) ----
    std::string_view in_turn = "off"; // why there are none; empty: there are
    std::string_view why_now() const; // why there is none behind the step that comes now, likewise
    Flight flying, launched; // launched: behind it, while a step is under way
    uint64_t last_landing_ns = 0;
    bool landed = false;              // one came back in the step under way
    Result<> overlapped_step();
    Result<> take_off();
    Result<> land();
    void leave_flight(Sequence&);
    void compute_anew(); // what a spoilt step was to compute
    void clear(Flight&);

    // ---- the step under way ----
    bool in_step = false;
    uint64_t step = 0;
    uint32_t idle_plans = 0, bad_plans = 0; // in a row
    uint64_t proposer_faults = 0;           // ever
    uint64_t phase_began_ns = 0; // of the phase under way: when the one before it ended
    StepReport report;
    std::vector<pb_sequence> running_records;
    std::vector<pb_sequence> seated_records; // of those that wait, where there are beams
    std::vector<pb_plan_item> items;
    std::vector<pb_preempt_item> preempts;
    pb_scheduler_out plan_out{};
    std::vector<Sequence*> planned, to_preempt; // whom items and preempts name
    uint64_t plans_checked = 0;
    std::vector<Scheduled> scheduled;
    std::vector<Branch> branches;           // of their drafts
    std::vector<uint32_t> taken_rows;       // by follow_drafts()
    std::vector<runner::BatchRow> batch_rows; // of the batch, for other ranks
    runner::Batch batch;
    TokenId placeholder = 0; // for the token that a step in flight makes
    std::span<float> logits;
    runner::SampledRows on_device;  // of a pass that sampled too
    std::vector<float> kept_logits; // of a sampler on probation, which may write into the others
    std::vector<pb_sample_row> sample_rows;
    std::vector<TokenId> sampled;
    std::vector<float> sampled_logprobs, top_logprobs, sampled_surprise;
    std::vector<TokenId> top_tokens;
    std::vector<Verdict> verdicts;  // of drafts, by rejection
    std::vector<float> judged;      // by row of theirs: log-probabilities, then probabilities
    std::vector<float> drawn_from;  // by a proposer, as it writes them
    std::vector<LogitsStatistics> row_statistics; // where a request asks for them, else empty
    uint32_t max_logprobs = 0;
    uint32_t prompt_rows_left = 0;          // that the step may still have
    std::vector<RequestId> aborts;          // asked for during the step
    std::vector<RequestId> refused;         // arrived in the step, at a full queue
    std::vector<Sequence*> told;            // by publish, while they go on
    std::vector<Sequence*> ended_beams;     // in the step, to be published
    std::vector<std::unique_ptr<Sequence>> behind; // ended, but the draft model is to compute what others may share

    // ---- requests (requests.cpp) ----
    Result<RequestId> add(Request);
    void abort(RequestId);
    void end(RequestId, FinishReason, const std::string& why); // between steps, with its last output
    Result<> check_accepted(const pb_sampling_params&) const;
    bool is_full(size_t arrived) const;           // the queue, with those who arrived before and are not in it yet
    std::string full_queue() const;               // the text of it
    void enqueue(Sequence&);                      // from pending to waiting
    void leave_queue(Sequence&);                  // of those that wait
    void announce(const pb_sequence&);            // to the scheduler: it waits
    void end_sequence(Sequence&, FinishReason, const std::string& why);
    Result<> check_sampling(SamplingParams&) const; // and says what depends on the model: logprobs of −1
    std::unique_ptr<Sequence> make_sequence(Request, uint32_t index);

    // ---- several outputs of one request (siblings.cpp) ----
    void add_siblings(Sequence& first);
    void release_siblings(Sequence& first);       // that were held until it had computed the prompt
    void leave_siblings(Sequence&);
    void refresh_siblings(RequestId request);      // after one of them no longer runs
    const Sequence* source_of(const Sequence&) const; // a sibling whose prompt's KV it can take; null: there is none
    pb_sequence waiting_record(const Sequence&) const;
    kv::CachedPrefix cached_prefix(const Sequence&) const; // that it would find; of watched ones at the latest update
    uint32_t adopt(Sequence&);                    // KV that is there already; returns its tokens
    void finish(Sequence&, FinishReason, std::string reason); // frees what it holds, closes its delta
    void close_delta(Sequence&);                  // with what comes at the end only
    bool is_aborted(const Sequence&) const;       // within the step under way: it ends with it
    void take_back_step(Sequence&);               // what the step appended to it
    void fail_all(const std::string& reason);     // the engine cannot go on

    // ---- cached prefixes of those that wait (prefix_hints.cpp) ----
    std::array<Sequence*, kv::PrefixWatch::kMaxPrompts> watched{}; // by slot
    uint64_t watched_at = 0;                      // by the queue's count of changes
    void update_hints();                          // in the records that schedulers are shown
    void update_record(const Sequence&);          // likewise, of one
    void update_siblings();
    void choose_watched();
    void watch_prefix(Sequence&);
    void unwatch_prefix(Sequence&);

    // ---- beam search (beams.cpp) ----
    Result<> check_beams(const Request&) const;
    void add_beams(Sequence& first);
    bool has_room(const Sequence&) const;         // a seat; for beams seats and, when they come back, blocks for all
    std::span<const pb_sequence> shown_waiting(); // to the scheduler: those that there are seats for
    void seat_beams(BeamGroup&);
    void preempt_beams(BeamGroup&);
    void take_candidates(const Scheduled&);
    BeamSearch::Candidates made_up_candidates(const Sequence&, TokenId likeliest) const;
    void fork_beams(BeamGroup&);
    void choose_beams(BeamGroup&);
    void move_beams(BeamGroup&, const std::vector<uint32_t>& parents);
    void end_beams(BeamGroup&, FinishReason, const std::string& why); // kNone: with what it found
    void charge_copies();

    // ---- the eight phases (step.cpp, commit.cpp) ----
    void admit();
    Result<> plan();
    void apply();
    void build();
    Result<> run();
    Result<> sample();
    void commit();
    void publish();

    // ---- parts of them ----
    template <class F>
    Result<> in_phase(Phase phase, F&& f) { // adds up its time, with what little came before it
        Result<> done;
        if constexpr (std::is_void_v<decltype(f())>) f();
        else done = f();
        const uint64_t now = clock.now_ns();
        report.phase_ns[static_cast<size_t>(phase)] += now - std::exchange(phase_began_ns, now);
        return done;
    }
    Result<> step_in_turn(std::string_view why); // admit to publish, one after the other
    void note_forward();
    Result<> start_ranks(const config::EngineConfig&, const host::Registry&, const pb_device_info&, parallel::World*);
    Result<> load(const config::EngineConfig&, ModelParts&);
    Result<> make_proposer(const config::EngineConfig&, const host::Registry&, const weights::FlatConfig& target);
    void start_drafts();
    bool drafts_by_model() const { return runner->guest() != nullptr; }
    void describe_ranks();
    Result<> forward();                           // of all ranks
    Result<> pass();                              // of this one, into logits, or on_device
    bool pass_samples() const;                    // the pass of the step does, too
    runner::SampleCall sample_call();             // over sample_rows, for the sampler that is in its slot
    void take(const runner::SampledRows&);        // as what was sampled
    pb_scheduler_in scheduler_view(); // but for the time
    Result<> ask_scheduler();                     // for a plan that keeps the contract
    Result<> sample_rows_of_step();
    Result<> ask_sampler();                       // over logits
    Result<> sample_on_device(const runner::SampleCall&);
    void clear_samples(size_t rows);
    Result<> plan_anew(Result<> failed);          // by the scheduler before one on probation; else counts it
    Result<> check_plan();
    Sequence* find_shown(RequestId, size_t& hint);
    void make_tokens();
    void tell_script(); // what is planned (script.cpp)
    void ask_script();  // what the rows become
    void schedule(Sequence&, uint32_t tokens);
    void append_tokens(const Scheduled&);
    TokenLogprobs logprobs_of(size_t row, int32_t top) const; // of what was sampled
    // False: the sequence ended with it.
    bool append_token(Sequence&, TokenId, size_t row);
    bool append_text(Sequence&, TokenId, bool may_stop); // of the token
    bool refuse_token(Sequence&, TokenId);
    bool end_with(Sequence&, FinishReason, std::string_view reason);
    bool stays_behind(const Sequence&) const;
    void propose();
    uint32_t choose_draft_length();               // for the drafts behind this step
    bool by_rejection() const { return speculation.rejection_sample_method == config::Verification::kRejection; }
    Result<> draft_with_model(std::span<const pb_propose_row>, std::span<Sequence* const> owners);
    Result<> ask_proposer(std::span<const pb_propose_row>, std::span<Sequence* const> owners);
    void keep_tree(Sequence&, DraftTree);
    void summarise();

    // ---- preemption (preemption.cpp) ----
    TokenCost token_cost;
    PressureMonitor pressure;
    std::function<void(std::span<const kv::CacheEvent>, uint64_t)> on_kv_events; // empty: nobody listens
    void summarise_kv();
    void tell_kv_events();
    Result<> flush_copies();                      // those that no step to come would make in time
    void preempt(Sequence&, pb_preemption how);
    bool swap_out(Sequence&, pb_preemption how);  // false: its KV is to be computed anew
    bool swap_in(Sequence&);
    bool finds_all_pages(const Sequence&) const;
    bool lacks_pages() const;                     // for those who run
    void note_token_cost(uint32_t tokens, uint32_t host_pages, uint64_t ns);

    // ---- bad words and allowed tokens (token_masks.cpp) ----
    Result<TokenRules> token_rules(const SamplingParams&) const;
    void mask_rows(const PathRows&);              // of sample_rows, by what depends on the tokens before them
    void forbid_words(const PathRows&);           // in rows that end as a bad word begins
    void get_stuck(Sequence&, size_t row, std::string why); // if it gets there
    bool check_stuck(Sequence&, size_t row);      // false: the sequence ended, the row had no token for it

    // ---- logprobs of prompts (prompt_logprobs.cpp) ----
    uint32_t most_prompt_rows() const;            // of a step
    uint32_t prompt_rows(const Sequence&, uint32_t begin, uint32_t end) const; // that a chunk has
    void add_prompt_rows(Sequence&, uint32_t begin, uint32_t count); // to sample_rows
    void take_prompt_rows(const Scheduled&);      // what came of them

    // ---- logits_statistics (logits_statistics.cpp) ----
    Result<> check_statistics(const SamplingParams&) const;
    void note_logits();
    void add_statistics(Sequence&, size_t row);

    // ---- structured output (structured.cpp) ----
    Result<std::shared_ptr<grammar::Grammar>> grammar_of(const grammar::StructuredOutputs&);
    void structure(Sequence&, std::shared_ptr<grammar::Grammar>); // its output, from now on
    void restrict_rows(const PathRows&);          // to what its grammar allows
    void cut_drafts(Sequence&);                   // from the first one on that its grammar does not allow
    void cut_path(Sequence&, DraftPath&);         // likewise
    bool follow_grammar(Sequence&, TokenId);      // false: the sequence ended, the token does not belong to it
    void make_grammars(); // of the tokenizer's vocabulary
    void report_grammars();

    // ---- verification of trees of drafts (branches.cpp) ----
    void fork_branches();                         // of those who are scheduled
    bool fork_branch(size_t item, const DraftPath&, uint32_t& tokens); // of those that are left
    void add_branches();                          // to the batch and to sample_rows
    Branch* follow_drafts(const Scheduled&);      // into taken_rows; nullptr: along the first path
    void take_over(Sequence&, Branch&);
    void drop_branches();

    // ---- verification of drafts, but for matching (speculation.cpp) ----
    Result<> check_speculation(const host::Component& sampler) const;
    Result<> judge_drafts(const host::Component& sampler); // before it samples: it may write into logits
    void follow_verdicts();
    void accept_by_rates();
    void keep_draft(Sequence&, TokenId, std::span<const float> drawn_from); // empty: it was not drawn

    // ---- swaps (swap.cpp) ----
    void swap_at_boundary();                      // before a step: the next in line
    void turn_away_sampler();
    void end_probation_step();                    // after it
    // A component on probation failed: its predecessor is back. False: nobody is on probation.
    bool roll_back(host::Slot&, const std::string& phase, const std::string& reason);
    void resync(const host::Component& scheduler);
    void note_slot(const std::string& kind, const host::Identity&);
};

}  // namespace patchbay::engine

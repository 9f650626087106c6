// @name@ - the order that it promises, step by step; built and run by CMake.
#include "patchbay/testing.hpp"

using namespace patchbay::testing;

namespace {

const Plugin kPlugin(PATCHBAY_TEST_PLUGIN);

void tests() {
    Scheduler scheduler(kPlugin, {{"ageing", "100"}});
    Step step; // 2,048 tokens, 64 sequences and 1,000 free pages, where nothing else is said
    step.max_num_seqs = 1;
    step.waiting = {waiting(1, 80, step.now_us), waiting(2, 20, step.now_us)}; // ids, prompts, when they arrived
    expect(scheduler.plan(step).tokens(2) == 20, "the shorter prompt is admitted, whole");

    step.now_us += 1'000'000;
    step.waiting = {waiting(1, 80, 0), waiting(3, 10, step.now_us)};
    expect(scheduler.plan(step).tokens(1) == 80, "after a second's wait a prompt counts as 100 tokens shorter");

    step.max_num_seqs = 8;
    step.free_pages = 0;
    step.running = {decoding(4, 48), decoding(5, 48)};
    step.waiting.clear();
    for (pb_sequence& s : step.running) s.tokens_until_next_page = 0; // each needs a page for its next token
    step.running[1].arrival_us = 1;
    const Planned planned = scheduler.plan(step);
    expect(planned.preempts_sequence(5) && planned.tokens(4) == 1, "without a page the latest is preempted");

    Step whole;
    whole.flags = 0; // prompts may not be split
    whole.max_num_batched_tokens = 3;
    whole.running = {decoding(6, 48)};
    whole.running[0].draft_tokens = 4;
    expect(scheduler.plan(whole).tokens(6) == 3, "a decode goes on without the drafts that do not fit");

    Step mixed; // a prompt that began before two decodes
    mixed.max_num_batched_tokens = 16;
    mixed.running = {waiting(7, 100), decoding(8, 48), decoding(9, 48)};
    mixed.running[1].draft_tokens = 14;
    const Planned shared = scheduler.plan(mixed);
    expect(shared.tokens(8) >= 1 && shared.tokens(9) == 1, "a prompt and drafts leave every decode its token");
    expect(shared.tokens(7) + shared.tokens(8) + shared.tokens(9) == 16, "and get what is left of the step");
    for (const CheckResult& check : run_checks(PATCHBAY_TEST_PLUGIN)) // those of its kind, in a child process
        expect(!check.failed(), check.check + ": " + check.reason);
}

}  // namespace

int main() { return run(tests); }

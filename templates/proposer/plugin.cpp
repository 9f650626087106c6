// @name@ - a proposer: drafts the tokens that followed the newest token where it occurred last.
#include "patchbay/sdk/proposer.hpp"

namespace {

class @Class@ {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("window", "4096", 1, 1e7, "tokens", "how far back to look"),
    };

    explicit @Class@(const patchbay::Context& context)
        : window_(context.get<uint32_t>("window")), metrics_(context.host()) {}

    // Once a step, for the sequences that decode. The engine verifies all drafts: a wrong one costs time, never a text.
    void propose(patchbay::ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) {
            auto tokens = batch.tokens(i); // prompt and output, the newest last
            if (tokens.size() > window_) tokens = tokens.last(window_);
            for (size_t at = tokens.size() - 1; at-- > 0;) {
                if (tokens[at] != tokens.back()) continue;
                batch.propose(i, tokens.subspan(at + 1)); // what is past the row's max_drafts is cut
                metrics_.add("@name@_matches");           // patchbay_plugin_@name@_matches_total
                break;
            }
        }
    }

  private:
    uint32_t window_;
    patchbay::Metrics metrics_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "repeats what followed the newest token before"}))

#include "scenario/known_names.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

namespace patchbay::scenario::known_names_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Checked {
    Checked() {
        place.kind = config::Origin::Kind::kFile;
        place.name = std::make_shared<const std::string>("a.yaml");
        place.line = 7;
        located.move_to(place);
    }
    void add(const std::string& id, uint32_t outputs = 1) {
        Arrival a;
        a.id = id;
        a.n = outputs;
        names.add(a);
    }

    config::Origin place;
    config::Faults faults;
    LocatedFaults located{faults};
    KnownNames names{located};
};

TEST(KnownNames, AreThoseOfAllOutputsAdded) {
    Checked c;
    c.add("a", 2);
    c.names.check(Names{"a", "a.1"});
    c.names.check_block("a.1/0");
    EXPECT_THAT(c.faults.lines(), IsEmpty());
    c.names.check("b");
    EXPECT_THAT(c.faults.lines(), ElementsAre(HasSubstr("a.yaml:7")));
    EXPECT_THAT(c.faults.lines(), ElementsAre(HasSubstr("no request 'b' was added before")));
}

TEST(KnownNames, AreAddedOnce) {
    Checked c;
    c.add("a.1");
    c.add("a", 2);
    EXPECT_THAT(c.faults.lines(), ElementsAre(HasSubstr("'a.1' was added before")));
}

TEST(KnownNames, OfOneOutputAreNoRequest) {
    Checked c;
    c.add("a", 2);
    c.names.check_request("a");
    EXPECT_THAT(c.faults.lines(), IsEmpty());
    c.names.check_request("a.1");
    EXPECT_THAT(c.faults.lines(), ElementsAre(HasSubstr("'a.1' is one output of several")));
}

TEST(KnownNames, OfBlocksHaveARequestAndANumber) {
    Checked c;
    c.add("a");
    c.names.check_blocks({"a/0", "a/3/1", "b/0", "a"});
    EXPECT_THAT(c.faults.lines(), SizeIs(2));
}

}  // namespace
}  // namespace patchbay::scenario::known_names_test

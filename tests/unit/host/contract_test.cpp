// What is said of tables that lack a function which the host calls unasked.
#include "host/contract.hpp"

#include "unit/host/host_fixture.hpp"

namespace patchbay::host::contract_test {
namespace {

// A kv_policy with this table, and with this one of its hot parameters.
pb_component component(const pb_kv_policy& table) {
    static const pb_extension kList{PB_CONFIGURE, PB_CONFIGURE_REVISION, 0};
    pb_component c{};
    c.struct_size = sizeof c;
    c.kind = PB_KV_POLICY;
    c.vtable = &table;
    c.extensions = &kList;
    c.extension_count = 1;
    c.extension_stride = sizeof kList;
    c.extension = [](void* self, const char*) -> const void* { return self; };
    return c;
}

TEST(Contract, AVtableNamesTheFunctionsThatItLacks) {
    pb_kv_policy table{};
    table.struct_size = sizeof table;
    table.update = [](void*, const pb_kv_pages*) { return pb_status{PB_OK}; };
    EXPECT_EQ(OwnComponent(component(table)).vtable_fault(), "lacks adopt, choose");
    table.struct_size = 0;
    EXPECT_EQ(OwnComponent(component(table)).vtable_fault(),
              "says struct_size 0, expected sizeof(pb_kv_policy), " + std::to_string(sizeof table) +
                  ", and so lacks adopt, update, choose");
}

TEST(Contract, AnExtensionNamesTheFunctionsThatItLacks) {
    const pb_kv_policy table{};
    pb_configure hot{};
    hot.struct_size = sizeof hot;
    ExtensionTables tables;
    EXPECT_EQ(error_of(tables.read(component(table), &hot)),
              "its table of patchbay.component.configure/1 lacks configure");
    hot.struct_size = 0;
    EXPECT_EQ(error_of(tables.read(component(table), &hot)),
              "its table of patchbay.component.configure/1 says struct_size 0, expected sizeof(pb_configure), " +
                  std::to_string(sizeof hot) + ", and so lacks configure");
}

}  // namespace
}  // namespace patchbay::host::contract_test

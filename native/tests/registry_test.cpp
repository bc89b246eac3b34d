#include "waywiser/registry.hpp"

#include <gtest/gtest.h>

#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

struct Thing {
    virtual ~Thing() = default;
    [[nodiscard]] virtual const Info& info() const = 0;
};
struct Second final : Thing {
    [[nodiscard]] const Info& info() const override {
        static const Info own{.name = "second", .description = "", .parameters = {}, .source = ""};
        return own;
    }
};
struct First final : Thing {
    [[nodiscard]] const Info& info() const override {
        static const Info own{.name = "first", .description = "", .parameters = {}, .source = ""};
        return own;
    }
};
const Registered<Thing, Second> second;
const Registered<Thing, First> first;

TEST(Registry, KnowsByNameAndInOrder) {
    const auto& things = Registry<Thing>::instance();
    ASSERT_EQ(things.entries().size(), 2u);
    EXPECT_EQ(things.entries()[0]->info().name, "first");
    EXPECT_EQ(things.find("second"), things.entries()[1].get());
    EXPECT_EQ(things.find("third"), nullptr);
}

// An executor that accepts any path and parameters.
class Pliant final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info own{.name = "pliant", .description = "", .parameters = {}, .source = ""};
        return own;
    }
    [[nodiscard]] std::optional<std::string> unsupported_reason(const Transfer&,
                                                                const Machine&) const override {
        return std::nullopt;
    }
    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return {{.name = "threads",
                 .description = "",
                 .kind = ParameterKind::ordered,
                 .choices = {"2", "1", "8"}},
                {.name = "direction", .description = "", .choices = {"left", "right"}}};
    }
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::host;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer&, const Machine&) const override {
        return {};
    }
    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer&, const Machine&,
                                                     const std::vector<gpu::Stream*>&,
                                                     transfer::Engine&) const override {
        return nullptr;
    }
};

Transfer with(const Settings& settings) {
    const Memory pageable{"pageable", Place::parse("numa:0"), {}};
    return {{pageable, pageable, "cpu"}, 64, settings};
}

TEST(Parameter, IsTheTransfersOrTheFirstChoice) {
    const Pliant executor;
    EXPECT_EQ(parameter(executor, with({}), {}, "threads"), "2");
    EXPECT_EQ(parameter(executor, with({{"direction", "right"}}), {}, "direction"), "right");
    EXPECT_EQ(parameter(executor, with({}), {}, "unknown"), "");
}

TEST(Parameter, OrderedOnesTakeWhatLiesBetween) {
    const Pliant executor;
    EXPECT_EQ(parameter(executor, with({{"threads", "5"}}), {}, "threads"), "5");
    for (const char* value : {"0", "9", "-1", "five", "", "2.5", "99999999999"}) {
        EXPECT_THROW(parameter(executor, with({{"threads", value}}), {}, "threads"), NotSupported)
            << value;
    }
    EXPECT_THROW(parameter(executor, with({{"direction", "up"}}), {}, "direction"), NotSupported);
}

// The defaults for a machine with one node of one CPU.
const Machine kSmall{{{.index = 0, .cpus = {0}}}, {}};

std::string reason(const Transfer& transfer, const Machine& machine = kSmall) {
    return unsupported_reason(transfer, machine).value_or("");
}

TEST(UnsupportedReason, NamesWhatIsUnknown) {
    Transfer transfer = with({});
    EXPECT_EQ(reason(transfer), "");
    transfer.path.executor = "magic";
    EXPECT_NE(reason(transfer).find("'magic'"), std::string::npos);
    transfer = with({});
    transfer.path.source.kind = "bubble";
    EXPECT_NE(reason(transfer).find("'bubble'"), std::string::npos);
    EXPECT_NE(reason(with({{"colour", "red"}})).find("'colour'"), std::string::npos);
    EXPECT_NE(reason(with({{"stores", "red"}})).find("stores=red"), std::string::npos);
    transfer = with({});
    transfer.path.source.variant = {{"pages", "tiny"}};
    EXPECT_NE(reason(transfer).find("pages=tiny"), std::string::npos);
}

TEST(UnsupportedReason, NamesPlacesThatAreNotThere) {
    Transfer transfer = with({});
    transfer.path.destination.place.index = 3;
    EXPECT_NE(reason(transfer).find("numa:3"), std::string::npos);
    transfer.path.destination = {"device", Place::parse("gpu:0"), {}};
    EXPECT_NE(reason(transfer).find("gpu:0"), std::string::npos);
    transfer.path.destination = {"device", Place::parse("numa:0"), {}};
    EXPECT_NE(reason(transfer).find("numa:0"), std::string::npos);
}

TEST(UnsupportedReason, SaysThatPinnedMemoryNeedsAGpu) {
    Transfer transfer = with({});
    transfer.path.source.kind = "pinned";
    EXPECT_NE(reason(transfer).find("GPU"), std::string::npos);
    Machine machine = kSmall;
    machine.gpus.emplace_back().uuid = "GPU-x";
    EXPECT_EQ(reason(transfer, machine), "");
}

}  // namespace
}  // namespace waywiser

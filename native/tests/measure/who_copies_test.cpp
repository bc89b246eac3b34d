#include "measure/who_copies.hpp"

#include <algorithm>
#include <map>

#include "measure/session_test.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kBytes = 64 << 10;

class WhoCopies : public SessionTest {
protected:
    static Transfer transfer(const char* from, const std::string& source, const char* to,
                             const std::string& destination, const char* executor,
                             const Settings& parameters = {}) {
        const Path path{
            {from, Place::parse(source), {}}, {to, Place::parse(destination), {}}, executor};
        return {path, kBytes, parameters};
    }
    static Transfer rows(Transfer of) {
        of.layout = {Layout::Kind::box, {{"width", "1024"}, {"height", "16"}}};
        of.parameters["call"] = "2d";
        return of;
    }
    static Transfer list(Transfer of) {
        of.layout = {Layout::Kind::list, {{"piece", "4096"}}};
        return of;
    }
    // By kind of path as the fake names it, each contiguous first.
    static std::map<std::string, std::vector<Transfer>> kinds() {
        const Transfer to = transfer("pinned", node, "device", "gpu:0", "copy-engine");
        const Transfer from = transfer("device", "gpu:0", "pinned", node, "copy-engine");
        const Transfer local = transfer("device", "gpu:0", "device", "gpu:0", "copy-engine");
        const Transfer batch = transfer("device", "gpu:0", "device", "gpu:0", "batch");
        return {
            {"h2d", {to, rows(to), transfer("pageable", node, "device", "gpu:0", "copy-engine")}},
            {"d2h",
             {from, list(from), transfer("device", "gpu:0", "pageable", node, "copy-engine"),
              transfer("device", "gpu:0", "pinned", node, "copy-engine", {{"api", "sync"}})}},
            {"local", {local, rows(local), list(local), list(batch)}},
            {"peer",
             {transfer("device", "gpu:0", "device", "gpu:1", "copy-engine"),
              transfer("device", "gpu:1", "device", "gpu:0", "copy-engine")}}};
    }

    // Again until `enough`, since a busy host decides nothing.
    template <class Enough>
    WhoCopiesOutcome observe_until(const std::vector<Transfer>& transfers, Enough enough) {
        WhoCopiesOutcome outcome = observe(transfers);
        for (int n = 0; n < 100 && !enough(outcome); ++n) outcome = observe(transfers);
        return outcome;
    }
    // Observations on a busy host until each is decided once.
    WhoCopiesOutcome decide(const std::vector<Transfer>& transfers) {
        WhoCopiesOutcome known = observe(transfers);
        const auto keep = [](Observation& one, const Observation& again) {
            if (!is_decided(one)) one = again;
        };
        for (int n = 0; n < 300 && !is_decided(known); ++n) {
            const WhoCopiesOutcome again = observe(transfers);
            keep(known.kernel, again.kernel);
            keep(known.fill, again.fill);
            for (std::size_t i = 0; i < known.copies.size() && i < again.copies.size(); ++i) {
                keep(known.copies[i], again.copies[i]);
            }
        }
        return known;
    }
    static bool is_decided(const WhoCopiesOutcome& outcome) {
        return has_kernel(outcome) && is_decided(outcome.fill) &&
               std::ranges::all_of(outcome.copies,
                                   [](const Observation& each) { return is_decided(each); });
    }
    static bool is_decided(const Observation& each) {
        return each.found != WhileOccupied::undecided;
    }
    static bool has_kernel(const WhoCopiesOutcome& outcome) { return is_decided(outcome.kernel); }
    WhoCopiesOutcome observe(const std::vector<Transfer>& transfers) {
        session = std::make_unique<Session>(test::this_machine(), options);
        return session->who_copies({.gpu = 0, .transfers = transfers});
    }
};

TEST_F(WhoCopies, ShowsForEachKindOfPathWhetherItWaits) {
    for (const std::string by : {"none", "local", "h2d", "d2h", "peer"}) {
        SCOPED_TRACE(by);
        fake::configure(by == "none" ? "" : "multiprocessors=" + by);
        std::vector<Transfer> transfers;
        std::vector<WhileOccupied> expected;
        for (const auto& [kind, members] : kinds()) {
            transfers.insert(transfers.end(), members.begin(), members.end());
            expected.insert(expected.end(), members.size(),
                            kind == by ? WhileOccupied::waited : WhileOccupied::ended);
        }
        const WhoCopiesOutcome outcome = decide(transfers);
        EXPECT_EQ(outcome.kernel.found, WhileOccupied::waited) << outcome.kernel.reason;
        EXPECT_EQ(outcome.fill.found, WhileOccupied::ended) << outcome.fill.reason;
        ASSERT_EQ(outcome.copies.size(), transfers.size());
        for (std::size_t i = 0; i < transfers.size(); ++i) {
            const Observation& copy = outcome.copies[i];
            EXPECT_EQ(copy.found, expected[i]) << transfers[i].text() << ": " << copy.reason;
            EXPECT_TRUE(copy.reason.empty()) << copy.reason;
            EXPECT_GT(copy.alone_seconds, 0);
            EXPECT_GT(copy.held_seconds, 0);
        }
    }
}

TEST_F(WhoCopies, AFillThatWaitsIsByMultiprocessors) {
    fake::configure("multiprocessors=fill,local");
    const WhoCopiesOutcome outcome = decide({kinds()["h2d"].front()});
    EXPECT_EQ(outcome.fill.found, WhileOccupied::waited) << outcome.fill.reason;
    EXPECT_GT(outcome.fill.held_seconds, 1e-3);
}

TEST_F(WhoCopies, WithoutAllMultiprocessorsNothingIsDecided) {
    fake::configure("occupied=0;multiprocessors=local");
    const auto is_shown = [](const WhoCopiesOutcome& outcome) {
        return outcome.kernel.reason.find("other work") != std::string::npos;
    };
    const WhoCopiesOutcome outcome =
        observe_until({kinds()["local"].front(), kinds()["h2d"].front()}, is_shown);
    EXPECT_EQ(outcome.kernel.found, WhileOccupied::undecided);
    for (const Observation& copy : outcome.copies) {
        EXPECT_EQ(copy.found, WhileOccupied::undecided);
        EXPECT_NE(copy.reason.find("other work"), std::string::npos) << copy.reason;
    }
}

TEST_F(WhoCopies, IfEverythingWaitsNothingIsDecided) {
    fake::configure("multiprocessors=h2d,d2h,local,peer,fill");
    constexpr const char* kNothing = "no copy of any kind ended while the kernel ran";
    const auto is_shown = [](const WhoCopiesOutcome& outcome) {
        return std::ranges::all_of(outcome.copies,
                                   [](const auto& each) { return each.reason == kNothing; });
    };
    const WhoCopiesOutcome outcome =
        observe_until({kinds()["local"].front(), kinds()["h2d"].front()}, is_shown);
    EXPECT_EQ(outcome.kernel.found, WhileOccupied::waited) << outcome.kernel.reason;
    for (const Observation& copy : outcome.copies) {
        EXPECT_EQ(copy.found, WhileOccupied::undecided);
        EXPECT_EQ(copy.reason, kNothing);
    }
}

TEST_F(WhoCopies, ACopyThatIsSlowByItselfIsNotDecided) {
    fake::configure("delay=0.004;multiprocessors=local");
    const WhoCopiesOutcome outcome = observe_until({kinds()["local"].front()}, has_kernel);
    EXPECT_EQ(outcome.copies.front().found, WhileOccupied::undecided);
    EXPECT_NE(outcome.copies.front().reason.find("alone"), std::string::npos);
    EXPECT_GT(outcome.copies.front().alone_seconds, 0.004);
}

TEST_F(WhoCopies, ATransferThatIsNotSupportedHasItsReason) {
    fake::configure("without=batch;multiprocessors=local");
    const std::vector<Transfer> local = kinds()["local"];
    const auto is_shown = [](const WhoCopiesOutcome& outcome) {
        return is_decided(outcome.copies.back());
    };
    const WhoCopiesOutcome outcome = observe_until({local.back(), local.front()}, is_shown);
    EXPECT_EQ(outcome.copies.front().found, WhileOccupied::undecided);
    EXPECT_NE(outcome.copies.front().reason.find("12.8"), std::string::npos);
    EXPECT_EQ(outcome.copies.back().found, WhileOccupied::waited) << outcome.copies.back().reason;
}

TEST_F(WhoCopies, WrongBytesProveNothing) {
    fake::configure("drop=copy@1+");
    const WhoCopiesOutcome outcome = observe_until({kinds()["h2d"].front()}, has_kernel);
    EXPECT_EQ(outcome.copies.front().found, WhileOccupied::undecided);
    EXPECT_NE(outcome.copies.front().reason.find("bytes"), std::string::npos);
}

TEST_F(WhoCopies, ALostContextIsAnError) {
    fake::configure("lost=launch@3");
    std::vector<Transfer> transfers;
    for (const auto& [kind, members] : kinds()) {
        transfers.insert(transfers.end(), members.begin(), members.end());
    }
    EXPECT_THROW((void)observe(transfers), gpu::Error);
}

WhoCopiesOutcome outcome_of(WhileOccupied kernel, WhileOccupied fill,
                            std::initializer_list<WhileOccupied> copies) {
    const auto observed = [](WhileOccupied found) {
        return Observation{.found = found,
                           .reason = found == WhileOccupied::undecided ? "own reason" : ""};
    };
    WhoCopiesOutcome outcome{.kernel = observed(kernel), .fill = observed(fill), .copies = {}};
    for (const WhileOccupied found : copies) outcome.copies.push_back(observed(found));
    return outcome;
}

TEST(WithdrawUnproven, KeepsWhatIsProven) {
    using enum WhileOccupied;
    WhoCopiesOutcome outcome = outcome_of(waited, waited, {ended, waited, undecided});
    measure::withdraw_unproven(outcome);
    EXPECT_EQ(outcome.fill.found, waited);
    EXPECT_EQ(outcome.copies[0].found, ended);
    EXPECT_EQ(outcome.copies[1].found, waited);
    EXPECT_EQ(outcome.copies[2].reason, "own reason");
}

TEST(WithdrawUnproven, WithdrawsAllIfAnotherKernelRan) {
    using enum WhileOccupied;
    WhoCopiesOutcome outcome = outcome_of(ended, ended, {ended, waited, undecided});
    measure::withdraw_unproven(outcome);
    EXPECT_EQ(outcome.fill.found, undecided);
    for (const Observation& copy : outcome.copies) {
        EXPECT_EQ(copy.found, undecided);
        EXPECT_FALSE(copy.reason.empty());
    }
    EXPECT_EQ(outcome.copies[2].reason, "own reason");
}

}  // namespace
}  // namespace waywiser

// A fake in its default state before and after each test; checks that the test leaks nothing.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "fake/fake.hpp"

namespace waywiser::test {

class OnFake : public ::testing::Test {
protected:
    OnFake() {
        setenv("WAYWISER_POLICY", "off", 0);  // not a policy of whoever runs the tests
        fake::reset();
        before_ = fake::live();
    }
    // The test leaves objects behind on purpose.
    void keep_objects() { keeps_objects_ = true; }

public:
    ~OnFake() override {
        fake::reset();
        if (!keeps_objects_) {
            EXPECT_EQ(fake::live(), before_) << "something outlived the test";
        }
    }
    OnFake(const OnFake&) = delete;
    OnFake& operator=(const OnFake&) = delete;

private:
    fake::Live before_;
    bool keeps_objects_ = false;
};

}  // namespace waywiser::test

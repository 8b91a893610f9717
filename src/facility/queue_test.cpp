#include "facility/queue.h"

#include <cmath>

#include <gtest/gtest.h>

namespace joulediff::facility {
namespace {

// a = 1, two servers: B(1) = 1/2, B(2) = (1/2) / (2 + 1/2) = 1/5,
// C = 2/5 / (2 - 4/5) = (2/5) / (6/5) = 1/3.
TEST(Queue, TwoServersByHand) {
  EXPECT_DOUBLE_EQ(waits_longer(1, 1, 2, 0), 1.0 / 3);
  EXPECT_DOUBLE_EQ(waits_longer(1, 1, 2, 3), std::exp(-3) / 3);
}

// One server waits with the probability of its utilisation.
TEST(Queue, OneServer) {
  EXPECT_DOUBLE_EQ(waits_longer(3, 4, 1, 0), 0.75);
  EXPECT_EQ(waits_longer(4, 4, 1, 100), 1);
  EXPECT_EQ(waits_longer(0, 4, 1, 0), 0);
}

// a = 1 and no wait in 80 % of cases: of two servers 1/3 of the units wait (by hand above), which
// is more than 20 %; of three B(3) = 0.2/3.2 = 1/16, C = 3/16 / (3 - 15/16) = 1/11, which is less.
TEST(Queue, FewestServers) {
  const Queue queue{1, 0, 0.8};
  EXPECT_EQ(groups_needed(queue, 1, 1), 3);
  EXPECT_EQ(groups_needed(queue, 1, 2), 2);  // four servers: in twos
  EXPECT_EQ(groups_needed(queue, 0, 1), 0);
}

TEST(Queue, WhatTheFewestTakeIsEnough) {
  for (const double arrivals : {0.5, 3.0, 47.0, 800.0}) {
    const Queue queue{0.7, 0.4, 0.99};
    const auto servers = static_cast<double>(groups_needed(queue, arrivals, 1));
    EXPECT_GE(most_arrivals(queue, servers), arrivals);
    EXPECT_LT(most_arrivals(queue, servers - 1), arrivals);
  }
}

// One server of 4 a second, no waiting in half of the cases: utilisation 1/2, so 2 a second.
TEST(Queue, MostArrivals) {
  EXPECT_NEAR(most_arrivals({4, 0, 0.5}, 1), 2, 1e-9);
}

}  // namespace
}  // namespace joulediff::facility

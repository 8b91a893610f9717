// How many servers a wait allows: the queue M/M/c, as telephone exchanges have been sized since
// A. K. Erlang (1917). Arrivals come at random, each takes one of c servers for a random time of
// mean 1/mu, and waits where all are busy. With a = lambda/mu servers' worth of work,
//
//   B(0) = 1,  B(c) = a B(c-1) / (c + a B(c-1))          all busy, if who finds them busy goes away
//   C(c) = c B(c) / (c - a (1 - B(c)))                   all busy, if who finds them busy waits
//   P(wait > t) = C(c) exp(-(c mu - lambda) t)
#pragma once

#include <cstdint>

namespace joulediff::facility {

struct Queue {
  double rate = 0;      // units a second that one server can do
  double wait = 0;      // seconds
  double share = 0.99;  // of units that wait no longer
};

// Probability of a longer wait than t; 1 where the servers cannot keep up.
double waits_longer(double arrivals, double rate, double servers, double t);

// The fewest groups of `group` servers that keep to the wait; 0 for no arrivals.
std::int64_t groups_needed(const Queue& queue, double arrivals, std::int64_t group);
// The same, known to be more than `low` and at most `high`.
std::int64_t groups_needed(const Queue& queue, double arrivals, std::int64_t group,
                           std::int64_t low, std::int64_t high);

// The most arrivals a second that so many servers take within the wait.
double most_arrivals(const Queue& queue, double servers);

}  // namespace joulediff::facility

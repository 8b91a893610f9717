#include "record/subscription.h"

namespace joulediff::record {

Subscription::Answer Subscription::acquire(const cupti::Functions& cupti, cupti::Callback callback,
                                           void* user, std::string& other) {
  if (held()) return Answer::ours;
  if (cupti.Unsubscribe == nullptr || cupti.EnableCallback == nullptr ||
      cupti.EnableDomain == nullptr)
    return Answer::unknown;
  char name[128] = "";
  cupti::Result result = 0;
  if (cupti.Subscribe_v2 != nullptr) {
    cupti::SubscriberParams params{sizeof params, "Joulediff", name, sizeof name};
    result = cupti.Subscribe_v2(&subscriber_, callback, user, &params);
  } else if (cupti.Subscribe != nullptr) {
    result = cupti.Subscribe(&subscriber_, callback, user);
  } else {
    return Answer::unknown;
  }
  if (result == cupti::kSuccess) return Answer::ours;
  subscriber_ = nullptr;
  name[sizeof name - 1] = '\0';
  other = name;
  return result == cupti::kMultipleSubscribers ? Answer::others : Answer::unknown;
}

void Subscription::watch_calls(const cupti::Functions& cupti) {
  if (!held()) return;
  for (const int domain : {cupti::kDriverDomain, cupti::kRuntimeDomain})
    cupti.EnableDomain(1, subscriber_, domain);
}

void Subscription::watch_launches(const cupti::Functions& cupti) {
  if (!held()) return;
  for (const std::uint32_t function : cupti::kDriverLaunches)
    cupti.EnableCallback(1, subscriber_, cupti::kDriverDomain, function);
  for (const std::uint32_t function : cupti::kRuntimeLaunches)
    cupti.EnableCallback(1, subscriber_, cupti::kRuntimeDomain, function);
}

void Subscription::watch_nothing(const cupti::Functions& cupti) {
  if (!held()) return;
  for (const int domain : {cupti::kDriverDomain, cupti::kRuntimeDomain})
    cupti.EnableDomain(0, subscriber_, domain);
}

void Subscription::release(const cupti::Functions& cupti) {
  if (!held()) return;
  cupti.Unsubscribe(subscriber_);
  subscriber_ = nullptr;
}

}  // namespace joulediff::record

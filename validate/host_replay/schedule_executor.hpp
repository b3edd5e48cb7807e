// The project's own schedules, carried out by processes over TCP.
#pragma once

#include "validate/host_replay/session.hpp"

namespace foretrain {

/// One participant's part: connects, then measures. Within a phase all of its transfers run at the same time; it goes
/// on to the next phase when its own are done, as the schedule's meaning allows (phases depend on earlier phases only).
void run_schedule(const HostTask& task, int process, MeetingPoint& meeting);

}  // namespace foretrain

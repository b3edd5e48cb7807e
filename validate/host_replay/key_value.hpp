// The project's parameter server: a key-value store over TCP with push and pull.
//
// The message is cut into keys; key k lives on server k mod servers. A worker pushes key after key and asks for each at
// once; the server adds up what the workers push and answers when all of them have. With one key per server, pulls
// begin when all pushes have ended, as in the schedule parameter_server; with several, they overlap. Source of the
// interface: Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014.
#pragma once

#include "validate/host_replay/session.hpp"

namespace foretrain {

/// One participant's part: ranks are workers, the others servers.
void run_key_value(const HostTask& task, int process, MeetingPoint& meeting);

/// Which values a key holds.
ValueRange values_of_key(const HostTask& task, int key);

}  // namespace foretrain

#!/bin/sh
# Hosts that are network namespaces of this machine, as root: one card each, all cards on one switch or on leaves below a
# spine, both directions of every card and cable held to a rate by token buckets. `foretrain replay` and
# validate/pytorch/host_lab.py make theirs by it.
#   hosts.sh make SWITCH HOST...      namespaces of these names, host i at 10.77.0.(i+1); what dead processes left goes first
#   hosts.sh shape SWITCH SEGMENTS LEAF UPLINK    by a line "HOST OUT IN" for each what passes its card, and by UPLINK the
#                                     cable of every LEAF hosts (0: none), in bytes a second, headers included; at least so
#                                     many SEGMENTS of TCP cross the stack as one packet
#   hosts.sh remove NAMESPACE...
# Names are foretrain-PID-NUMBER, of the process that they are for. Sources: tc-tbf(8); veth's gso_max_size, ip-link(8).
set -eu
trap '' INT  # who calls hears of it, and removes what was made

# No announcements and solicitations of IPv6, for cards to come too; kernels without it need nothing.
without_ipv6='if cd /proc/sys/net/ipv6/conf 2>/dev/null; then echo 1 >all/disable_ipv6; echo 1 >default/disable_ipv6; fi'
# TCP as large transfers on a quiet network want it: nothing is lost, so the window should open fully and stay open: Reno,
# whose slow start ends at a loss only (that of cubic when the queue grows, which it does behind a token bucket), no restart
# after a pause, no memory of earlier connections. Queues never overflow: a connection has at most 1.5 MB under way.
tcp='cd /proc/sys/net/ipv4; echo reno >tcp_congestion_control; echo 0 >tcp_slow_start_after_idle; echo 1 >tcp_no_metrics_save
echo "4096 1500000 1500000" >tcp_wmem; echo "4096 1500000 1500000" >tcp_rmem'

make() {
  for left in /run/netns/foretrain-[0-9]*-[0-9]*; do
    process=${left#*/foretrain-} process=${process%%-*}
    [ ! -e "$left" ] || [ -e "/proc/$process" ] || ip netns delete "${left##*/}" || true
  done
  switch=$1
  shift
  ip netns add "$switch"
  ip netns exec "$switch" sh -c "$without_ipv6"
  # A bridge that watches multicast announces that it does.
  printf 'link add br0 type bridge mcast_snooping 0\nlink set br0 up\n' | ip -n "$switch" -batch -
  host=0
  for name; do
    host=$((host + 1))
    ip netns add "$name"
    ip netns exec "$name" sh -ec "$without_ipv6; $tcp"
    {
      printf 'link add eth0 address 02:00:00:00:00:%02x type veth peer name port%d netns %s\n' $host $host "$switch"
      printf 'addr add 10.77.0.%d/24 dev eth0\nlink set lo up\nlink set eth0 up\n' $host
      # Addresses of the others: nobody asks, so that only a run's own bytes pass.
      other=0
      while [ $((other += 1)) -le $# ]; do
        [ $other -eq $host ] ||
          printf 'neigh replace 10.77.0.%d lladdr 02:00:00:00:00:%02x dev eth0 nud permanent\n' $other $other
      done
    } | ip -n "$name" -batch -
    ip -n "$switch" link set port$host up
  done
}

# Sets $segments, which cross the stack as one packet at a rate: few, so that the bucket stays small, and enough that the
# processor can carry the traffic of all hosts: 200 us worth of data, at least $least, at most 40.
segments_of() {
  segments=$((($1 / 5000 + 757) / 1514))
  [ $segments -ge $least ] || segments=$least
  [ $segments -le 40 ] || segments=40
}

# A bucket that holds what such a packet counts for: 1448 bytes of each segment, and headers: Ethernet's 14, IP's and TCP's 52.
bucket() {
  segments_of $2
  echo "qdisc replace dev $1 root tbf rate $(($2 * 8))bit burst $((segments * 1514)) limit 32000000"
}

# Leaves are bridges, and the first bridge is their spine. A cable that goes down takes along what its bridges know of who is
# behind it.
links() {
  made=$(ip -n "$switch" -o link show type bridge | grep -c leaf || true)
  i=-1
  while [ $((i += 1)) -lt $leaves ] || [ $i -lt $made ]; do
    [ $i -lt $made ] ||
      printf 'link add leaf%d type bridge mcast_snooping 0
        link set leaf%d up
        link add up%d type veth peer name down%d
        link set up%d master leaf%d
        link set down%d master br0\n' $i $i $i $i $i $i $i
    printf 'link set up%d down\nlink set down%d down\n' $i $i
    [ $i -ge $leaves ] || printf 'link set up%d up\nlink set down%d up\n' $i $i
  done
  i=0
  while [ $((i += 1)) -le $hosts ]; do
    if [ $leaf -eq 0 ]; then echo "link set port$i master br0"; else echo "link set port$i master leaf$(((i - 1) / leaf))"; fi
  done
}

shape() {
  switch=$1 least=$2 leaf=$3 uplink=$4
  cards=$(cat)
  leaves=0 hosts=$(echo "$cards" | wc -l)
  [ $leaf -eq 0 ] || leaves=$(((hosts + leaf - 1) / leaf))
  links | ip -n "$switch" -batch -
  fewest=40 narrow=$(echo "$cards" | cut -d' ' -f3)
  [ $leaves -eq 0 ] || narrow="$narrow $uplink"
  for rate in $narrow; do
    segments_of $rate
    [ $segments -ge $fewest ] || fewest=$segments
  done
  i=-1
  while [ $((i += 1)) -lt $leaves ]; do
    { bucket up$i $uplink && bucket down$i $uplink; } | tc -n "$switch" -batch -
  done
  i=0
  echo "$cards" | while read -r name out into; do
    i=$((i + 1))
    bucket port$i $into | tc -n "$switch" -batch -
    bucket eth0 $out | tc -n "$name" -batch -
    # A packet that is larger than the receiving card's bucket would be cut there at great cost.
    segments_of $out
    [ $segments -le $fewest ] || segments=$fewest
    largest=$((segments * 1448 + 66))
    ip -n "$name" link set dev eth0 gso_max_size $largest
    # Limit of one connection in the queue of its NIC: three packets, which keep it busy while the next one is made.
    # Connections then share the card fairly, and short messages do not wait long.
    ip netns exec "$name" sh -c "echo $((3 * largest)) >/proc/sys/net/ipv4/tcp_limit_output_bytes"
  done
}

remove() {
  for name; do ip netns delete "$name" 2>/dev/null || true; done  # what is left is removed at the next start
}

"$@"
